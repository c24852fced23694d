"""The desk of a loop: it chooses the evidence that fits, shows it to a model, asks for an answer, and cites it.

Of a reply to the answering role it makes an `Answer`: with the chosen option, or declined, and with verified citations.
"""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic

from tomewise.errors import PromptTooLong
from tomewise.language.fences import get_letter
from tomewise.language.prompts import needs_short
from tomewise.language.roles import ANSWER, AnswerIn, AnswerOut, Shown
from tomewise.language.wrapped import find_name, find_room
from tomewise.loops.answer_parts import ask_answer
from tomewise.loops.citing import cite, only_quotes, prepare_quoting, quote_sentences
from tomewise.loops.evidence import Count, describe_origin, fit_to_budget, fit_to_window, measure_texts, name_kind
from tomewise.loops.last_prompt import DEPTH, Context, Layout, Note, Searched, fuse, join
from tomewise.loops.statements import Marked, prove, read_marks
from tomewise.recall.ranking import as_evidence, drop_repeats, take_turns
from tomewise.store.records import PASSAGES
from tomewise.types import (
    Answer,
    Coverage,
    Evidence,
    In,
    LanguageModel,
    NodeId,
    Out,
    Question,
    Retriever,
    Role,
    Scope,
    Statement,
)
from tomewise.types.place import describe_place

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

Arrange = Callable[[Sequence[Evidence]], Sequence[Evidence]]
_NOTES = 3  # notes have at most one part in so many of a budget
_log = logging.getLogger(__name__)
_LETTER_FIRST = re.compile(r"\s*(?:[Oo]ption\s+)?[(\[]?([A-Za-z])(?:[)\].:]|$)")  # "B) the clerk", "option B"


@dataclass(frozen=True, slots=True)
class Prepared(Generic[In]):
    """The input of a role, the evidence in it, and all the evidence that might have been in it."""

    input: In
    """What the role is given."""
    evidence: Sequence[Evidence]
    """What has room in it, in the order of the labels."""
    found: Sequence[Evidence]
    """All that a search brought, shown or not."""
    labelled: Sequence[Evidence]
    """What labels name: the evidence, with passages joined that follow one another."""
    dropped: int = 0
    """How much of what was found has no room in it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the answering role replied, and the answer that its reply makes."""

    reply: AnswerOut
    """The reply itself."""
    answer: Answer
    """The answer, with verified citations; not resolved if the role declined."""


@dataclass(eq=False)
class Desk:
    """Chooses evidence that fits, shows it to a model under labels and with places, cites it, and asks for answers.

    `count` gives the tokens of texts, see `make_token_counter`. It shows what the loop found, and nothing else, the
    best of each search in turn. `carry` makes what the answering role sees of a ranking: which pieces, in which form; a
    budget counts that form. A desk remembers nothing of a question.
    """

    store: Texts
    model: LanguageModel
    count: Count
    carry: Arrange = list

    @property
    def layout(self) -> Layout:
        """What fills budgets, with passages one by one."""
        return Layout(self.store, self.count, joins=False)

    async def search_beside(self, question: Question) -> list[Searched]:
        """What the desk finds for the question beside what a loop finds: nothing."""
        return []

    async def rank(self, searches: Sequence[Searched], within: Scope | None) -> list[Evidence]:
        """All that searches found as one ranking: the best of each in turn."""
        return drop_repeats(take_turns([search.found for search in searches]))

    def show(self, evidence: Sequence[Evidence]) -> list[Shown]:
        """Evidence as a prompt shows it: a label (E1, E2, ...), its kind, its text, and where it is from."""
        positions = self._find_places(source for piece in evidence for source in piece.sources)
        documents = self.store.documents({document for document, _ in positions.values()})
        totals = {record.id: record.passages for record in documents}
        shown = []
        for number, piece in enumerate(evidence, start=1):
            places = [positions[each] for each in piece.sources if each in positions]
            document, place = describe_origin(places, totals)
            shown.append(
                Shown(
                    label=f"E{number}",
                    text=piece.text,
                    title=piece.title,
                    kind=name_kind(piece),
                    document="" if piece.title else document,
                    place=", ".join(filter(None, (describe_place(piece.place), place))),
                )
            )
        return shown

    def fetch(self, nodes: Sequence[NodeId], within: Scope | None) -> list[Evidence]:
        """The passages among these nodes that are within the scope, in this order; their score is 0."""
        found, allowed = self.store.find(nodes), self.store.keys_within(within)
        keys = [found[node].key for node in nodes if node in found]
        inside = [key for key in keys if allowed is None or key in allowed]
        return [as_evidence(passage, 0.0) for passage in self.store.passages(inside).values()]

    def put_in_order(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """Layers in the order in which they first occur, and in each the evidence in document order."""
        layers = list(dict.fromkeys(piece.layer for piece in evidence))
        positions = self._find_places(piece.sources[0] for piece in evidence if piece.sources)

        def make_key(piece: Evidence) -> tuple[int, str, int, int, str]:
            position = positions.get(piece.sources[0], ("", 0)) if piece.sources else ("", 0)
            return (layers.index(piece.layer), *position, -len(piece.sources), piece.id)

        return sorted(evidence, key=make_key)

    def _find_places(self, passages: Iterable[NodeId]) -> dict[NodeId, tuple[str, int]]:
        """The document and the position of each of these passages that exists."""
        found = self.store.find(passages).items()
        return {node: (each.document, each.position) for node, each in found if each.document is not None}

    def measure_room(self, role: Role[Any, Any], used: int = 0) -> int:
        """The tokens of evidence that a prompt of this role may hold, beside `used` tokens.

        A third of the window is left free: the model counts tokens in another way, and the prompt has its own words.
        """
        return max(0, find_room(self.model, role) - used) * 2 // 3

    def measure_answer_room(self, question: Question) -> int:
        """The same for the answering role beside the question, which some roles are given twice."""
        asked = self.model.count_input_tokens(ANSWER, make_answer_input(question, [])) + sum(
            self.count([question.text])
        )
        return self.measure_room(ANSWER, asked)

    def fit(
        self,
        role: Role[In, Out],
        found: Sequence[Evidence],
        given: In,
        *,
        budget: int | None = None,
        arrange: Arrange = list,
    ) -> Prepared[In]:
        """The input with the first pieces of evidence that have room, in the order into which `arrange` puts them.

        `budget` is in tokens; None for as much as the model's window holds.
        """
        found = list(found)
        best = found if budget is None else fit_to_budget(found, budget, self.count)
        shown = self.show(best)  # labels and order do not change the number of tokens
        fitting = fit_to_window(best, self.model, role, lambda pieces: add_evidence(given, shown[: len(pieces)]))
        evidence = list(arrange(fitting))
        labelled = add_evidence(given, self.show(evidence))
        return Prepared(labelled, evidence, found, evidence, len(found) - len(evidence))

    async def prepare(
        self,
        question: Question,
        found: Sequence[Evidence],
        *,
        budget: int | None,
        notes: Sequence[str] = (),
        arrange: Arrange = list,
    ) -> Prepared[AnswerIn]:
        """The input of the answering role, see `fit`. The role may decline unless the question asks for a guess.

        Of a budget, notes have at most a third.
        """

        def fit() -> Prepared[AnswerIn]:
            texts, room = list(notes), budget
            if room is not None and texts:
                texts = self.layout.fit_texts(texts, room // _NOTES)
                room -= sum(measure_texts(texts, self.count))
            given = make_answer_input(question, [], notes=texts, may_decline=not question.force)
            return self.fit(ANSWER, self.carry(found), given, budget=room, arrange=arrange)

        prepared = await asyncio.to_thread(fit)
        # What is carried may be less than what was found.
        return replace(prepared, found=found, dropped=len(found) - len(prepared.evidence))

    async def prepare_context(self, question: Question, context: Context, *, may_decline: bool) -> Prepared[AnswerIn]:
        """See `label`."""
        return await asyncio.to_thread(self.label, question, context, may_decline)

    def label(self, question: Question, context: Context, may_decline: bool) -> Prepared[AnswerIn]:
        """The input of the answering role with all of this context, in the order of the text."""
        labelled = join(self.put_in_order(context.evidence), context.passages)
        given = make_answer_input(question, self.show(labelled), notes=context.notes, may_decline=may_decline)
        return Prepared(given, context.evidence, context.evidence, labelled, context.cut)

    async def attempt(self, question: Question, prepared: Prepared[AnswerIn], *, final: bool = True) -> Attempt:
        """Ask the answering role. Parts of a `final` answer are shown while the model writes it (`answer_parts`).

        A model that only quotes gives quotations in place of an answer. Raises ModelError.
        """
        if only_quotes(self.model):
            return await self._quote(prepared, final=final)
        while True:
            try:
                reply = await ask_answer(self.model, prepared.input, final=final)
                break
            except PromptTooLong as error:
                before = len(prepared.evidence)
                prepared = await asyncio.to_thread(self._shrink, prepared, error)
                warnings.warn(
                    f"asked again with {len(prepared.evidence)} of {before} pieces of evidence: {error}", stacklevel=2
                )
        return Attempt(reply, await asyncio.to_thread(read_answer, reply, question, prepared, self.store))

    def _shrink(self, prepared: Prepared[AnswerIn], error: PromptTooLong) -> Prepared[AnswerIn]:
        """The same with less evidence, the best: what fits by the numbers of the server, or half without numbers.

        Raises the error if no evidence has room.
        """
        left = error.window - ANSWER.limit_reply(short=needs_short(find_name(self.model, ANSWER), error.window))
        share = left / error.asked if error.window and error.asked else 0.5
        most = share * self.model.count_input_tokens(ANSWER, prepared.input)
        ranks = {node: rank for rank, piece in enumerate(prepared.found) for node in (piece.id, *piece.sources)}

        def find_rank(piece: Evidence) -> int:
            return min(ranks.get(node, len(ranks)) for node in (piece.id, *piece.sources))

        def choose(chosen: Sequence[Evidence]) -> list[Evidence]:
            return [piece for piece in prepared.labelled if piece in chosen]

        def make_input(chosen: Sequence[Evidence]) -> AnswerIn:
            return add_evidence(prepared.input, self.show(choose(chosen)))

        best = sorted(prepared.labelled, key=find_rank)
        fitting = fit_to_window(best[:-1], self.model, ANSWER, make_input, most)
        if not fitting:
            raise error
        labelled = choose(fitting)
        inside = {
            node for piece in labelled for node in (piece.id, *(piece.sources if piece.layer == PASSAGES else ()))
        }
        evidence = [piece for piece in prepared.evidence if piece.id in inside]
        dropped = prepared.dropped + len(prepared.evidence) - len(evidence)
        return replace(prepared, input=make_input(fitting), evidence=evidence, labelled=labelled, dropped=dropped)

    async def _quote(self, prepared: Prepared[AnswerIn], *, final: bool) -> Attempt:
        quote_input, passages = await asyncio.to_thread(prepare_quoting, self.store, prepared.input, prepared.found)
        reply = await ask_answer(self.model, quote_input, final=final)
        statements = await asyncio.to_thread(quote_sentences, self.store, reply, passages)
        resolved = bool(statements) and not reply.is_declined(prepared.input.may_decline)
        answer = Answer(
            text="",
            choice=reply.choice if resolved else None,
            statements=statements,
            only_quotes=bool(statements),
            evidence=tuple(prepared.evidence),
            coverage=Coverage(read=len(passages)),
            resolved=resolved,
            claimed=reply.claim if resolved else "none",
            missing=reply.missing,
        )
        return Attempt(reply, answer)

    async def answer(self, question: Question, prepared: Prepared[AnswerIn], *, final: bool = True) -> Answer:
        """Ask the answering role, for the answer alone. See `attempt`."""
        return (await self.attempt(question, prepared, final=final)).answer


@dataclass(eq=False)
class FusingDesk(Desk):
    """The desk of our own systems: it shows the best of all that searches find as one ranking (`loops.last_prompt`).

    It searches `plain` for every question; without it, the loop's own search is the plain one.
    """

    plain: Retriever | None = None

    @property
    def layout(self) -> Layout:
        """What fills budgets, with passages joined that follow one another."""
        return Layout(self.store, self.count)

    @property
    def alone(self) -> FusingDesk:
        """The same desk, for a loop whose own search is the plain one."""
        return replace(self, plain=None)

    async def search_beside(self, question: Question) -> list[Searched]:
        """What its own search finds for the question."""
        if self.plain is None:
            return []
        return [Searched(await self.plain.retrieve(question.text, DEPTH, within=question.within))]

    async def rank(self, searches: Sequence[Searched], within: Scope | None) -> list[Evidence]:
        """All that searches found as one ranking, see `fuse`."""
        return await asyncio.to_thread(fuse, self.store, searches, within)

    async def prepare(
        self,
        question: Question,
        found: Sequence[Evidence],
        *,
        budget: int | None,
        notes: Sequence[str] = (),
        arrange: Arrange = list,
    ) -> Prepared[AnswerIn]:
        """See `lay_out`; in the order of the text, whatever `arrange` is."""
        return await self.lay_out(question, found, budget, list(map(Note, notes)))

    async def lay_out(
        self, question: Question, found: Sequence[Evidence], budget: int | None, notes: Sequence[Note] = ()
    ) -> Prepared[AnswerIn]:
        """What fits of a ranking and of the notes, see `Layout`, in the order of the text."""
        room = await asyncio.to_thread(self.measure_answer_room, question)
        budget = room if budget is None else min(budget, room)
        context = await asyncio.to_thread(self.layout.lay_out, found, budget, notes)
        prepared = await self.prepare_context(question, context, may_decline=not question.force)
        return replace(prepared, found=found)


def add_evidence(given: In, shown: Sequence[Shown]) -> In:
    """The input of a role with this evidence in it."""
    return given.model_copy(update={"evidence": shown})


def make_answer_input(
    question: Question, shown: Sequence[Shown], *, notes: Sequence[str] = (), may_decline: bool = False
) -> AnswerIn:
    """The input of the answering role."""
    return AnswerIn(
        question=question.text,
        options=list(question.options),
        instructions=question.instructions,
        form=None if question.options else question.form,
        evidence=list(shown),
        notes=list(notes),
        may_decline=may_decline,
    )


def read_answer(reply: AnswerOut, question: Question, prepared: Prepared[AnswerIn], store: Texts) -> Answer:
    """Make an answer from a reply of the answering role to what was prepared, and verify its quotations.

    While declining is allowed, a reply counts as declined if it names a letter but declines beside it, or is a
    guess, for which nobody asked. A letter alone answers if the reply claims full support.
    """
    may_decline, evidence = prepared.input.may_decline, prepared.evidence
    refused = may_decline and (reply.refused or (reply.claim != "full" and reply.is_declined(may_decline)))
    choice = None if refused else find_choice(reply, question)
    resolved = choice is not None or not (question.options or reply.is_declined(may_decline))
    about: dict[str, Any] = {
        "coverage": Coverage(dropped=prepared.dropped),
        "unfinished": reply.unfinished,
        "reach": reply.reach,
        "item": reply.item,
    }
    if not resolved:
        return replace(decline(reply.missing, evidence), **about)
    cited = cite(store, reply.quotes, prepared.labelled)
    written = (
        Marked(question.options[ord(choice) - ord("A")])
        if choice
        else read_marks(reply.answer, len(prepared.input.evidence))
    )
    try:
        statements = prove(written, cited, question.text)
    except Exception:  # noqa: BLE001 - what was paid for is not lost
        _log.exception("an answer could not be proved: it is shown as unsupported")
        text = written.text
        statements = (Statement(text=text, end=len(text), quotes=cited.quotes),)
    return Answer(
        text=written.text,
        choice=choice,
        statements=tuple(_weaken(each, reply, None if number else choice) for number, each in enumerate(statements)),
        evidence=tuple(evidence),
        claimed=reply.claim,
        missing=reply.missing if reply.claim == "partly" else "",
        dropped_quotes=cited.dropped,
        derived_quotes=cited.derived,
        **about,
    )


def _weaken(statement: Statement, reply: AnswerOut, choice: str | None) -> Statement:
    """The statement with no more support than the model itself claims; it is right where it owns a guess."""
    support = statement.support
    if reply.is_guess:
        support = "none"
    elif reply.claim == "partly" and support == "quoted":
        support = "inferred"
    return replace(statement, support=support, choice=choice)


def decline(missing: str = "", evidence: Sequence[Evidence] = ()) -> Answer:
    """No answer, with what is missing for one and the evidence that was shown."""
    return Answer(text="", evidence=tuple(evidence), resolved=False, claimed="none", missing=missing)


def find_choice(reply: AnswerOut, question: Question) -> str | None:
    """The letter of the chosen option: as stated, else the option that the answer spells out."""
    letters = [get_letter(index) for index in range(len(question.options))]
    options = [_strip_marks(option) for option in question.options]
    for wording in (reply.choice or "", reply.answer):
        words = _strip_marks(wording)
        if words.upper() in letters:
            return words.upper()
        if words in options:
            return letters[options.index(words)]
        first = _LETTER_FIRST.match(wording)
        if first and first[1].upper() in letters:
            return first[1].upper()
    return None


def _strip_marks(wording: str) -> str:
    return wording.strip(" .():[]\"'\n").casefold()
