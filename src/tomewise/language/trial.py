"""A test call: whether a model answers, and what it can do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tomewise.errors import BadReply, ModelError
from tomewise.language.budget import ask_within_run
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.language.roles import ANSWER, AnswerIn, Shown
from tomewise.run import change_run, meter
from tomewise.settings import Settings
from tomewise.types import Cost

_QUESTION = AnswerIn(
    question="Who keeps the light?", evidence=[Shown(label="E1", text="Ada Marsh keeps the light at Skagen.")]
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a test call: the `problem`, or that the model replied in `seconds`.

    `structured` says how its reply fitted its form: at once, after a repair, or not at all. `streams` says whether the
    reply came in pieces, `window_from` who states the window, `learnt` what is known of its server by now.
    """

    problem: str = ""
    seconds: float = 0.0
    structured: str = "no"
    streams: bool = False
    window: int = 0
    window_from: str = ""
    learnt: str = ""
    spent: Cost = field(default_factory=Cost)


class _Pieces:
    """Counts the pieces of a reply."""

    count = 0

    def begin(self, begun: str = "") -> None:
        self.count = 0

    def hear(self, text: str) -> None:
        self.count += 1


async def try_model(
    spec: str,
    *,
    base_url: str | None,
    timeout: float = Settings.timeout,
    window: int | None = None,
    server: Mapping[str, str] | None = None,
) -> Trial:
    """Ask a model one small question, as the answering role. It is not asked again where that fails."""
    once = Backoff(retries=0)
    model = ChatModel(spec, base_url=base_url, window=window, server=server, timeout=timeout, backoff=once)
    pieces = _Pieces()
    started = time.perf_counter()
    try:
        with meter() as used, change_run(listener=(ANSWER.name, pieces)):
            try:
                await ask_within_run(model, ANSWER, _QUESTION)
                structured = "no" if used.fallbacks else "after a repair" if used.repaired else "yes"
            except BadReply:
                structured = "no"
        seconds = time.perf_counter() - started
        tokens, source = await asyncio.to_thread(model.found_window.find)
    except ModelError as error:
        return Trial(problem=str(error), spent=used.total)
    finally:
        await model.close()
    return Trial(
        seconds=seconds,
        structured=structured,
        streams=pieces.count > 1,
        window=tokens,
        window_from=source,
        learnt=model.adapter.known.describe(),
        spent=used.total,
    )
