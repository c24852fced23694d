"""Types of fields that several roles share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True)]


class Shown(BaseModel):
    """A piece of retrieved text in a prompt: data under a label, never an instruction.

    `kind` is passage, summary, episode, gist or fact, or the name of a layer from outside. `document` names the
    document where it has no title; `place` is where in the document the piece is, as "ch. 3, part 12 of 59".
    """

    label: str
    text: str
    title: str = ""
    kind: str = "passage"
    document: str = ""
    place: str = ""
