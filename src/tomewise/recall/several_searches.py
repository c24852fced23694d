"""Several searches for one question: for each thing that it compares, for a question that follows, in each layer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.recall.ranking import drop_repeats, mark_brought, score_by_place, take_turns
from tomewise.text.names import find_mentions
from tomewise.types import Evidence, Retriever, Rewrite, Scope

_JOINT = re.compile(r",? (or|and|than|versus|vs\.?|before|after) ", re.IGNORECASE)  # blanks are folded before
_COMPARING = re.compile(
    r"\Abetween\b|\b(?:both|same|in common|differ\w*|share[ds]?|either|compare\w*|alike|similar\w*)\b", re.IGNORECASE
)
_YES_OR_NO = re.compile(
    r"\s*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)\b", re.IGNORECASE
)
_ASKING = re.compile(r"\b(?:who|whom|whose|what|which|when|where|why|how)\b", re.IGNORECASE)
_DESCRIBING = re.compile(r"(?:\b(?:the|a|an)\s+(?:[\w'’-]+\s+){0,5})?[\"“'‘(]?\Z", re.IGNORECASE)  # "the author of "
_BEFORE_CHOICES = re.compile("[,:] ")
_CHOICE = re.compile("[^,:]+")
_OR = re.compile(" or ", re.IGNORECASE)
_QUOTES = "\"“”'‘’"
_MOST_WORDS = 12  # of a thing that is not a name
_LONGEST = 1000  # characters of a question that is looked at: the time grows faster than the length
_Span = tuple[int, int]


@dataclass(frozen=True)
class ComparedRecall:
    """Recall for each thing of a comparison, and for the whole question; the passages of each come in turns.

    Scores are then 1 / place. A question that compares nothing is searched as it is. The words that show a comparison
    are English (`split_comparison`).
    """

    retriever: Retriever

    @property
    def calls(self) -> CallCount:
        return read_calls(self.retriever)

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best passages."""
        parts = split_comparison(query)
        texts = [*(part.text for part in parts), query]
        searches = (self.retriever.retrieve(text, limit, within=within) for text in texts)
        *apart, whole = await asyncio.gather(*searches)
        if not parts:
            return whole
        brought = map(mark_brought, apart, parts)
        return score_by_place(drop_repeats(take_turns([*brought, whole])), limit)


def split_comparison(question: str) -> Sequence[Rewrite]:
    """The question for each of the things that it compares, by itself; empty if it compares none.

    A question may offer a choice at its end, after a comma or colon: "..., the keeper, the doctor or the clerk?". Else
    two names are compared where "or", "than" or "versus" stands between them, or "and" in a question that also has a
    word like "both" or "same", or "before" or "after" in a question for yes or no. A long question is not looked at.
    """
    question = " ".join(question.split())
    if len(question) > _LONGEST:
        return []
    spans = _find_choices(question) or _find_names(question)
    if not spans:
        return []
    head, tail = question[: spans[0][0]], question[spans[-1][1] :]
    between = "" if len(spans) > 2 else question[spans[0][1] : spans[1][0]]
    joint = _JOINT.search(between)
    comparative = between[: joint.start()] if joint else ""  # "higher" in "Is Ben Nevis higher than Snowdon?"
    return [
        Rewrite(text=f"{head}{question[start:end]}{comparative}{tail}", name=question[start:end])
        for start, end in spans
    ]


def _find_choices(question: str) -> list[_Span]:
    """The choices at the end of a question: what stands between the last commas and "or", and what after it.

    What asks for yes or no offers none: "In the end, did she stay or leave?".
    """
    end = len((question[:-1] if question.endswith(("?", ".")) else question).rstrip())
    first = _BEFORE_CHOICES.search(question, question.rfind("?", 0, end) + 1, end)
    last = _OR.search(question, max(question.rfind(mark, 0, end) for mark in ",:?") + 1, end)
    if first is None or last is None:
        return []
    things = [(last.end(), end)]
    # From the last back to the one that asks.
    for found in reversed(list(_CHOICE.finditer(question, first.end(), last.start()))):
        text = found[0].strip()
        if _ASKING.search(text) or _YES_OR_NO.match(text) or len(text.split()) > _MOST_WORDS:
            break
        start = found.end() - len(found[0].lstrip())
        things.insert(0, (start, start + len(text)))
    is_short = len(question[last.end() : end].split()) <= _MOST_WORDS
    return things if len(things) > 1 and is_short else []


def _find_names(question: str) -> list[_Span]:
    """Two names with a word between them that compares, each with what describes it: "the author of Emma"."""
    names = [(name.start, name.end) for name in find_mentions(question) if name.kind in {"name", "title"}]
    for joint in _JOINT.finditer(question):
        word = joint[1].lower()
        if (word == "and" and not _COMPARING.search(question)) or (
            word in {"before", "after"} and not _YES_OR_NO.match(question)
        ):
            continue
        before = [span for span in names if span[1] <= joint.start()]
        after = [span for span in names if span[0] >= joint.end()]
        if not before or not after:
            continue
        (start, end), (_, other_end) = _extend_to_quotes(question, before[-1]), _extend_to_quotes(question, after[0])
        described = question[joint.end() : after[0][0]]
        is_beside = word in {"than", "before", "after"} or end == joint.start()
        if is_beside and _DESCRIBING.fullmatch(described):
            if described.strip(_QUOTES):
                start = _DESCRIBING.search(question[:start]).start()  # type: ignore[union-attr]  # it may be empty
            return [(start, end), (joint.end(), other_end)]
    return []


def _extend_to_quotes(question: str, span: _Span) -> _Span:
    """The span with the quotation marks around it."""
    start, end = span
    is_quoted = start > 0 and question[start - 1] in _QUOTES and question[end : end + 1] in set(_QUOTES)
    return (start - 1, end + 1) if is_quoted else span


Found = Mapping[str, list[Evidence]]


@dataclass(frozen=True)
class LayeredRecall:
    """One retriever for each layer; all of them run concurrently. Layers keep the order in which they are given."""

    retrievers: Mapping[str, Retriever]

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(self.retrievers)

    @property
    def calls(self) -> CallCount:
        """The calls of one query."""
        return sum_calls(map(read_calls, self.retrievers.values()))

    async def retrieve(self, queries: Sequence[str], limit: int, *, within: Scope | None = None) -> list[Found]:
        """For each query the evidence from each layer, best first. All of it is within the scope."""

        async def search(query: str) -> Found:
            searches = (retriever.retrieve(query, limit, within=within) for retriever in self.retrievers.values())
            return dict(zip(self.retrievers, await asyncio.gather(*searches), strict=True))

        return await asyncio.gather(*map(search, queries))
