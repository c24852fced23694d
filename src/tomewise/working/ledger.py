"""The ledger: the working memory of one reading, made of questions, facts, inferences and the answer (COSMIR, M).

It is plain data. Every function returns a new ledger; `dump` and `load` keep it, and a `LedgerMemory` holds what
outlives its question.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from pydantic import TypeAdapter, ValidationError

from tomewise.errors import UsageError
from tomewise.text.stop_words import STOP
from tomewise.types import NodeId, PassageId
from tomewise.types.plain import describe_invalid
from tomewise.working.lasting_memory import is_issued, make_damage_error

Count = Callable[[Sequence[str]], list[int]]  # tokens of each text
_MOST_GROUNDS = 8  # facts that one inference cites
_OF_INFERENCES = 2  # the facts have so many times the budget of the inferences
_COMMON = 3  # a word that more than a third of the facts have does not tell what a question concerns
_WORD = re.compile(r"\w{2,}")
_FACT, _INFERENCE = "F", "I"  # the letters of labels
_UNCHECKED = "(a reader's note; the words it rests on could not be checked)"

Entry = TypeVar("Entry", "LedgerFact", "Inference")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFact:
    """A fact that was read: `quote` are the words of the passage that state it, `place` says where that stands.

    `in_text` is False if these words are not in the text that was read. `tokens` are those of the text, which is what
    roles are shown.
    """

    label: str
    text: str
    passage: PassageId = ""
    quote: str = ""
    place: str = ""
    in_text: bool = False
    tokens: int = 0

    @property
    def is_quote(self) -> bool:
        """Whether the fact is in the words of the text."""
        return self.text == self.quote

    @property
    def note(self) -> str:
        """The fact as roles are shown it."""
        return self.text if self.in_text else f"{self.text} {_UNCHECKED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """What follows from facts. It holds the facts it rests on, so it survives when the ledger forgets these.

    `passages` are those of all facts it rests on, also of facts that `grounds` has no room for. A fact whose passage is
    unknown is an empty text there.
    """

    label: str
    text: str
    grounds: tuple[LedgerFact, ...] = ()
    passages: tuple[PassageId, ...] = ()
    tokens: int = 0
    place: ClassVar[str] = ""

    @property
    def note(self) -> str:
        """The inference as roles are shown it."""
        return self.text


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """M = ⟨Q, F_g, F_i, a⟩. Q are focused `questions` and `nets`, which are wide; `settled` are questions of the past.

    `made` counts the facts and inferences there ever were, so that no label is used twice.
    """

    questions: tuple[str, ...] = ()
    nets: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    facts: tuple[LedgerFact, ...] = ()
    inferences: tuple[Inference, ...] = ()
    answer: str = ""
    made: int = 0


_LEDGER = TypeAdapter(Ledger)


def add_facts(ledger: Ledger, facts: Sequence[LedgerFact], count: Count) -> Ledger:
    """The ledger with new facts, which get their labels here. A fact that the ledger holds already is not added."""
    known = {(fact.text, fact.passage) for fact in ledger.facts}
    new_facts = {(fact.text, fact.passage): fact for fact in facts if fact.text.strip()}
    fresh = [fact for key, fact in new_facts.items() if key not in known]
    labelled = (replace(fact, label=f"{_FACT}{number}") for number, fact in enumerate(fresh, start=ledger.made + 1))
    sized = [_size(fact, None, count) for fact in labelled]
    return replace(ledger, facts=(*ledger.facts, *sized), made=ledger.made + len(sized))


def add_inferences(ledger: Ledger, inferences: Sequence[Inference], count: Count) -> Ledger:
    """The ledger with new inferences, by the same rules as facts."""
    known = {inference.text for inference in ledger.inferences}
    new_inferences = {each.text: each for each in inferences if each.text.strip() and each.text not in known}
    numbered = enumerate(new_inferences.values(), start=ledger.made + 1)
    sized = [_size(replace(each, label=f"{_INFERENCE}{number}"), None, count) for number, each in numbered]
    return replace(ledger, inferences=(*ledger.inferences, *sized), made=ledger.made + len(sized))


def forget_oldest(ledger: Ledger, budget: int, count: Count) -> Ledger:
    """The ledger with its newest facts, as many as have room in `budget` tokens (COSMIR: first in, first out).

    A fact that is larger than that is cut. Inferences stay.
    """
    _check_budget(budget)
    facts = deque(_size(fact, budget, count) for fact in ledger.facts)
    while sum(fact.tokens for fact in facts) > budget:
        facts.popleft()
    return replace(ledger, facts=tuple(facts))


def forget_unused(ledger: Ledger, budget: int | None, count: Count, *, asked: str = "") -> Ledger:
    """The ledger with at most `budget` tokens of facts and half as many of inferences; None: no limit. Ours.

    What is larger than that is cut. Of the inferences the oldest go. Of the facts those go first that no inference
    rests on and that neither `asked`, the question of the reading, nor an entry of Q concerns, then those that no
    inference rests on; of equals the oldest. So the grounds of inferences stay as long as any other fact is left.
    """
    if budget is None:
        return ledger
    _check_budget(budget)
    of_inferences = max(1, budget // _OF_INFERENCES)
    inferences = [_size(inference, of_inferences, count) for inference in ledger.inferences]
    kept = _keep_first(inferences[::-1], of_inferences)[::-1]
    facts = [_size(fact, budget, count) for fact in ledger.facts]
    grounds = {fact.label for inference in kept for fact in inference.grounds}
    concerned = _find_concerned(facts, (asked, *ledger.questions, *ledger.nets, *ledger.settled))
    best_first = sorted(
        range(len(facts)), key=lambda index: (facts[index].label in grounds, index in concerned, index), reverse=True
    )
    kept_labels = {fact.label for fact in _keep_first([facts[index] for index in best_first], budget)}
    return replace(ledger, facts=tuple(fact for fact in facts if fact.label in kept_labels), inferences=tuple(kept))


def _check_budget(budget: int) -> None:
    if budget < 1:
        raise UsageError(f"a ledger of {budget} tokens holds nothing: give a budget of 1 or more")


def infer_from(ledger: Ledger, text: str, labels: Sequence[str]) -> Inference:
    """An inference that rests on the facts with these labels, and on what the inferences with these labels rest on."""
    grounds: dict[str, LedgerFact] = {}
    passages: dict[PassageId, None] = {}
    entries: list[LedgerFact | Inference] = [*ledger.facts, *ledger.inferences]
    for entry in entries:
        if entry.label in labels or entry.label[1:] in labels:
            facts = entry.grounds if isinstance(entry, Inference) else (entry,)
            grounds.update({fact.label: fact for fact in facts})
            passages.update(dict.fromkeys(entry.passages if isinstance(entry, Inference) else (entry.passage,)))
    return Inference(label="", text=text, grounds=tuple(grounds.values())[:_MOST_GROUNDS], passages=tuple(passages))


def read_number(entry: LedgerFact | Inference) -> int:
    """The number in a label: 3 for F3 and for I3. Facts and inferences are counted together."""
    return int(entry.label[1:])


def dump(ledger: Ledger) -> dict[str, Any]:
    """The ledger as plain JSON data."""
    data: dict[str, Any] = _LEDGER.dump_python(ledger, mode="json")
    return data


def load(data: object) -> Ledger:
    """The ledger of `dump`. Raises UsageError for other data."""
    missing = [each.name for each in fields(Ledger) if not isinstance(data, Mapping) or each.name not in data]
    if missing:
        raise UsageError(f"this is not a ledger (without {', '.join(missing)}): pass what `dump` returned")
    try:
        return _LEDGER.validate_python(data)
    except ValidationError as error:
        raise UsageError(f"this is not a ledger ({describe_invalid(error)}): pass what `dump` returned") from None


def _keep_first(entries: Sequence[Entry], budget: int) -> list[Entry]:
    """The first entries that fit together; one that is too long for what is left is passed over."""
    kept: list[Entry] = []
    for entry in entries:
        if entry.tokens <= budget:
            kept.append(entry)
            budget -= entry.tokens
    return kept


def _find_concerned(facts: Sequence[LedgerFact], questions: Sequence[str]) -> set[int]:
    """The indices of facts that share a telling word with a question."""
    words = [_list_words(fact.text) for fact in facts]
    holders = Counter(word for each in words for word in each)
    telling = {word for text in questions for word in _list_words(text) if _COMMON * holders[word] <= len(facts)}
    return {index for index, each in enumerate(words) if each & telling}


def _list_words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold())) - STOP


def _size(entry: Entry, budget: int | None, count: Count) -> Entry:
    """The entry with the tokens of its text, which is cut if it is larger than the budget."""
    (tokens,) = count([entry.text])
    if budget is None or tokens <= budget:
        return replace(entry, tokens=tokens)
    text = _cut_text(entry.text, budget, count)
    (tokens,) = count([text])
    if isinstance(entry, LedgerFact) and entry.is_quote:
        # A quotation that is cut at its end still stands in the text.
        return replace(entry, text=text, quote=text, tokens=tokens)
    return replace(entry, text=text, tokens=tokens)


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


class LedgerMemory:
    """A ledger without questions and answer: these belong to one question.

    It holds what can be forgotten with its documents. So a fact whose passage is unknown does not outlive its question,
    nor does an inference that rests on one.
    """

    kind = "ledger"

    def __init__(self) -> None:
        self.ledger = Ledger()  # from which the next question starts

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts and inferences, as the answering role is shown them."""
        entries: list[LedgerFact | Inference] = [*self.ledger.facts, *self.ledger.inferences]
        ordered = sorted(entries, key=read_number)
        return tuple(dict.fromkeys(each.note for each in ordered))

    def keep(self, ledger: Ledger) -> None:
        """Hold what may outlive a question of this ledger, instead of what is held now."""
        facts = tuple(fact for fact in ledger.facts if fact.passage)
        inferences = tuple(each for each in ledger.inferences if all(each.passages))
        self.ledger = Ledger(facts=facts, inferences=inferences, made=ledger.made)

    def find_nodes(self) -> frozenset[NodeId]:
        """The passages of all facts, and of the facts that inferences rest on."""
        of_facts = (fact.passage for fact in self.ledger.facts)
        return frozenset((*of_facts, *(node for each in self.ledger.inferences for node in each.passages)))

    def forget(self, nodes: Collection[NodeId]) -> tuple[str, ...]:
        """Remove the facts of these passages, and the inferences that rest on one of them. Returns their notes.

        An inference that also rests on other passages goes too: it may repeat what only a removed one states.
        """
        gone = frozenset(nodes)
        facts = (fact for fact in self.ledger.facts if fact.passage not in gone)
        return self._replace(facts, (each for each in self.ledger.inferences if gone.isdisjoint(each.passages)))

    def shrink(self, most: int) -> tuple[str, ...]:
        """Keep `most` entries: first inferences, which hold what they rest on, then facts; of each the newest.

        Returns the notes of the others.
        """
        inferences = deque(self.ledger.inferences, most)
        return self._replace(deque(self.ledger.facts, most - len(inferences)), inferences)

    def _replace(self, facts: Iterable[LedgerFact], inferences: Iterable[Inference]) -> tuple[str, ...]:
        """Hold these entries instead. Returns the notes that are held no more."""
        before = self.notes
        self.ledger = replace(self.ledger, facts=tuple(facts), inferences=tuple(inferences))
        return tuple(note for note in before if note not in self.notes)

    def dump(self) -> dict[str, Any]:
        """The ledger as plain JSON data."""
        return dump(self.ledger)

    @classmethod
    def load(cls, data: object) -> LedgerMemory:
        """The memory of which `dump` made `data`. Raises StoreError for damaged data."""
        try:
            ledger = load(data)
        except UsageError as error:
            raise make_damage_error(str(error)) from None
        _check_labels(ledger)
        loaded = cls()
        loaded.keep(ledger)
        return loaded


def _check_labels(ledger: Ledger) -> None:
    """Raise StoreError unless each entry has a label of its own that was given before."""
    labels = [(_FACT, fact.label) for fact in ledger.facts] + [(_INFERENCE, each.label) for each in ledger.inferences]
    if not all(label.startswith(letter) for letter, label in labels):
        raise make_damage_error("an entry has a label of another kind")
    if not all(is_issued(label, letter, ledger.made) for letter, label in labels):
        raise make_damage_error(f"an entry has a label that was never given (the last one is {ledger.made})")
    if len(set(labels)) < len(labels):
        raise make_damage_error("two entries have the same label")
