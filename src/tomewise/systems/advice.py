"""Which system when: groups for people, and one recommendation for a tome as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.language.choose_model import EXTRACTIVE
from tomewise.systems.defaults import CONTEXT
from tomewise.systems.efforts import OUR_NAMES
from tomewise.types import Noun

_SHORT = 4  # passages; a document of fewer is short

# The title of a group, and what its systems are for and cost: ours, then others by the `kind` that they declare.
_OURS, _ONE, _LOOP, _WHOLE = "by effort", "one search", "several searches", "the whole text"
GROUPS = {
    _OURS: (
        "`--effort quick` is associative where its graph is built, else hybrid; `thorough` is investigate, `whole` "
        "read_through; `auto` chooses for each question."
    ),
    _ONE: "Baselines, and systems of papers: 1 or 2 calls a question, cam up to 6. A build joins what stands apart.",
    _LOOP: "Ours and systems of papers, for answers that lie in several places: from 2 calls a question to 65.",
    _WHOLE: "Without a build, at each question: one call in all, or one to three for every chunk of the text.",
    "others": "From packages.",
}
_GROUP_OF_KIND = {
    "one search": _ONE,
    "two searches": _ONE,
    "loop": _LOOP,
    "reads in order": _WHOLE,
    "no search": _WHOLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation(Noun):
    """A system for a tome as it is, and the reason."""

    system: str
    because: str


def find_group(name: str, kind: str) -> str:
    """The title of the group of a system of this name and kind."""
    return _OURS if name in OUR_NAMES else _GROUP_OF_KIND.get(kind, "others")


def recommend_system(passages: Sequence[int], passage_tokens: int, model: str) -> Recommendation | None:
    """A system of ours for documents of so many passages each, and a model; None without a document.

    What fits into one prompt needs one search. Beyond that, long documents (where at least half of the passages lie in
    documents of 4 passages or more) are for `investigate`, many short ones for `associative`, by "Bridges" of
    `bench/RESULTS.md`. Without a model, one search is enough too.
    """
    if not sum(passages):
        return None
    if sum(passages) * passage_tokens <= CONTEXT:
        return Recommendation(system="hybrid", because="all of it fits into the prompt of one search")
    short = sum(count for count in passages if count < _SHORT)
    if 2 * short > sum(passages):
        found = Recommendation(
            system="associative",
            because=(
                "its documents are short, and a graph joins their facts: it finds 88 % of what such questions need in "
                "5 passages, one search 78 %. A build takes 1 call a passage, a question 1"
            ),
        )
    else:
        found = Recommendation(
            system="investigate",
            because=(
                "its documents are long, and where one search does not suffice it searches again. A question takes 1 "
                "to 33 calls; it needs no build, and searches more after `tome build --system comorag`"
            ),
        )
    if model != EXTRACTIVE:
        return found
    without_model = f"no model is set, so one search quotes as well as a loop; with a model: {found.system}"
    return Recommendation(system="hybrid", because=without_model)
