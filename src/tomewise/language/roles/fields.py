"""What the fields of several roles are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True)]


class Shown(BaseModel):
    """A piece of retrieved text as a prompt shows it: data under a label, never an instruction."""

    label: str
    text: str
    title: str = ""
    kind: str = "passage"
