"""The ledger: the working memory of one reading, made of questions, facts and inferences (COSMIR, M).

It is plain data. Every function returns a new ledger; a `LedgerMemory` holds what outlives its question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tomewise.text.words import fold
from tomewise.types import NodeId, PassageId
from tomewise.types.plain import write_plain
from tomewise.working.lasting_memory import check_labels, load_memory

Count = Callable[[Sequence[str]], list[int]]  # tokens of each text
_UNCHECKED = "(a reader's note; the words it rests on could not be checked)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A fact that was read, or an inference, whose label begins with I. `text` is what roles are shown.

    A fact has the one passage that states it, an empty text where that is unknown, and there a span, as offsets in the
    text of the passage; where no words of it state the fact, `end` is 0 and it is a reader's note. `place` says where
    the passage stands. An inference has the passages of all that it rests on, so it survives when the ledger forgets
    these. `replaced_by` is the label of the inference that overtook it.
    """

    label: str = ""
    text: str
    passages: tuple[PassageId, ...] = ("",)
    start: int = 0
    end: int = 0
    place: str = ""
    replaced_by: str = ""

    @property
    def number(self) -> int:
        """The number in the label: 3 for F3 and for I3. Facts and inferences are counted together."""
        return int(self.label[1:])

    @property
    def is_fact(self) -> bool:
        return self.label[:1] != "I"

    @property
    def note(self) -> str:
        """The entry as roles are shown it."""
        return f"{self.text} {_UNCHECKED}" if self.is_fact and not self.end else self.text


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """M = ⟨Q, F_g, F_i⟩; its a is the answer. Q are focused `questions` and `nets`, which are wide.

    `settled` are questions of the past, `entries` are F_g and F_i in the order in which they came. `made` counts those
    that there ever were, so that no label is used twice.
    """

    questions: tuple[str, ...] = ()
    nets: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    entries: tuple[LedgerEntry, ...] = ()
    made: int = 0

    @property
    def facts(self) -> list[LedgerEntry]:
        return [entry for entry in self.entries if entry.is_fact]

    @property
    def inferences(self) -> list[LedgerEntry]:
        return [entry for entry in self.entries if not entry.is_fact]


def add_facts(ledger: Ledger, facts: Iterable[LedgerEntry]) -> Ledger:
    """The ledger with new facts, which get their labels here. A fact that the ledger holds already is not added."""
    known = {(fact.text, fact.passages) for fact in ledger.facts}
    for fact in facts:
        if fact.text.strip() and (fact.text, fact.passages) not in known:
            known.add((fact.text, fact.passages))
            made = ledger.made + 1
            ledger = replace(ledger, entries=(*ledger.entries, replace(fact, label=f"F{made}")), made=made)
    return ledger


def infer(ledger: Ledger, text: str, rests_on: Collection[int], replaces: Collection[int] = ()) -> Ledger:
    """The ledger with an inference from the entries of these numbers, which overtakes those that it `replaces`.

    What rests on an inference rests on its passages, and so does what overtakes it, which may name it. An inference
    that rests on no entry is not added; of one that the ledger holds already, only what it replaces counts.
    """
    grounds = [entry for entry in ledger.entries if entry.number in rests_on]
    known = next((each for each in ledger.inferences if each.text == text), None)
    if not grounds or not text.strip():
        return ledger
    made = ledger.made + (known is None)
    new = known or LedgerEntry(label=f"I{made}", text=text, passages=())
    old = [each for each in ledger.entries if each.number in replaces and not each.replaced_by and each != known]
    behind = (*(() if known else grounds), *old)
    passages = dict.fromkeys((*new.passages, *(passage for entry in behind for passage in entry.passages)))
    changed = {each.label: replace(each, replaced_by=new.label) for each in old}
    changed[new.label] = replace(new, passages=tuple(passages))
    entries = ledger.entries if known else (*ledger.entries, new)
    return replace(ledger, entries=tuple(changed.get(each.label, each) for each in entries), made=made)


def list_overtaken(ledger: Ledger, inference: LedgerEntry) -> Iterator[str]:
    """The texts of all that this inference overtook, also through others, the latest first."""
    for entry in reversed(ledger.entries):
        if entry.replaced_by == inference.label and entry.number < inference.number:
            yield entry.text
            yield from list_overtaken(ledger, entry)


def settle(ledger: Ledger, answered: Collection[int], new: Iterable[str]) -> Ledger:
    """The ledger without the open questions of these numbers, nets counted last, and with new ones.

    None is added twice, nor again after it was settled, whatever its case, its spaces and the marks at its ends.
    """
    asked = enumerate((*ledger.questions, *ledger.nets), start=1)
    past = tuple(dict.fromkeys((*ledger.settled, *(text for number, text in asked if number in answered))))
    gone, distinct = {fold(text) for text in past}, dict[str, str]()
    for text in filter(str.strip, (*ledger.questions, *new)):
        if fold(text) not in gone:
            distinct.setdefault(fold(text), text)
    nets = tuple(text for text in ledger.nets if text not in past)
    return replace(ledger, questions=tuple(distinct.values()), nets=nets, settled=past)


def forget_oldest(ledger: Ledger, budget: int, count: Count) -> Ledger:
    """The ledger with its newest facts, as many as have room in `budget` tokens (COSMIR: first in, first out).

    Inferences stay.
    """
    facts = ledger.facts
    sizes = count([fact.text for fact in facts])
    first = next(start for start in range(len(sizes) + 1) if sum(sizes[start:]) <= budget)
    gone = {fact.label for fact in facts[:first]}
    return replace(ledger, entries=tuple(each for each in ledger.entries if each.label not in gone))


class LedgerMemory:
    """A ledger without questions: these belong to one question.

    It holds what can be forgotten with its documents. So a fact whose passage is unknown does not outlive its question,
    nor does an inference that rests on one.
    """

    kind = "ledger"

    def __init__(self) -> None:
        self.ledger = Ledger()  # from which the next question starts

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts and inferences, as the answering role is shown them."""
        return tuple(dict.fromkeys(each.note for each in self.ledger.entries))

    def keep(self, ledger: Ledger) -> None:
        """Hold what may outlive a question of this ledger, instead of what is held now."""
        self._hold([each for each in ledger.entries if all(each.passages)], ledger.made)

    def find_nodes(self) -> frozenset[NodeId]:
        """The passages of all facts, and of the facts that inferences rest on."""
        return frozenset(node for each in self.ledger.entries for node in each.passages)

    def forget(self, nodes: Collection[NodeId]) -> tuple[str, ...]:
        """Remove the facts of these passages, and the inferences that rest on one of them. Returns their notes.

        An inference that also rests on other passages goes too: it may repeat what only a removed one states.
        """
        gone = frozenset(nodes)
        return self._keep_only([each for each in self.ledger.entries if gone.isdisjoint(each.passages)])

    def shrink(self, most: int) -> tuple[str, ...]:
        """Keep `most` entries: first inferences, then facts; of each the newest. Returns the notes of the others."""
        return self._keep_only(sorted(self.ledger.entries, key=lambda each: (each.is_fact, -each.number))[:most])

    def _keep_only(self, kept: Sequence[LedgerEntry]) -> tuple[str, ...]:
        """Hold these entries alone. Returns the notes that are held no more."""
        before = self.notes
        self._hold([each for each in self.ledger.entries if each in kept], self.ledger.made)
        return tuple(note for note in before if note not in self.notes)

    def _hold(self, entries: Sequence[LedgerEntry], made: int) -> None:
        """Hold these entries. What an inference overtook stands again once that is gone."""
        labels = {each.label for each in entries}
        own = (each if each.replaced_by in labels else replace(each, replaced_by="") for each in entries)
        self.ledger = Ledger(entries=tuple(own), made=made)

    def dump(self) -> dict[str, Any]:
        """The ledger as plain JSON data."""
        return dict(write_plain(self.ledger))

    @classmethod
    def load(cls, data: object) -> LedgerMemory:
        """The memory of which `dump` made `data`. Raises StoreError for damaged data."""
        ledger = load_memory(Ledger, data)
        check_labels([each.label for each in ledger.entries], "FI", ledger.made)
        loaded = cls()
        loaded.keep(ledger)
        return loaded
