"""Verify any text against documents: a draft, an agent's report, the prose of a small model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import shorten
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.roles import VERIFY, Shown, VerifyIn, VerifyOut
from tomewise.language.wrapped import find_name
from tomewise.loops.citing import make_quote
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import load_passages
from tomewise.loops.statements import list_statements
from tomewise.loops.steps import Skipped
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.text.support import Grounds
from tomewise.types import Answer, Evidence, Passage, Retriever, Scope, Statement, Support
from tomewise.types.proof import VERIFIED

_NEAREST = 8  # passages that are looked at for each statement
_SHOWN = 3  # of them that a judge sees
_TOGETHER = 8  # statements that one call judges
_AT_ONCE = 8  # searches
_SUPPORT: Mapping[str, Support] = {"stated": "inferred", "contradicted": "contradicted", "not stated": "none"}


async def verify_text(text: str, retriever: Retriever, desk: Desk, within: Scope | None, *, judge: bool) -> Answer:
    """The text as an answer: its statements, each proved by the passages nearest to it. See `Tome.verify`."""
    name = find_name(desk.model, VERIFY) if judge else ""
    if name == EXTRACTIVE:
        raise UsageError("a model has to judge, and none is set: name one, as --model ollama:qwen3, or do not judge")
    turn = asyncio.Semaphore(_AT_ONCE)

    async def search(statement: str) -> list[Evidence]:
        async with turn:
            return await retriever.retrieve(statement, _NEAREST, within=within)

    spans = await asyncio.to_thread(list_statements, text)
    found = await gather_calls(search(text[start:end]) for start, end in spans)
    evidence = tuple(drop_repeats(take_turns(found)))

    def prove_all() -> list[Statement]:
        passages = load_passages(desk.store, {source for piece in evidence for source in piece.sources})
        sources = ([source for piece in pieces for source in piece.sources] for pieces in found)
        near = ([passages[source] for source in each if source in passages] for each in sources)
        return [_prove(text, span, each) for span, each in zip(spans, near, strict=True)]

    statements = await asyncio.to_thread(prove_all)
    supports, skipped, missing = {}, Skipped(), ""
    if judge:
        open_ones = [number for number, each in enumerate(statements) if each.support in ("inferred", "none")]
        groups = [open_ones[at : at + _TOGETHER] for at in range(0, len(open_ones), _TOGETHER)]
        calls = (_judge(desk, {at: (statements[at], found[at]) for at in group}, skipped) for group in groups)
        supports = {at: support for judged in await gather_calls(calls) for at, support in judged.items()}
        if left := len(open_ones) - len(supports):
            reason = f": {shorten(str(skipped.last))}" if skipped.last else "."
            missing = f"{left:,} of {len(open_ones):,} open statements were not judged{reason}"
    chosen = [supports.get(number, each.support) for number, each in enumerate(statements)]
    return Answer(
        text=text,
        statements=tuple(
            replace(each, support=support, quotes=() if support == "none" else each.quotes)
            for each, support in zip(statements, chosen, strict=True)
        ),
        evidence=evidence,
        missing=missing,
        system=VERIFIED,
        model=name,
        events=tuple(skipped.events(0)),
    )


def _prove(text: str, span: tuple[int, int], passages: Sequence[Passage]) -> Statement:
    """A statement by its own passages, whatever stands beside it; with the sentences nearest to it."""
    start, end = span
    judgement = Grounds([passage.text for passage in passages]).judge(text[start:end])
    quotes = tuple(make_quote(passages[number], first, last) for number, first, last in judgement.sentences)
    return Statement(text=text[start:end], start=start, end=end, support=judgement.support, quotes=quotes)


async def _judge(
    desk: Desk, group: Mapping[int, tuple[Statement, Sequence[Evidence]]], skipped: Skipped
) -> dict[int, Support]:
    """What a model says of statements that our own check leaves open, as far as it says it, by their numbers."""
    texts = [statement.text for statement, _ in group.values()]
    quoted = {quote.passage for statement, _ in group.values() for quote in statement.quotes}
    best = [sorted(found, key=lambda piece: piece.id not in quoted)[:_SHOWN] for _, found in group.values()]

    def make_input(shown: Sequence[Shown]) -> VerifyIn:
        return VerifyIn(statements=texts, evidence=list(shown))

    pieces = drop_repeats(take_turns(best))
    given = (await asyncio.to_thread(partial(desk.fit, VERIFY, pieces, make_input, budget=None))).input
    if not given.evidence:
        skipped.drop("no passage fits beside these statements into the window of the model")
        return {}
    reply = await skipped.try_call(desk.model.ask(VERIFY, given), VerifyOut(verdicts=[]))
    numbers = list(group)
    valid = (verdict for verdict in reply.verdicts if 0 < verdict.number <= len(numbers))
    return {numbers[verdict.number - 1]: _SUPPORT[verdict.verdict] for verdict in valid}
