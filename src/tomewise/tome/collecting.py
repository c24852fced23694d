"""Collect a table from every passage of a scope: plan it, take its rows, prove their cells, join what is one thing.

Each passage is asked about once: its rows are kept under the passage and the plan, so a document that is added costs
its own passages alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import get_args

from tomewise.concurrency import gather_calls
from tomewise.errors import ModelError, UsageError
from tomewise.events import shorten
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.roles import (
    COLLECT,
    PLAN_TABLE,
    SAME_ROWS,
    CollectedRow,
    CollectIn,
    CollectOut,
    PlanTableIn,
    RowPair,
    SameRowsIn,
)
from tomewise.language.together import ask_together, catch_failure
from tomewise.language.wrapped import find_name, find_room
from tomewise.loops.citing import locate, make_quote
from tomewise.memory.ask_each import Replies, run_groups
from tomewise.memory.leading import find_leads
from tomewise.memory.neighbours import group_neighbours
from tomewise.run import open_run
from tomewise.store.contract import Store
from tomewise.systems.kit import Kit
from tomewise.text.alignment import find_places, fold
from tomewise.text.stop_words import STOP
from tomewise.text.support import Grounds
from tomewise.text.values import Key, find_values
from tomewise.tome.collected import Figure, Row, Table, find_likely, join_rows, join_same
from tomewise.tome.holdings import list_unread
from tomewise.tome.questions import check_documents
from tomewise.tome.scopes import check_scope
from tomewise.types import (
    Column,
    ColumnKind,
    Coverage,
    LanguageModel,
    Passage,
    PassageId,
    Question,
    Report,
    Statement,
    Unread,
)
from tomewise.types.proof import PROVED

TOGETHER = 8  # passages in one call
_PAIRS = 20  # that one call judges
_MOST_PAIRS = 400  # that are judged at all


def read_columns(written: Sequence[str | Column]) -> tuple[Column, ...]:
    """Columns as people write them: "name", "amount:number", "date:date: when it was paid". Raises UsageError."""
    columns = [each if isinstance(each, Column) else _read_column(each) for each in written]
    names = [column.name.casefold() for column in columns]
    if len(set(names)) < len(names):
        raise UsageError(f"two columns have one name: {', '.join(column.name for column in columns)}")
    return tuple(columns)


def _read_column(written: str) -> Column:
    name, _, rest = (part.strip() for part in written.partition(":"))
    kind, _, about = (part.strip() for part in rest.partition(":"))
    if not name or (kind and kind not in get_args(ColumnKind)):
        raise UsageError(f'cannot read the column {written!a}: write it as "amount", "amount:number" or "paid:date"')
    return Column(name=name, kind=kind or "text", about=about)  # type: ignore[arg-type]  # one of them


def find_key(named: Sequence[str], columns: Sequence[Column]) -> tuple[str, ...]:
    """The names of these columns as the columns have them; that of the first without any. Raises UsageError."""
    names = {column.name.casefold(): column.name for column in columns}
    for name in named:
        if name.strip().casefold() not in names:
            raise UsageError(f"no column is called {name!a}: the key is one or more of {', '.join(names)}")
    return tuple(names[name.strip().casefold()] for name in named) or (columns[0].name,)


async def collect_table(
    kit: Kit,
    asked: Question,
    columns: Sequence[Column],
    key: Sequence[str],
    figures: Sequence[str],
    report: Report,
    *,
    fresh: bool,
) -> tuple[Table, list[PassageId], list[PassageId]]:
    """See `Tome.collect`; the text of the question is what is asked for.

    Also returns the passages that were read, and those without a usable reply.
    """
    store, within = kit.store, asked.within
    computed = [read_figure(each) for each in figures]
    with open_run(queue=object(), fresh_mark=token_hex(8) if fresh else "") as used:
        if within:
            await asyncio.to_thread(check_scope, within, store)
        check_documents(store)
        planned = replace(await plan_table(asked.text, columns, key, kit.model), within=within)
        for figure, column in computed:
            planned.compute(figure, column)  # what cannot be computed is refused before anything is read
        table, read, failed = await fill_table(planned, store, kit.model, report)
        found = (table.compute("count"), *(table.compute(figure, column) for figure, column in computed))
        return replace(table, figures=found, cost=used.measure_cost()), read, failed


def read_figure(written: str) -> tuple[Figure, str]:
    """A figure as people write it: "sum amount", "last paid". Raises UsageError."""
    figure, _, column = written.strip().partition(" ")
    if figure not in get_args(Figure):
        raise UsageError(
            f"cannot read the figure {written!a}: write one of {', '.join(get_args(Figure))}, and a column"
        )
    return figure, column.strip()  # type: ignore[return-value]  # one of them


async def plan_table(asked: str, columns: Sequence[Column], key: Sequence[str], model: LanguageModel) -> Table:
    """The table that is asked for, without rows. Without columns a model plans them. Raises UsageError, ModelError."""
    name = find_name(model, COLLECT)
    if name == EXTRACTIVE:
        raise UsageError("a model has to read, and none is set: name one, as --model ollama:qwen3, or use `tome find`")
    if columns:
        key = find_key(key, columns)
        return Table(asked=asked, item=asked, columns=tuple(columns), key=key, rows=(), model=name)
    reply = await model.ask(PLAN_TABLE, PlanTableIn(question=asked))
    known = {each.name.casefold(): Column(**each.model_dump()) for each in reply.columns if each.name}
    planned = tuple(known.values()) or (Column(name="name"),)
    key = find_key(key or [name for name in reply.key if name.strip().casefold() in known], planned)
    return Table(asked=asked, item=reply.item or asked, columns=planned, key=key, rows=(), model=name)


async def fill_table(
    planned: Table, store: Store, model: LanguageModel, report: Report
) -> tuple[Table, list[PassageId], list[PassageId]]:
    """The table of all passages in scope, what was read of them, and what was not since no reply could be used."""
    within = planned.within
    keys = await asyncio.to_thread(store.keys_within, within)
    passages = await asyncio.to_thread(store.passages, None if keys is None else keys.tolist())
    replies = await _ask_each_passage(passages, planned, store, model, report)
    key = [planned.find_column(name) for name in planned.key]
    rows, dropped = await asyncio.to_thread(_prove_rows, passages, replies, key, len(planned.columns))
    joined, doubtful = await _join_likely(await asyncio.to_thread(join_rows, rows, key), key, planned, model)
    reasons = tuple(shorten(reason) for reason in list(replies.failed.values())[:1])
    unusable = Unread(
        what="passage without a usable reply", count=len(replies.failed), names=reasons, mend="collect again"
    )
    unread = (*([unusable] if unusable.count else []), *list_unread(store, within, 0))
    coverage = Coverage(passages=len(passages), read=len(replies), unread=unread)
    table = replace(planned, rows=tuple(joined), doubtful=tuple(doubtful), coverage=coverage, dropped_quotes=dropped)
    return table, [passages[key].id for key in replies], [passages[key].id for key in replies.failed]


async def _ask_each_passage(
    passages: Mapping[int, Passage], planned: Table, store: Store, model: LanguageModel, report: Report
) -> Replies[int, CollectOut]:
    """The reply for each passage by its node key; neighbours share a call, as many as the window has room for."""
    leads = await asyncio.to_thread(find_leads, store, passages.values())
    columns = list(planned.columns)
    inputs = {
        key: CollectIn(
            text=each.text, title=each.title, before=leads[each.id], item=planned.item, columns=columns
        )
        for key, each in passages.items()
    }  # fmt: skip
    together = max(1, min(TOGETHER, find_room(model, COLLECT) // (2 * COLLECT.output_tokens)))
    positions = {key: (each.document, each.position) for key, each in passages.items()}
    groups = group_neighbours(inputs, positions, together)

    async def ask(group: Sequence[CollectIn]) -> list[CollectOut | ModelError]:
        return await ask_together(model, COLLECT, group, together)

    distinct = {key: inputs[key] for group in groups.keys for key in group}
    replies = await run_groups(distinct, groups.keys, ask, report, "passages read")
    return groups.share(replies, inputs)


def _prove_rows(
    passages: Mapping[int, Passage], replies: Mapping[int, CollectOut], key_columns: Sequence[int], count: int
) -> tuple[list[Row], int]:
    """The rows in document order, and how many were dropped: neither their quotation nor their key stands there."""
    rows: list[Row] = []
    dropped = 0
    order = sorted(replies, key=lambda key: (passages[key].document, passages[key].position))
    earlier: list[Row] = []
    for before, key, after in zip([None, *order], order, [*order[1:], None], strict=False):
        near = [passages[each] for each in (key, before, after) if each is not None]
        own = [each for each in near if each.document == near[0].document]
        proved = [_prove_row(written, own, key_columns, count) for written in replies[key].rows]
        dropped += proved.count(None)
        found = [row for row in proved if row and not any(_is_shared(row, each) for each in earlier)]
        rows += found
        earlier = found
    return rows, dropped


def _is_shared(row: Row, earlier: Row) -> bool:
    """Whether two rows say the same of what two passages share."""
    if not (row.quotes and earlier.quotes):
        return False
    quote, before = row.quotes[0], earlier.quotes[0]
    meets = quote.document == before.document and quote.start < before.end and before.start < quote.end
    return meets and [cell.text for cell in row.cells] == [cell.text for cell in earlier.cells]


def _prove_row(
    written: CollectedRow, passages: Sequence[Passage], key_columns: Sequence[int], count: int
) -> Row | None:
    """A row whose cells are proved by its quotation, and by the sentences of its passage that are most like them.

    Its passage is the first, or the one beside it that has its quotation. None without both that and its key.
    """
    texts = [*written.cells, *[""] * count][:count]
    located = next(((quote, each) for each in passages if (quote := locate(written.quote, each))), None)
    quote, passage = located or (None, passages[0])
    if not any(map(str.strip, texts)) or len(written.cells) > count:
        return None

    def prove(text: str) -> Statement:
        """By the quotation, else by the passage: its words stand there, or its values, or our check infers it."""
        text = " ".join(text.split())
        proved = partial(Statement, text=text, end=len(text))
        if not text or (quote and next(find_places(text, quote.text, least=1), None)):
            return proved(support="quoted" if text else "none", quotes=(quote,) if text and quote else ())
        own = [quote] if quote else []
        if stands := next(find_places(text, passage.text, least=1), None):
            return proved(support="quoted", quotes=(*own, make_quote(passage, stands.start, stands.end)))
        if quote and _has_values(text, quote.text):
            return proved(support="inferred", quotes=(quote,))
        places = [(0, quote.start - passage.start, quote.end - passage.start)] if quote else []
        judged = Grounds([passage.text]).judge(text, "", places)
        found = [make_quote(passage, *span[1:]) for span in judged.sentences[:1]] if judged.support != "none" else []
        return proved(support=judged.support, quotes=(*own, *found))

    cells = tuple(map(prove, texts))
    stands = any(cells[at].support in PROVED for at in key_columns)
    return Row(cells=cells) if quote or stands else None


def _has_values(text: str, quotation: str) -> bool:
    """Whether a quotation has all values of a short text, in whatever spelling, and its other words."""
    values = find_values(f"of {text}")
    given = frozenset[Key]().union(*(value.gives for value in find_values(quotation)))
    if not values or not all(any(way and way <= given for way in value.readings) for value in values):
        return False
    known = fold(quotation).known
    ends = [3, *(value.end for value in values)]
    rest = (f"of {text} "[end : value.start] for end, value in zip(ends, values, strict=False))
    words = fold(" ".join([*rest, f"of {text}"[max(ends) :]])).words
    return all(word in known or word in STOP for word in words)


async def _join_likely(
    rows: list[Row], key: Sequence[int], planned: Table, model: LanguageModel
) -> tuple[list[Row], list[tuple[int, int]]]:
    """The rows, those joined that a model takes for one thing, and the likely pairs that nobody judged."""
    pairs = await asyncio.to_thread(lambda: list(find_likely(rows, key)))
    judged = pairs[:_MOST_PAIRS]

    def write(row: Row) -> str:
        cells = zip(planned.columns, row.cells, strict=True)
        return "; ".join(f"{column.name}: {cell.text}" for column, cell in cells if cell.text)

    async def ask(group: Sequence[tuple[int, int]]) -> list[tuple[int, int]] | None:
        pairs = [RowPair(first=write(rows[first]), second=write(rows[second])) for first, second in group]
        given = SameRowsIn(item=planned.item, pairs=pairs)
        reply = await catch_failure(model.ask(SAME_ROWS, given))
        return None if isinstance(reply, ModelError) else [group[n - 1] for n in reply.same if 0 < n <= len(group)]

    groups = [judged[at : at + _PAIRS] for at in range(0, len(judged), _PAIRS)]
    replies = await gather_calls(map(ask, groups))
    same = [pair for found in replies for pair in found or ()]
    joined, numbers = join_same(rows, same)
    unjudged = [pair for group, found in zip(groups, replies, strict=True) if found is None for pair in group]
    ends = ((numbers[first], numbers[second]) for first, second in (*unjudged, *pairs[_MOST_PAIRS:]))
    open_pairs = {(min(pair), max(pair)) for pair in ends}
    return joined, sorted(pair for pair in open_pairs if pair[0] != pair[1])
