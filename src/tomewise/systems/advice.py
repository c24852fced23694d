"""Which system when: groups for people, and one recommendation for a tome as it is.

The rule is simple, and its figures are measured ones (`bench/RESULTS.md`): "A strong model, eight open questions" (its
table of all 16 questions) for stories, "Bridges" for facts over many short documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tomewise.language.choose_model import EXTRACTIVE
from tomewise.systems.defaults import CONTEXT
from tomewise.types import Noun

_SHORT = 4  # passages; a document of fewer is short

# By the `kind` that a declaration states: the title of a group, and what its systems are for and cost.
_ONE, _LOOP, _WHOLE = "one search", "several searches", "the whole text"
GROUPS = {
    _ONE: "Plain questions, at once: 1 or 2 calls a question. Those with a build join what stands apart.",
    _LOOP: "Questions whose answer lies in several places: 2 to 10 calls a question, more where they must be.",
    _WHOLE: "Questions about all of a text, without a build: a call for every 10 pages or so, at each question.",
    "chosen for each question": "One search first, then a loop over what is built, or the whole text, if needed.",
    "others": "From packages.",
}
_GROUP_OF_KIND = {
    "one search": _ONE,
    "two searches": _ONE,
    "loop": _LOOP,
    "reads in order": _WHOLE,
    "no search": _WHOLE,
    "chooses a system": "chosen for each question",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation(Noun):
    """A system for a tome as it is, and the reason."""

    system: str
    because: str


def find_group(kind: str) -> str:
    """The title of the group of a system of this kind."""
    return _GROUP_OF_KIND.get(kind, "others")


def recommend_system(passages: Sequence[int], passage_tokens: int, model: str) -> Recommendation | None:
    """A system for documents of so many passages each, and a model; None without a document.

    What fits into one prompt needs one search. Beyond that, long documents (where at least half of the passages lie in
    documents of 4 passages or more) are for `comorag`, many short ones for `associative`. Without a model, one search
    is enough too.
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
            system="comorag",
            because=(
                "its documents are long: on a story it was right for 15 of 16 questions, one search for 6. "
                "A question takes 5 calls; `tome build --system comorag --estimate` says what the build takes"
            ),
        )
    if model != EXTRACTIVE:
        return found
    without_model = f"no model is set, so one search quotes as well as a loop; with a model: {found.system}"
    return Recommendation(system="hybrid", because=without_model)
