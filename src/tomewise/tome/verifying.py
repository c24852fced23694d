"""Verify any text against documents: a draft, an agent's report, the prose of a small model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from tomewise.concurrency import gather_calls
from tomewise.errors import UsageError
from tomewise.events import shorten
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.labels import find_labelled
from tomewise.language.roles import VERIFY, VerifyIn, VerifyOut
from tomewise.language.wrapped import find_name
from tomewise.loops.citing import make_quote
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import load_passages
from tomewise.loops.statements import list_statements
from tomewise.loops.steps import Skipped
from tomewise.recall.ranking import drop_repeats, take_turns
from tomewise.store.contract import Texts
from tomewise.text.support import Grounds
from tomewise.types import Answer, Evidence, Retriever, Scope, Statement, Support
from tomewise.types.proof import VERIFIED

Proved: TypeAlias = tuple[Statement, list[Evidence]]  # with what was found for it
MOST_STATEMENTS = 2_000  # that differ, in one text
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

    async def search_and_prove(words: str) -> Proved:
        async with turn:
            found = await retriever.retrieve(words, _NEAREST, within=within)
            return await asyncio.to_thread(_prove, words, found, desk.store), found

    spans = await asyncio.to_thread(list_statements, text)
    different = list(dict.fromkeys(text[start:end] for start, end in spans))
    if len(different) > MOST_STATEMENTS:
        count = f"{len(different):,} different statements"
        raise UsageError(f"the text has {count}, and {MOST_STATEMENTS:,} are verified at once: verify it in parts")
    proved = await gather_calls(map(search_and_prove, different))
    statements, skipped, missing = [statement for statement, _ in proved], Skipped(), ""
    if judge:
        open_ones = [number for number, each in enumerate(statements) if each.support in ("inferred", "none")]
        groups = [open_ones[at : at + _TOGETHER] for at in range(0, len(open_ones), _TOGETHER)]
        calls = (_judge(desk, {number: proved[number] for number in group}, skipped) for group in groups)
        judged = {number: statement for group in await gather_calls(calls) for number, statement in group.items()}
        statements = [judged.get(number, statement) for number, statement in enumerate(statements)]
        if left := len(open_ones) - len(judged):
            reason = f": {shorten(str(skipped.last))}" if skipped.last else "."
            missing = f"{left:,} of {len(open_ones):,} open statements were not judged{reason}"
    ruled = {each.text: replace(each, quotes=()) if each.support == "none" else each for each in statements}
    evidence = drop_repeats(take_turns([found for _, found in proved]))
    return Answer(
        text=text,
        statements=tuple(replace(ruled[text[start:end]], start=start, end=end) for start, end in spans),
        evidence=tuple(evidence),
        missing=missing,
        system=VERIFIED,
        model=name,
    )


def _prove(words: str, found: Sequence[Evidence], store: Texts) -> Statement:
    """A statement by its own passages, whatever stands beside it; with the sentences nearest to it."""
    passages = list(load_passages(store, (source for piece in found for source in piece.sources)).values())
    judgement = Grounds([passage.text for passage in passages]).judge(words)
    quotes = tuple(make_quote(passages[number], first, last) for number, first, last in judgement.sentences)
    return Statement(text=words, support=judgement.support, quotes=quotes)


async def _judge(desk: Desk, group: Mapping[int, Proved], skipped: Skipped) -> dict[int, Statement]:
    """What a model says of statements that our own check leaves open, as far as it says it, by their numbers."""
    texts = [statement.text for statement, _ in group.values()]
    best = [_choose_shown(statement, found) for statement, found in group.values()]

    pieces = drop_repeats(take_turns(best))
    prepared = await asyncio.to_thread(desk.fit, VERIFY, pieces, VerifyIn(statements=texts, evidence=[]))
    shown = {piece.id for piece in prepared.evidence}
    if not shown:
        return {}
    reply = await skipped.try_call(desk.model.ask(VERIFY, prepared.input), VerifyOut())
    # Of a statement none of whose passages has room, a model would say that it is not stated.
    judged = enumerate(zip(group, best, strict=True), start=1)
    numbers = {place: number for place, (number, found) in judged if any(piece.id in shown for piece in found)}

    def rule() -> dict[int, Statement]:
        ruled = {}
        for each in reply.verdicts:
            if each.number in numbers:
                statement, _ = group[numbers[each.number]]
                cited = find_labelled(each.label, prepared.evidence)
                quotes = _prove(statement.text, cited, desk.store).quotes or statement.quotes
                ruled[numbers[each.number]] = replace(statement, support=_SUPPORT[each.verdict], quotes=quotes)
        return ruled

    return await asyncio.to_thread(rule)


def _choose_shown(statement: Statement, found: Sequence[Evidence]) -> list[Evidence]:
    """What a judge sees for a statement: the passages of its quotes, then the nearest."""
    quoted = {quote.passage for quote in statement.quotes}
    return sorted(found, key=lambda piece: piece.id not in quoted)[:_SHOWN]
