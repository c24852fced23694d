"""Verify any text against documents: a draft, an agent's report, the prose of a small model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.language.roles import VERIFY, VerifyIn
from tomewise.loops.citing import cite, only_quotes
from tomewise.loops.desk import Desk
from tomewise.loops.statements import Marked, list_statements, prove
from tomewise.types import Answer, Evidence, Retriever, Scope, Statement, Support

_NEAREST = 8  # passages that are looked at for each statement
_SHOWN = 2  # of them that a judge sees
_TOGETHER = 8  # statements that one call judges
_AT_ONCE = 8  # searches
_SUPPORT: dict[str, Support] = {"stated": "inferred", "contradicted": "contradicted", "not stated": "none"}


async def verify_text(text: str, retriever: Retriever, desk: Desk, within: Scope | None, *, judge: bool) -> Answer:
    """The text as an answer: its statements, each proved by the passages nearest to any of them. See `Tome.verify`."""
    if judge and only_quotes(desk.model):
        raise UsageError("judge=True asks a model, and none is set: name one, as --model ollama:qwen3")
    turn = asyncio.Semaphore(_AT_ONCE)

    async def search(statement: str) -> list[Evidence]:
        async with turn:
            return await retriever.retrieve(statement, _NEAREST, within=within)

    found = await asyncio.gather(*(search(text[start:end]) for start, end in list_statements(text)))
    evidence = list({piece.id: piece for pieces in found for piece in pieces}.values())
    statements = await asyncio.to_thread(lambda: prove(Marked(text), cite(desk.store, (), evidence)))
    if judge:
        open_ones = [number for number, each in enumerate(statements) if each.support in ("inferred", "none")]
        groups = [open_ones[at : at + _TOGETHER] for at in range(0, len(open_ones), _TOGETHER)]
        calls = (_judge(desk, [(statements[at], found[at]) for at in group]) for group in groups)
        judged = [support for group in await gather_calls(calls) for support in group]
        verdicts = dict(zip(open_ones, judged, strict=True))
        statements = tuple(replace(each, support=verdicts.get(n, each.support)) for n, each in enumerate(statements))
    return Answer(text=text, statements=statements, evidence=tuple(evidence), claimed="full")


async def _judge(desk: Desk, open_ones: Sequence[tuple[Statement, Sequence[Evidence]]]) -> list[Support]:
    """What a model says of statements that our own check leaves open; they stay so where it says nothing."""
    pieces = {piece.id: piece for _, found in open_ones for piece in found[:_SHOWN]}
    shown = await asyncio.to_thread(desk.show, list(pieces.values()))
    statements = [statement for statement, _ in open_ones]
    reply = await desk.model.ask(VERIFY, VerifyIn(statements=[each.text for each in statements], evidence=shown))
    verdicts = {verdict.number: verdict.verdict for verdict in reply.verdicts}
    return [_SUPPORT.get(verdicts.get(at, ""), each.support) for at, each in enumerate(statements, start=1)]
