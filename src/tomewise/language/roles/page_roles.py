"""The roles of reading by pages (ReadAgent): shorten a page to its gist, and look up pages by their gists."""

from __future__ import annotations

from pydantic import BaseModel, Field, computed_field

from tomewise.language.labels import Labels
from tomewise.language.memory_faults import find_fault
from tomewise.language.roles.fields import Shown, Text
from tomewise.language.roles.memory_roles import PassageIn, bound_words
from tomewise.types import Role

_SHARE = 0.2  # of the words of a page that its gist may have


class ShortenIn(PassageIn):
    """A page, and the end of the text before it."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def words(self) -> int:
        """The most words of the gist: a fifth of those of the page."""
        return bound_words(self.text, _SHARE)


class ShortenOut(BaseModel):
    gist: Text = Field(min_length=1, description="the page, much shorter")


class LookUpIn(BaseModel):
    """`evidence` are all pages in order: the gist of each, or its text if its label is in `read`."""

    question: str
    evidence: list[Shown]
    read: list[str] = []
    limit: int = 5


class LookUpOut(BaseModel):
    """Labels that were not shown are for the caller to drop."""

    reasoning: Text = Field(default="", description="what is still unknown and which pages may say it, in a sentence")
    labels: Labels = Field(default=[], description="labels of the pages to read in full, the most useful first")


def _find_gist_fault(given: ShortenIn, output: ShortenOut) -> str | None:
    return find_fault(output.gist, given.grounds)


SHORTEN = Role("shorten", ShortenIn, ShortenOut, output_tokens=1024, find_fault=_find_gist_fault)
LOOK_UP = Role("look_up", LookUpIn, LookUpOut, output_tokens=256)
