"""The ledger: the working memory of one reading, made of questions, facts, inferences and the answer (COSMIR, M).

It is plain data. Every function returns a new ledger; `dump` and `load` keep one beyond its question
(`working.ledger_memory`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from tomewise.errors import UsageError
from tomewise.types import PassageId

Count = Callable[[Sequence[str]], list[int]]  # tokens of each text
_MOST_GROUNDS = 8  # facts that one inference cites
_NOT_FOUND = "(these words were not found in the text)"

Entry = TypeVar("Entry", "Fact", "Inference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact that was read: `quote` are the words of the passage that state it.

    `in_text` is False if these words are not in the text that was read. `is_cut` says that text or quote lost its end,
    because the fact is larger than the budget. `tokens` are those of text and quote, counted once if they are equal.
    """

    label: str
    text: str
    passage: PassageId = ""
    quote: str = ""
    in_text: bool = False
    is_cut: bool = False
    tokens: int = 0

    @property
    def is_quote(self) -> bool:
        """Whether the fact is in the words of the text."""
        return self.text == self.quote

    @property
    def note(self) -> str:
        """The fact as roles are shown it."""
        return self.text if self.in_text else f"{self.text} {_NOT_FOUND}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """What follows from facts. It holds the facts it rests on, so it survives when the ledger forgets these.

    `passages` are those of all facts it rests on, also of facts that `grounds` has no room for. A fact whose passage is
    unknown is an empty text there.
    """

    label: str
    text: str
    grounds: tuple[Fact, ...] = ()
    passages: tuple[PassageId, ...] = ()
    is_cut: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """M = ⟨Q, F_g, F_i, a⟩. `budget` is in tokens, for the facts and again for the inferences; None: no limit.

    `made` counts the facts and inferences there ever were, so that no label is used twice.
    """

    budget: int | None = None
    questions: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    inferences: tuple[Inference, ...] = ()
    answer: str = ""
    made: int = 0

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise UsageError(f"a ledger of {self.budget} tokens holds nothing: give a budget of 1 or more, or None")


_LEDGER = TypeAdapter(Ledger)


def add_facts(ledger: Ledger, facts: Sequence[Fact], count: Count) -> Ledger:
    """The ledger with new facts, which get their labels here; the oldest go where the budget is full.

    A fact larger than the budget is cut. A fact that the ledger holds already is not added.
    """
    known = {(fact.text, fact.passage) for fact in ledger.facts}
    new_facts = list({(fact.text, fact.passage): fact for fact in facts if fact.text.strip()}.items())
    labelled = [
        replace(fact, label=f"F{ledger.made + number}")
        for number, fact in enumerate((fact for key, fact in new_facts if key not in known), start=1)
    ]
    sized = [_size_fact(fact, ledger.budget, count) for fact in labelled]
    kept = _keep_newest((*ledger.facts, *sized), ledger.budget)
    return replace(ledger, facts=kept, made=ledger.made + len(labelled))


def add_inferences(ledger: Ledger, inferences: Sequence[Inference], count: Count) -> Ledger:
    """The ledger with new inferences, within the same budget and by the same rules as facts."""
    known = {inference.text for inference in ledger.inferences}
    new_inferences = {each.text: each for each in inferences if each.text.strip() and each.text not in known}
    sized = [
        _size_inference(replace(each, label=f"I{ledger.made + number}"), ledger.budget, count)
        for number, each in enumerate(new_inferences.values(), start=1)
    ]
    kept = _keep_newest((*ledger.inferences, *sized), ledger.budget)
    return replace(ledger, inferences=kept, made=ledger.made + len(sized))


def limit_facts(ledger: Ledger, budget: int | None, count: Count) -> Ledger:
    """The ledger with another budget: what is too large is cut, and the oldest facts and inferences go."""
    facts = [_size_fact(fact, budget, count) for fact in ledger.facts]
    inferences = [_size_inference(inference, budget, count) for inference in ledger.inferences]
    return replace(
        ledger, budget=budget, facts=_keep_newest(facts, budget), inferences=_keep_newest(inferences, budget)
    )


def infer_from(ledger: Ledger, text: str, labels: Sequence[str]) -> Inference:
    """An inference that rests on the facts with these labels, and on what the inferences with these labels rest on."""
    grounds: dict[str, Fact] = {}
    passages: dict[PassageId, None] = {}
    entries: list[Fact | Inference] = [*ledger.facts, *ledger.inferences]
    for entry in entries:
        if entry.label in labels:
            facts = entry.grounds if isinstance(entry, Inference) else (entry,)
            grounds.update({fact.label: fact for fact in facts})
            passages.update(dict.fromkeys(entry.passages if isinstance(entry, Inference) else (entry.passage,)))
    return Inference(label="", text=text, grounds=tuple(grounds.values())[:_MOST_GROUNDS], passages=tuple(passages))


def dump(ledger: Ledger) -> dict[str, Any]:
    """The ledger as plain JSON data."""
    data: dict[str, Any] = _LEDGER.dump_python(ledger, mode="json")
    return data


def load(data: object) -> Ledger:
    """The ledger of `dump`. Raises UsageError for other data."""
    missing = [field.name for field in fields(Ledger) if not isinstance(data, Mapping) or field.name not in data]
    if missing:
        raise UsageError(f"this is not a ledger (without {', '.join(missing)}): pass what `dump` returned")
    try:
        return _LEDGER.validate_python(data)
    except ValidationError as error:
        problem = error.errors()[0]
        path = ".".join(map(str, problem["loc"]))
        raise UsageError(f"this is not a ledger ({path}: {problem['msg']}): pass what `dump` returned") from None


def _keep_newest(entries: Sequence[Entry], budget: int | None) -> tuple[Entry, ...]:
    """The longest end of the entries that fits (first in, first out)."""
    if budget is None:
        return tuple(entries)
    first = len(entries)
    left = budget
    while first and entries[first - 1].tokens <= left:
        first -= 1
        left -= entries[first].tokens
    return tuple(entries[first:])


def _size_fact(fact: Fact, budget: int | None, count: Count) -> Fact:
    """The fact with its number of tokens, cut if it is larger than the budget: first the quote, then the text."""
    quote = "" if fact.is_quote else fact.quote
    of_text, of_quote = count([fact.text, quote])
    if budget is None or of_text + of_quote <= budget:
        return replace(fact, tokens=of_text + of_quote)
    text = _cut_text(fact.text, budget, count)
    (of_text,) = count([text])
    # A quote that is cut at its end still stands in the text, so it remains a quotation.
    quote = text if fact.is_quote else _cut_text(fact.quote, budget - of_text, count)
    of_quote = 0 if quote == text else count([quote])[0]
    return replace(fact, text=text, quote=quote, is_cut=True, tokens=of_text + of_quote)


def _size_inference(inference: Inference, budget: int | None, count: Count) -> Inference:
    (tokens,) = count([inference.text])
    if budget is None or tokens <= budget:
        return replace(inference, tokens=tokens)
    text = _cut_text(inference.text, budget, count)
    return replace(inference, text=text, is_cut=True, tokens=count([text])[0])


def _cut_text(text: str, budget: int, count: Count) -> str:
    """The beginning of a text, up to `budget` tokens, between two words where that leaves most of it."""
    length = bisect_right(range(1, len(text) + 1), budget, key=lambda end: count([text[:end]])[0])
    cut = text[:length]
    ends_word = length == len(text) or any(map(str.isspace, text[max(0, length - 1) : length + 1]))
    words = cut if ends_word else " ".join(cut.rsplit(maxsplit=1)[:-1])
    cut = words.rstrip() if 2 * len(words) > len(cut) else cut.rstrip()
    while cut and count([cut])[0] > budget:  # a shorter text may have a token more
        cut = cut[:-1].rstrip()
    return cut
