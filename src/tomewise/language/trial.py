"""A test call: whether a model answers, and what it can do."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from tomewise.errors import BadReply, ModelError
from tomewise.language.budget import ask_within_run
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.language.roles import ANSWER, AnswerIn, Shown
from tomewise.run import change_run, meter
from tomewise.types import Cost

_QUESTION = AnswerIn(
    question="Who keeps the light?", evidence=[Shown(label="E1", text="Ada Marsh keeps the light at Skagen.")]
)
_SECONDS = 60.0  # a server of one's own may have to load the model first


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a test call: the `problem`, or that the model replied in `seconds`.

    `structured` says how its reply fitted its form: at once, after a repair, or not at all. `streams` says whether the
    reply came in pieces.
    """

    problem: str = ""
    seconds: float = 0.0
    structured: str = "no"
    streams: bool = False
    window: int = 0
    spent: Cost = field(default_factory=Cost)


class _Pieces:
    """Counts the pieces of a reply."""

    count = 0

    def begin(self) -> None:
        self.count = 0

    def hear(self, text: str) -> None:
        self.count += 1


async def try_model(spec: str, *, base_url: str | None) -> Trial:
    """Ask a model one small question, as the answering role. It is not asked again where that fails."""
    model = ChatModel(spec, base_url=base_url, timeout=_SECONDS, backoff=Backoff(retries=0))
    pieces = _Pieces()
    started = time.perf_counter()
    try:
        with meter() as used, change_run(listener=(ANSWER.name, pieces)):
            try:
                await ask_within_run(model, ANSWER, _QUESTION)
                structured = "after a repair" if used.repaired else "yes"
            except BadReply:
                structured = "no"
        seconds = time.perf_counter() - started
        window = await asyncio.to_thread(lambda: model.window)
    except ModelError as error:
        return Trial(problem=str(error), spent=used.total)
    finally:
        await model.close()
    streams = pieces.count > 1
    return Trial(seconds=seconds, structured=structured, streams=streams, window=window, spent=used.total)
