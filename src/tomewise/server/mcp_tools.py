"""The MCP tools. Each is an operation of the server (`operation_list`) in the form that suits agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial, wraps
from typing import Annotated, Any, TypeVar, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from tomewise.concurrency import run_side_by_side
from tomewise.errors import PartError, TomewiseError, UsageError
from tomewise.language.fences import oneline
from tomewise.loops.answer_parts import answer_whole
from tomewise.recall.outline import Outline, make_outline
from tomewise.server.bodies import LimitText
from tomewise.server.choosing import choose_bounded
from tomewise.server.error_replies import HttpError, log_error, refuse_price
from tomewise.server.limits import MOST_ADDED
from tomewise.server.mcp_results import (
    ITEM_BYTES,
    MOST_BYTES,
    AddResult,
    AnswerResult,
    BuildResult,
    DocumentsResult,
    EntityResult,
    FindResult,
    OutlineResult,
    OverviewResult,
    RemoveResult,
    Result,
    ScopeResult,
    SearchResult,
    TableResult,
    TextResult,
    VerifyResult,
    cut_text,
    fit,
    make_failure,
    make_overview,
    make_reply,
    neutralise,
)
from tomewise.server.named_tomes import LEFT, Admit, Stretch, find_part, find_tome, hide_addresses
from tomewise.server.scope_list import ScopeList, describe_scope
from tomewise.server.streaming import ClientLeft
from tomewise.store.records import DocumentRecord
from tomewise.systems.efforts import Effort
from tomewise.systems.registry import DEFAULT
from tomewise.tome.collected import Table
from tomewise.tome.document_names import show_name
from tomewise.tome.entities import Entity, find_entity
from tomewise.tome.reports import BuildReport, Slice, read_slice
from tomewise.tome.tome import Tome
from tomewise.tome.view import TomeView
from tomewise.types import (
    Answer,
    Document,
    Event,
    Evidence,
    FindKind,
    Form,
    Hits,
    Limit,
    Progress,
    Question,
    Statement,
    read_plain,
)

T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., Coroutine[Any, Any, Result]])
_MOST_NEIGHBOURS = 20  # of an entity
_MOST_COUNTED = 50  # of one kind whose hits are counted
_MOST_SOURCES = 20  # passages that are named for one piece of evidence

TomeName = Annotated[str, Field(description="The name of the tome; needed only where there are several.")]
Text = Annotated[str, Field(max_length=20_000)]
Name = Annotated[str, Field(max_length=5_000)]
Names = Annotated[list[Name], Field(max_length=100)]
Documents = Annotated[Names, Field(description="Look only into these documents.")]
Conditions = Annotated[Names, Field(description="Tests of metadata such as year>=1911; all must hold.")]
ScopeId = Annotated[str, Field(max_length=100, description="The id of an open scope, in place of both.")]
Count = Annotated[int, Field(ge=1, le=100)]
Skip = Annotated[int, Field(ge=0, le=1_000_000, description="Leave out so many from the start.")]


def reply_with(tool: Call, tomes: Mapping[str, Tome]) -> Call:
    """The tool, whose result becomes a reply; where it fails, that is the sentence that the command line prints."""

    @wraps(tool)
    async def run(**arguments: Any) -> CallToolResult:
        try:
            return make_reply(await tool(**arguments))
        except PartError as error:
            log_error(error)
            message = f"{error.part} failed: the log of the server says where"
        except (TomewiseError, HttpError) as error:
            message = error.message if isinstance(error, HttpError) else str(error)
        except TimeoutError:
            message = "the call took longer than this server allows: ask a smaller question or another system"
        except ClientLeft:
            message = "the client left"
        except Exception as error:  # noqa: BLE001 - a bug of ours: the log has it, without keys
            log_error(error)
            message = f"an error of Tomewise itself, {type(error).__name__}: the log of the server says where"
        return make_failure(hide_addresses(message, tomes))

    return cast(Call, run)


class Tools:
    """Each public method is a tool; its signature and docstring are what a client sees.

    Questions and searches run inside `admit`.
    """

    def __init__(self, tomes: Mapping[str, Tome], admit: Admit = nullcontext) -> None:
        self._tomes = tomes
        self._admit = admit
        self._scopes = ScopeList()

    async def ask(
        self,
        question: Text,
        context: Context[Any, Any],
        options: Annotated[list[Text], Field(max_length=26)] = [],  # noqa: B006 - pydantic copies it
        instructions: Annotated[Text, Field(description="How to answer.")] = "",
        form: Annotated[Form | None, Field(description="What the answer shall look like.")] = None,
        system: Annotated[Name, Field(description="How to answer: the name of a system with its settings.")] = "",
        documents: Documents = [],  # noqa: B006
        where: Conditions = [],  # noqa: B006
        scope: ScopeId = "",
        force: Annotated[bool, Field(description="Guess where the memory lacks the answer.")] = False,
        tome: TomeName = "",
        effort: Annotated[
            Effort | None,
            Field(description="How much work it is worth, in place of a system: whole reads all of the text."),
        ] = None,
        accept: Annotated[LimitText | None, Field(description="Where it would cost more, say what it costs.")] = None,
    ) -> AnswerResult:
        """Answer a question from a tome, with verified quotations, or decline it. May call the tome's model."""
        _, opened = find_tome(tome, self._tomes)
        async with send_progress(context, partial(_describe_event, opened)) as on_event, self._admit():
            part = await self._narrow(opened, documents, where, scope)
            asked = Question(text=question, options=tuple(options), instructions=instructions, form=form, force=force)
            variant = choose_bounded(system, {}) if system else None
            if accept is not None:
                refuse_price(await part.aprice_above(accept, asked, system=variant, effort=effort))
            with answer_whole():
                answer = await part.aask(asked, system=variant, on_event=on_event, effort=effort)
        whole = neutralise(Answer, await asyncio.to_thread(opened.documents.names.hide, answer))
        return fit(partial(_cut_answer, whole), len(_list_sources(whole)))

    async def search(
        self,
        query: Text,
        limit: Annotated[Count, Field(description="At most so many pieces of evidence.")] = 10,
        skip: Skip = 0,
        documents: Documents = [],  # noqa: B006
        where: Conditions = [],  # noqa: B006
        scope: ScopeId = "",
        tome: TomeName = "",
    ) -> SearchResult:
        """Find the passages nearest to a query, by words and by meaning. Calls no model."""
        _, opened = find_tome(tome, self._tomes)
        async with self._admit():
            part = await self._narrow(opened, documents, where, scope)
            found = await part.asearch(query, system=DEFAULT, limit=skip + limit)
        kept = [
            replace(piece, origins=piece.origins[:_MOST_SOURCES], metadata=_keep_small(piece.metadata))
            for piece in found[skip:]
        ]
        pieces = neutralise(list[Evidence], await asyncio.to_thread(opened.documents.names.hide, kept))

        def make(count: int) -> SearchResult:
            left = len(pieces) - count
            rest = f"{left} more: call search again with skip={skip + count} and limit={left}." if left else ""
            return SearchResult(pieces=pieces[:count], rest=rest)

        return fit(make, len(pieces))

    async def find(
        self,
        wanted: Annotated[Names, Field(min_length=1, description="What to find: any of these texts.")],
        kind: Annotated[
            FindKind, Field(description="words, a value in any spelling, a name with its aliases, or a pattern of RE2.")
        ] = "words",
        case: Annotated[bool, Field(description="Tell capitals from small letters.")] = False,
        limit: Annotated[int, Field(ge=0, le=100, description="List at most so many places; all are counted.")] = 20,
        skip: Skip = 0,
        documents: Documents = [],  # noqa: B006
        where: Conditions = [],  # noqa: B006
        scope: ScopeId = "",
        tome: TomeName = "",
    ) -> FindResult:
        """Find every place that has a text, exactly, with its line, and count them all. Calls no model."""
        _, opened = find_tome(tome, self._tomes)
        async with self._admit():
            part = await self._narrow(opened, documents, where, scope)
            hits = await part.afind(*wanted, kind=kind, case=case, limit=limit, skip=skip)
        fewer = replace(hits, counts={name: each[:_MOST_COUNTED] for name, each in hits.counts.items()})
        hidden = await asyncio.to_thread(opened.documents.names.hide, fewer)
        whole = neutralise(Hits, hidden, ITEM_BYTES // 4)

        def make(count: int) -> FindResult:
            left = hits.total - skip - count
            rest = f"{left} more: call find again with skip={skip + count}." if left > 0 else ""
            return FindResult(hits=replace(whole, quotes=whole.quotes[:count]), rest=rest)

        return fit(make, len(whole.quotes))

    async def collect(
        self,
        asked: Annotated[Text, Field(description="What to collect: all things of one kind.")],
        context: Context[Any, Any],
        columns: Annotated[Names, Field(description='As "name", "paid:number", "day:date"; none: planned.')] = [],  # noqa: B006
        key: Annotated[Names, Field(description="Columns by which two rows are the same thing.")] = [],  # noqa: B006
        figures: Annotated[Names, Field(description='What to compute, such as "sum paid".')] = [],  # noqa: B006
        skip: Skip = 0,
        documents: Documents = [],  # noqa: B006
        where: Conditions = [],  # noqa: B006
        scope: ScopeId = "",
        tome: TomeName = "",
    ) -> TableResult:
        """Make a table of all things of one kind: every passage is read, once. Calls the tome's model."""
        _, opened = find_tome(tome, self._tomes)
        async with send_progress(context, str), self._admit():
            part = await self._narrow(opened, documents, where, scope)
            table = await part.acollect(asked, columns=columns, key=key, figures=figures)
        hidden = await asyncio.to_thread(opened.documents.names.hide, table)
        whole = neutralise(Table, hidden, ITEM_BYTES // 4)

        def make(count: int) -> TableResult:
            left = len(whole.rows) - skip - count
            rest = f"{left} more: call collect again with skip={skip + count}." if left > 0 else ""
            few = replace(whole, rows=whole.rows[skip : skip + count], doubtful=whole.doubtful[:_MOST_COUNTED])
            shorter = tuple(
                replace(each, rows=each.rows[:_MOST_COUNTED], left_out=each.left_out[:_MOST_COUNTED])
                for each in few.figures
            )
            return TableResult(table=replace(few, figures=shorter), rows=len(whole.rows), rest=rest)

        return fit(make, len(whole.rows[skip:]))

    async def verify(
        self,
        text: Text,
        context: Context[Any, Any],
        judge: Annotated[bool, Field(description="Ask the tome's model about what is inferred or none.")] = False,
        skip: Skip = 0,
        documents: Documents = [],  # noqa: B006
        where: Conditions = [],  # noqa: B006
        scope: ScopeId = "",
        tome: TomeName = "",
    ) -> VerifyResult:
        """Verify a text, such as a draft of yours: each statement is quoted, inferred, contradicted or none.

        Each comes with the sentences of documents that show it. Calls no model unless you ask for a judge.
        """
        _, opened = find_tome(tome, self._tomes)
        async with send_progress(context, str), self._admit():
            part = await self._narrow(opened, documents, where, scope)
            answer = await part.averify(text, judge=judge)
        about = {"summary": " ".join(answer.remarks), "unread": cut_text(answer.coverage.remark, ITEM_BYTES)}
        hidden = await asyncio.to_thread(opened.documents.names.hide, answer.statements[skip:])
        statements = neutralise(list[Statement], hidden, ITEM_BYTES // 4)

        def make(count: int) -> VerifyResult:
            left = len(statements) - count
            rest = f"{left} more: call verify again with skip={skip + count}." if left else ""
            return VerifyResult(**about, statements=statements[:count], rest=rest)

        return fit(make, len(statements))

    async def within(
        self,
        documents: Documents = [],  # noqa: B006
        where: Conditions = [],  # noqa: B006
        scope: ScopeId = "",
        tome: TomeName = "",
    ) -> ScopeResult:
        """Open a part of a tome under an id, or ask how much of an open one was read. Calls no model.

        Give the id to other tools as scope: they look only there, and what they show counts as read.
        """
        _, opened = find_tome(tome, self._tomes)
        part = await self._narrow(opened, documents, where, scope)
        id = scope or self._scopes.open(opened, part)
        return ScopeResult(**await asyncio.to_thread(describe_scope, id, part, opened))

    async def _narrow(self, tome: Tome, documents: Names, where: Names, scope: str) -> TomeView:
        if scope:
            if documents or where:
                raise UsageError("a scope has its documents and conditions: name it alone, or open another")
            return self._scopes.find(tome, scope)
        return await asyncio.to_thread(lambda: tome.within(*tome.documents.names.match_all(documents), where=where))

    async def read(
        self,
        document: Annotated[Name, Field(description="The id of a document; or name a passage.")] = "",
        start: Annotated[int, Field(ge=0, description="The first character of the document.")] = 0,
        end: Annotated[int | None, Field(ge=0, description="Where to stop; null: the end of the document.")] = None,
        passage: Annotated[Name, Field(description="The id of a passage, instead of a document.")] = "",
        neighbours: Annotated[int, Field(ge=0, le=20, description="So many passages before and after it too.")] = 0,
        part: Annotated[Name, Field(description='"page 3", "chapter NAME" or "lines 1-20" of the document.')] = "",
        scope: ScopeId = "",
        tome: TomeName = "",
    ) -> TextResult:
        """Read a part of a document, or a passage with its neighbours. Calls no model."""
        _, opened = find_tome(tome, self._tomes)
        view = self._scopes.find(opened, scope) if scope else opened
        return await asyncio.to_thread(_read, view, document, (start, end), passage, neighbours, part)

    async def outline(self, document: Name, skip: Skip = 0, tome: TomeName = "") -> OutlineResult:
        """Show how a document is laid out: its headings, pages, speakers and lengths. Calls no model."""
        _, opened = find_tome(tome, self._tomes)
        found = await asyncio.to_thread(lambda: make_outline(opened.documents.names.match(document), opened.store))
        speakers = dict(list(found.speakers.items())[:_MOST_COUNTED])
        whole = neutralise(Outline, opened.documents.names.hide(replace(found, speakers=speakers)))

        def make(count: int) -> OutlineResult:
            left = len(whole.sections) - skip - count
            rest = f"{left} more: call outline again with skip={skip + count}." if left > 0 else ""
            return OutlineResult(outline=replace(whole, sections=whole.sections[skip : skip + count]), rest=rest)

        return fit(make, len(whole.sections[skip:]))

    async def list_documents(self, limit: Count = 50, skip: Skip = 0, tome: TomeName = "") -> DocumentsResult:
        """List the documents of a tome by id, with titles, sizes and metadata. Calls no model."""
        _, opened = find_tome(tome, self._tomes)
        records = await asyncio.to_thread(lambda: opened.documents.names.hide(opened.store.documents()))
        records.sort(key=lambda record: record["id"])
        return fit(partial(_list_records, records, skip), len(records[skip : skip + limit]))

    async def overview(self, tome: TomeName = "") -> OverviewResult:
        """Say what a tome holds: its size, its memory layers, the fields of its metadata. Calls no model."""
        name, opened = find_tome(tome, self._tomes)
        return await asyncio.to_thread(make_overview, name, opened)

    async def entity(self, name: Name, skip: Skip = 0, tome: TomeName = "") -> EntityResult:
        """List the facts about an entity (a person, a place, a thing) and the passages that name it.

        Needs a graph, which a build of a system such as hipporag2 makes. Calls no model.
        """
        _, opened = find_tome(tome, self._tomes)
        entity = await asyncio.to_thread(find_entity, name, opened.store)
        entity = replace(entity, neighbours=entity.neighbours[:_MOST_NEIGHBOURS])
        found = neutralise(Entity, await asyncio.to_thread(opened.documents.names.hide, entity))
        return fit(partial(_list_entity, found, skip), max(0, len(found.facts) + len(found.passages) - skip))

    async def add_text(
        self,
        text: Annotated[str, Field(max_length=MOST_ADDED)],
        document: Annotated[Name, Field(min_length=1, description="The id of the document.")],
        context: Context[Any, Any],
        title: Name = "",
        tome: TomeName = "",
    ) -> AddResult:
        """Remember a text as a document. A document that was added so under the same id is replaced."""
        _, opened = find_tome(tome, self._tomes)
        async with send_progress(context, _describe_progress) as on_progress:
            added = Document(id=document, text=text, title=title)
            report = await opened.aadd(added, on_progress=on_progress)
        outcome = "added" if report.added else "replaced" if report.replaced else "unchanged"
        values = {"document": document, "outcome": outcome, "passages": report.passages}
        return neutralise(AddResult, opened.documents.names.hide(values))

    async def remove_document(
        self,
        document: Annotated[Name, Field(description="The whole id or title.")],
        accept_paid: Annotated[
            int, Field(ge=0, description="Remove if at most so many memories go that a model was paid for.")
        ] = 0,
        tome: TomeName = "",
    ) -> RemoveResult:
        """Forget a document and everything that was derived from it alone. This cannot be undone.

        Where memory would go that a model was paid for, nothing is removed until that is accepted; the result says
        what.
        """
        _, opened = find_tome(tome, self._tomes)
        found = await asyncio.to_thread(opened.documents.names.match, document)
        own_name = (await asyncio.to_thread(opened.documents.names.read)).name(found.id)
        exact = (own_name, found.id, found.title)
        if document not in (*exact, *map(show_name, exact)):
            raise UsageError(f"{show_name(document)!r} is not a whole id: did you mean {show_name(own_name)!r}?")
        foresight = await asyncio.to_thread(opened.documents.foresee_removal, found)
        paid = sum(foresight.paid.values())
        values = {"document": found.id, "removed": paid <= accept_paid, "foresight": foresight}
        result = neutralise(RemoveResult, opened.documents.names.hide(values))
        if result.removed:
            await opened.aremove(found)
        else:
            result.rest = f"Nothing was removed. To remove, call remove_document again with accept_paid={paid}."
        return result

    async def build(
        self,
        system: Annotated[Name, Field(description="The system whose memory layers to build.")],
        context: Context[Any, Any],
        accept: LimitText = "0 calls",
        tome: TomeName = "",
    ) -> BuildResult:
        """Build the memory layers that a system needs; beyond what is accepted, return what that would cost."""
        _, opened = find_tome(tome, self._tomes)
        variant = choose_bounded(system, {})
        estimate = await opened.memory.aestimate(variant)
        if not Limit.parse(accept).holds(estimate.total):
            rest = f'Nothing was built. To build, call build again with accept="{estimate.accept}".'
            return BuildResult(built=False, estimate=estimate, rest=rest)
        async with send_progress(context, _describe_progress) as on_progress:
            report = await opened.abuild(variant, on_progress=on_progress)
        short = [replace(layer, failures=layer.failures[:_MOST_FAILURES]) for layer in report.layers]
        hidden = await asyncio.to_thread(opened.documents.names.hide, replace(report, layers=tuple(short)))
        shown = neutralise(BuildReport, hidden)
        # How many failed is not in the JSON of a layer.
        layers = (replace(cut, failed=layer.failed) for cut, layer in zip(shown.layers, report.layers, strict=True))
        more = [
            f"{len(each.failed)} failed in {each.layer}" for each in report.layers if len(each.failed) > _MOST_FAILURES
        ]
        rest = f"{', '.join(more)}: the first {_MOST_FAILURES} are here." if more else ""
        return BuildResult(built=True, estimate=estimate, report=replace(shown, layers=tuple(layers)), rest=rest)


def _describe_event(tome: Tome, event: Event) -> str:
    summary = tome.documents.names.read().clean(event.summary)
    return f"{event.name}: {summary}" if summary else event.name


def _describe_progress(progress: Progress) -> str:
    counted = f"{progress.label}: {progress.done} of {progress.total}" if progress.total else progress.label
    return progress.note or counted


def _list_sources(answer: Answer) -> list[str]:
    """The ids of the passages that it quotes, then of the nearest ones."""
    quoted = [quote.passage for statement in answer.statements for quote in statement.quotes]
    return [*quoted, *(passage.id for passage in answer.nearest)]


def _cut_answer(whole: Answer, count: int) -> AnswerResult:
    """The answer with the first `count` of its quotes, then of the nearest passages."""
    sources = _list_sources(whole)[count:]
    ids = ", ".join(sources[:20])
    rest = f"{len(sources)} more passages stand behind this answer: call read with passage={ids}." if sources else ""
    statements, left = [], count
    for statement in whole.statements:
        statements.append(replace(statement, quotes=statement.quotes[:left]))
        left = max(0, left - len(statement.quotes))
    kept = replace(whole, statements=tuple(statements), nearest=whole.nearest[:left])
    return AnswerResult(answer=kept, rest=rest)


def _keep_small(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of a document; none where it would take much of a reply."""
    return metadata if len(str(metadata)) <= ITEM_BYTES // 2 else {}


def _read(view: TomeView, document: str, span: Stretch, passage: str, neighbours: int, part: str) -> TextResult:
    names = view.documents.names
    record, (start, last) = find_part(document, span, passage, neighbours, view, names.match, part)
    end = record.characters if last is None else min(last, record.characters)
    if not 0 <= start < end:
        raise UsageError(f"characters {start} to {end} hold nothing: the document has {record.characters} characters")
    # A longer part cannot fit.
    read = read_slice(record, start, min(end, start + MOST_BYTES), view.store)
    whole = read_plain(Slice, names.hide(read))

    def make(length: int) -> TextResult:
        last, shown = start + length, show_name(whole.document)
        rest = "" if last == end else f"Call read again with document={shown!r}, start={last} and end={end}."
        inside = [each for each in whole.passages if start <= each.start < last]
        shorter = replace(whole, end=last, text=whole.text[:length], passages=tuple(inside))
        return TextResult(part=neutralise(Slice, shorter.to_dict(), MOST_BYTES * 10), rest=rest)  # as long as it was

    result = fit(make, len(whole.text))
    view.note_slice(result.part)
    return result


def _list_records(records: list[dict[str, Any]], skip: int, count: int) -> DocumentsResult:
    entries = neutralise(list[DocumentRecord], records[skip : skip + count])
    shown = [replace(entry, metadata=_keep_small(entry.metadata)) for entry in entries]
    left = len(records) - skip - count
    rest = f"{left} more: call list_documents again with skip={skip + count}." if left > 0 else ""
    return DocumentsResult(total=len(records), documents=shown, rest=rest)


def _list_entity(whole: Entity, skip: int, count: int) -> EntityResult:
    end, first = skip + count, len(whole.facts)  # facts come first, then passages
    passages = whole.passages[max(0, skip - first) : max(0, end - first)]
    left = first + len(whole.passages) - skip - count
    rest = f"{left} more: call entity again with skip={end}." if left > 0 else ""
    if whole.similar:
        rest = "No entity has exactly this name: call entity again with one of these names."
    gists = {passage.id: whole.gists[passage.id] for passage in passages if passage.id in whole.gists}
    part = replace(whole, facts=whole.facts[skip:end], passages=passages, gists=gists)
    return EntityResult(entity=part, rest=rest)


_MOST_FAILURES = 5  # failed nodes that a report names for each layer


_LONGEST = 300  # characters of a message


@asynccontextmanager
async def send_progress(context: Context[Any, Any], describe: Callable[[T], str]) -> AsyncIterator[Callable[[T], None]]:
    """A function that sends one line on a thing to the client, from any thread. All lines are sent before this ends.

    Cancels what runs inside and raises ClientLeft when the client leaves. Before protocol 2026-07-28 the package `mcp`
    would go on with the call, though its result can reach nobody.
    """
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def notify(thing: T) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, describe(thing))

    async def send() -> None:
        count = 0
        while (line := await lines.get()) is not None:
            count += 1
            await context.report_progress(count, message=oneline(line)[:_LONGEST])

    async with run_side_by_side() as group:
        group.create_task(send())
        watching = group.create_task(_watch(context))
        yield notify
        watching.cancel()
        loop.call_soon_threadsafe(lines.put_nowait, None)


async def _watch(context: Context[Any, Any]) -> None:
    """Raise ClientLeft when the client leaves. Returns at once if the client has no HTTP connection."""
    scope = getattr(context.request_context.request, "scope", {})
    if LEFT in scope:
        await scope[LEFT].wait()
        raise ClientLeft
