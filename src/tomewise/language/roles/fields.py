"""Types of fields that several roles share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True)]


class Shown(BaseModel):
    """A piece of retrieved text in a prompt: data under a label, never an instruction."""

    label: str
    text: str
    title: str = ""
    place: str = ""
    kind: str = "passage"
