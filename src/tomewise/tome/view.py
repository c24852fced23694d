"""A view of a tome, the whole of it or a part: what can be asked of it, and what can be read in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, overload

from tomewise.calls import NOT_STATED, read_calls
from tomewise.errors import UsageError
from tomewise.notebook_display import show_bars
from tomewise.tome.arguments import check_type, make_question, read_integer, read_names, read_texts
from tomewise.tome.open_tome import PartOfTome, names_damage, plain, plain_stream
from tomewise.tome.session import Sessions
from tomewise.types import FindKind, Form, Limit, Question, Scope
from tomewise.types.plain import describe_object

# What a tome works with is imported where it is first used: who only looks at a tome does not wait for it.
if TYPE_CHECKING:
    from tomewise.systems.answer import OnEvent
    from tomewise.systems.efforts import Effort
    from tomewise.systems.kit import System
    from tomewise.systems.registry import Choice
    from tomewise.tome.collected import Table
    from tomewise.tome.document_names import Documents
    from tomewise.tome.holdings import ReadLedger
    from tomewise.tome.reports import Price, Slice
    from tomewise.tome.session_record import Turn
    from tomewise.types import Answer, Column, Coverage, Event, Evidence, Hits, Lagging, PassageId, Progress


class TomeView(PartOfTome):
    """What can be asked of a tome, or of the part of it that lies `within` a scope (see `Tome.within`)."""

    def __repr__(self) -> str:
        return describe_object(self, self.store.address, within=str(self.scope or Scope()))

    @cached_property
    def documents(self) -> Documents:
        """The documents: called or iterated, their records; by a name, one with its text."""
        from tomewise.tome.document_names import Documents

        return Documents(self.store, self.scope, self.note_slice)

    @cached_property
    def _ledger(self) -> ReadLedger:
        from tomewise.tome.holdings import ReadLedger

        return ReadLedger()

    def note_read(self, passages: Iterable[PassageId]) -> None:
        """Count passages as read, for whoever shows them in another way."""
        self._ledger.add(passages)

    def note_slice(self, part: Slice) -> None:
        """Count the passages as read that lie in a part of a document whole."""
        self.note_read(each.id for each in part.passages if part.start <= each.start and each.end <= part.end)

    @property
    def coverage(self) -> Coverage:
        """How much of it was read through this view, and what nobody can have read.

        Read is what `ask` and `collect` showed to a model, what `search` found, and what `documents.read` gave out.
        """
        return self._ledger.describe(self.store, self.scope)

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions: by a name, the one to ask questions in that follow one another; iterated, their records."""
        return Sessions(self._opened, self.scope, self.note_read)

    @names_damage
    async def aask(
        self,
        question: str | Question,
        *,
        system: Choice | System | None = None,
        options: Sequence[str] = (),
        instructions: str = "",
        form: Form | None = None,
        force: bool = False,
        fresh: bool = False,
        turns: Sequence[Turn] = (),
        on_event: OnEvent | None = None,
        effort: Effort | None = None,
    ) -> Answer:
        """Answer a question, free or multiple-choice, or decline it.

        `system` is the text that names a system ("comorag", "comorag cycles=2", "comorag:without episodic"), a recipe
        (a function of a `Kit` that returns a `System`, or a `functools.partial` of one with its settings), or a
        `System` made from `Tome.kit`; without it, the default of this tome answers (see `Tome.open`). If the memory
        does not hold the answer, `force` asks for a guess; without it the answer is not `resolved` and says what is
        `missing`. Memory that lags behind the documents answers too, and `Answer.lagging` says what it has yet to take
        in; a `Question` with `current`, or the setting `current`, refuses it (NotBuilt). Memory that was never built is
        always refused. Replies of the model are kept, so a question that was interrupted, or is asked again, repeats no
        call; with `fresh` the model is asked again, and its replies replace those that were kept. Earlier `turns` of a
        chat make the question stand alone; its trace keeps it as it was asked. `on_event` hears what happens.
        `form` says what the answer shall look like: short, list, table, account or summary.
        In place of a system, `effort` says how much work the question is worth: "quick" for one search, "thorough" for
        a loop over what is built, "whole" to read all of the text, "auto" for what the question needs.
        Raises UsageError for an empty question, UnknownName, NotBuilt, ModelError.
        """
        from tomewise.tome.questions import list_shown

        asked = self._make_question(question, options=options, instructions=instructions, form=form, force=force)
        questions = self._opened.questions
        chosen = await questions.choose(system, effort, current=asked.current)
        answer = await questions.answer(asked, chosen, on_event, fresh=fresh, turns=turns)
        self._ledger.add(list_shown(answer))
        return answer

    ask = plain(aask)

    @names_damage
    async def aestimate(
        self,
        question: str | Question,
        *,
        system: Choice | System | None = None,
        effort: Effort | None = None,
    ) -> Price:
        """What a question would use, before anything is spent: calls, tokens, dollars, seconds at the measured speed.

        `system` and `effort` are those of `ask`. Kept replies and earlier turns of a session are not counted. Raises
        what `ask` raises before any call.
        """
        asked, questions = self._make_question(question), self._opened.questions
        return await questions.price(asked, await questions.choose(system, effort, current=asked.current))

    estimate = plain(aestimate)

    @names_damage
    async def aprice_above(
        self,
        limit: str,
        question: Question | None = None,
        *,
        system: Choice | None = None,
        effort: Effort | None = None,
        layers: Sequence[str] = (),
    ) -> Price | None:
        """The price of a question, or of a build, if it is above a limit such as "2 minutes"; else None.

        Nothing is counted where even the longest prompts keep the limit. What is not known counts as nothing.
        """
        from tomewise.systems.pricing import find_first, is_cheap, keeps
        from tomewise.tome.tome_memory import Memory

        try:
            most, questions = Limit.parse(limit), self._opened.questions
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None
        system = await questions.choose(system, effort, current=bool(question and question.current))
        asks = read_calls(find_first(questions.wire(system).system.loop)) if question else NOT_STATED
        if is_cheap(most, asks, self._opened.kit.model):
            return None
        if question:
            price = await self.aestimate(question, system=system)
        else:
            price = await Memory(self._opened).aestimate(system, layers=layers)
        return None if keeps(most, price.total) else price

    price_above = plain(aprice_above)

    def astream(
        self,
        question: str | Question,
        *,
        system: Choice | System | None = None,
        options: Sequence[str] = (),
        instructions: str = "",
        form: Form | None = None,
        force: bool = False,
        fresh: bool = False,
        turns: Sequence[Turn] = (),
        effort: Effort | None = None,
    ) -> AsyncGenerator[Event | Answer, None]:
        """Answer a question like `ask`, and yield each event as it happens; the last item is the answer.

        Where the provider streams, events `answer_part` give the answer as it is written: each has the new `text`,
        and whether it is to `replace` the parts before.
        To leave early cancels the calls under way: at once with `contextlib.aclosing`, or when the generator is freed.
        """
        from tomewise.tome.questions import stream_answer

        asked = self._make_question(question, options=options, instructions=instructions, form=form, force=force)
        return stream_answer(partial(self.aask, asked, system=system, fresh=fresh, turns=turns, effort=effort))

    stream = plain_stream(astream)

    @overload
    async def aask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        fresh: bool = False,
        return_exceptions: Literal[False] = False,
    ) -> list[Answer]: ...

    @overload
    async def aask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        fresh: bool = False,
        return_exceptions: Literal[True],
    ) -> list[Answer | Exception]: ...

    async def aask_many(
        self,
        questions: Iterable[str | Question],
        *,
        system: Choice | System | None = None,
        fresh: bool = False,
        return_exceptions: bool = False,
    ) -> list[Answer] | list[Answer | Exception]:
        """Answer several questions at the same time, within the model's limit. Answers have the order of questions.

        The first error cancels the other questions and is raised. With `return_exceptions` it takes the place of its
        answer instead.
        """
        from tomewise.tome.questions import answer_many

        self.store.check()
        self._opened.questions.wire(system)  # an error in its name is one of all questions
        ask = partial(self.aask, system=system, fresh=fresh)
        return await answer_many(ask, questions, return_exceptions=return_exceptions)

    ask_many = plain(aask_many)

    @names_damage
    async def asearch(
        self, query: str | Question, *, limit: int = 10, system: Choice | System | None = None
    ) -> list[Evidence]:
        """The evidence that a system's retriever finds for a query, best first, at most `limit` pieces.

        Makes no answering call; a system whose retrieval itself calls the model, such as `hipporag2`, still does so.
        `system` is that of `ask`. Raises UsageError, UnknownName, NotBuilt, ModelError.
        """
        question = self._make_question(query)
        limit = read_integer("limit", limit, "a whole number from 1 up")
        if limit < 1:
            raise UsageError(f"a search for {limit} pieces of evidence finds nothing: ask for 1 or more")
        found = await self._opened.questions.search(question, system, limit)
        self._ledger.add(source.passage for piece in found for source in piece.origins)
        return found

    search = plain(asearch)

    @names_damage
    async def afind(
        self,
        *wanted: str,
        kind: FindKind = "words",
        case: bool = False,
        limit: int | None = None,
        skip: int = 0,
    ) -> Hits:
        """Every place of the documents that has one of these texts: exactly, without a model, over the whole text.

        "words" are compared as quotations are: without differences of case, accents, marks, ligatures and hyphens at
        the end of a line; with `case`, capitals count. A "value" (a number, a date, a time, a quantity) is found
        in other spellings: "1,200" as "twelve hundred". Of a "name" the other names are found too that the documents
        give for it, as in "World Health Organization (WHO)". A "pattern" is a regular expression of RE2, for which one
        document has ten seconds. `limit` and `skip` choose the places that are given; all count. A scope of entities
        has the places that begin in its passages. Raises UsageError for what cannot be looked for, and for more than a
        million places.
        """
        from tomewise.recall.hits import find_in_documents
        from tomewise.tome.holdings import list_unread

        read_texts("what to find", wanted)
        check_type("case", case, bool, "True or False")
        most = None if limit is None else read_integer("limit", limit, "a whole number")
        skip = read_integer("skip", skip, "a whole number")

        def find() -> Hits:
            hits = find_in_documents(self.store, self.scope, wanted, kind, case=case, limit=most, skip=skip)
            unread = tuple(list_unread(self.store, self.scope))
            return replace(hits, coverage=replace(hits.coverage, unread=unread))

        return await asyncio.to_thread(find)

    find = plain(afind)

    @names_damage
    async def averify(self, text: str, *, judge: bool = False) -> Answer:
        """Prove a text, such as a draft or a report of an agent, by the documents: each sentence, item and row of it.

        The answer has the text, and its `statements` with support and quotes: "quoted" (the words stand there),
        "inferred" (the values stand, and most of the words), "contradicted" (a value or a negation differs) or "none".
        No model is asked; with `judge` it is asked about statements that are inferred or none, some in one call.
        With the setting `only_supported`, the text is shown without what is not proved. Raises UsageError, ModelError.
        """
        check_type("text", text, str, "a text")
        check_type("judge", judge, bool, "True or False")
        if not text.strip():
            raise UsageError("the text is empty: there is nothing to verify")
        return await self._opened.questions.verify(self._make_question(text), judge=judge)

    verify = plain(averify)

    @names_damage
    async def acollect(
        self,
        asked: str,
        *,
        columns: Sequence[str | Column] = (),
        key: Sequence[str] = (),
        figures: Sequence[str] = (),
        fresh: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Table:
        """A table of all things of one kind: every passage is read for it, and each cell is a statement with quotes.

        `columns` are written as "name", "amount:number" or "paid:date: when it was paid"; without them one call plans
        them, and what counts as an item. Rows with the same values in the columns of the `key` are one thing; of
        likely ones a model says which are. `figures` such as "sum amount" or "last paid" are computed by code, with the
        rows that they rest on; the rows are counted always. `Table.all_read` says whether every passage was read and
        nothing was left out. What was asked of a passage is kept, so a document that is added costs its own passages.
        Raises UsageError, NotBuilt, ModelError.
        """
        from tomewise.tome.collecting import collect_table, read_columns

        check_type("fresh", fresh, bool, "True or False")
        listed = (columns,) if isinstance(columns, str) else columns
        question, planned = self._make_question(asked), read_columns(listed)
        named, wanted = read_names("key", key), read_names("figures", figures)
        with show_bars(on_progress) as report:
            kit = self._opened.kit
            table, *seen = await collect_table(kit, question, planned, named, wanted, report, fresh=fresh)
        self._ledger.add(*seen)
        return table

    collect = plain(acollect)

    @names_damage
    async def alag(self, question: str | Question, *, system: Choice | System | None = None) -> Lagging | None:
        """How far the memory of a system lags for this question, and what a build would use; None if it does not.

        This is what `Answer.lagging` says. Calls no model. Raises what `ask` raises before any call.
        """
        asked = make_question(question, self.scope)
        ready = await self._opened.questions.prepare(asked, system)
        return await ready.lag.describe(asked) if ready.lag else None

    lag = plain(alag)

    @names_damage
    async def acheck(self, question: str | Question, *, system: Choice | System | None = None) -> None:
        """Raise what `ask` would raise before any call: UsageError, UnknownName, NotBuilt."""
        await self._opened.questions.prepare(self._make_question(question), system)

    check = plain(acheck)
