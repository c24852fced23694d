"""The ledger that outlives its question: the facts and inferences of earlier questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from tomewise.errors import StoreError, UsageError
from tomewise.types import NodeId
from tomewise.working.ledger import Fact, Inference, Ledger, dump, load, read_number

_FACT, _INFERENCE = "F", "I"  # the letters of labels


class LedgerMemory:
    """A ledger without questions and answer: these belong to one question.

    It holds what can be forgotten with its documents. So a fact whose passage is unknown does not outlive its question,
    nor does an inference that rests on one.
    """

    kind = "ledger"

    def __init__(self) -> None:
        self._ledger = Ledger()

    @property
    def ledger(self) -> Ledger:
        """The ledger from which the next question starts."""
        return self._ledger

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts and inferences, as the answering role is shown them."""
        entries: list[Fact | Inference] = [*self._ledger.facts, *self._ledger.inferences]
        ordered = sorted(entries, key=read_number)
        return tuple(dict.fromkeys(each.note if isinstance(each, Fact) else each.text for each in ordered))

    def keep(self, ledger: Ledger) -> None:
        """Hold what may outlive a question of this ledger, instead of what is held now."""
        facts = (fact for fact in ledger.facts if fact.passage)
        inferences = (each for each in ledger.inferences if all(each.passages))
        self._ledger = replace(
            ledger,
            questions=(),
            nets=(),
            settled=(),
            facts=tuple(facts),
            inferences=tuple(inferences),
            answer="",
        )

    def find_nodes(self) -> frozenset[NodeId]:
        """The passages of all facts, and of the facts that inferences rest on."""
        of_facts = (fact.passage for fact in self._ledger.facts)
        return frozenset((*of_facts, *(node for each in self._ledger.inferences for node in each.passages)))

    def forget(self, nodes: Collection[NodeId]) -> tuple[str, ...]:
        """Remove the facts of these passages, and the inferences that rest on one of them. Returns their notes.

        An inference that also rests on other passages goes too: it may repeat what only a removed one states.
        """
        gone = frozenset(nodes)
        facts = (fact for fact in self._ledger.facts if fact.passage not in gone)
        return self._replace(facts, (each for each in self._ledger.inferences if gone.isdisjoint(each.passages)))

    def shrink(self, most: int) -> tuple[str, ...]:
        """Keep `most` entries: first inferences, which hold what they rest on, then facts; of each the newest.

        Returns the notes of the others.
        """
        inferences = self._ledger.inferences[max(0, len(self._ledger.inferences) - most) :]
        room = most - len(inferences)
        return self._replace(self._ledger.facts[max(0, len(self._ledger.facts) - room) :], inferences)

    def _replace(self, facts: Iterable[Fact], inferences: Iterable[Inference]) -> tuple[str, ...]:
        """Hold these entries instead. Returns the notes that are held no more."""
        before = self.notes
        self._ledger = replace(self._ledger, facts=tuple(facts), inferences=tuple(inferences))
        return tuple(note for note in before if note not in self.notes)

    def dump(self) -> dict[str, Any]:
        """The ledger as plain JSON data."""
        return dump(self._ledger)

    @classmethod
    def load(cls, data: object) -> LedgerMemory:
        """The memory of which `dump` made `data`. Raises StoreError for damaged data."""
        try:
            ledger = load(data)
        except UsageError as error:
            raise _make_damage_error(str(error)) from None
        _check_labels(ledger)
        loaded = cls()
        loaded.keep(ledger)
        return loaded


def _check_labels(ledger: Ledger) -> None:
    """Raise StoreError unless each entry has a label of its own that was given before."""
    labels = [(_FACT, fact.label) for fact in ledger.facts] + [(_INFERENCE, each.label) for each in ledger.inferences]
    if not all(label.startswith(letter) for letter, label in labels):
        raise _make_damage_error("an entry has a label of another kind")
    numbers = [label.removeprefix(letter) for letter, label in labels]
    if not all(number.isdecimal() and len(number) < 10 and 0 < int(number) <= ledger.made for number in numbers):
        raise _make_damage_error(f"an entry has a label that was never given (the last one is {ledger.made})")
    if len(set(labels)) < len(labels):
        raise _make_damage_error("two entries have the same label")


def _make_damage_error(problem: str) -> StoreError:
    return StoreError(f"this working memory is damaged ({problem}): begin a new one")
