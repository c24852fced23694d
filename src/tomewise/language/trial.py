"""Try a model with one small call."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from pydantic import BaseModel

from tomewise.credentials import hide_credentials
from tomewise.errors import TomewiseError
from tomewise.run import meter
from tomewise.types import LanguageModel, Role, Spent

SECONDS = 30.0


class TrialIn(BaseModel):
    """A word to repeat."""

    word: str


class TrialOut(BaseModel):
    """The word."""

    word: str


TRY = Role(
    "try_model",
    TrialIn,
    TrialOut,
    output_tokens=32,
    play=lambda given: TrialOut(word=given.word),
    prompt='Repeat the word.\n\n{{ word | fenced("word") }}\n\nReply with JSON: {"word": "the word"}',
    tags=("word",),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a call: its `reason` if it failed, else the tokens that the model accepts, as its server says."""

    reason: str
    window: int | None
    seconds: float
    spent: Spent


async def try_model(model: LanguageModel) -> Trial:
    """Ask the model for one word, in the form in which all roles ask. It has 30 seconds."""
    started = time.perf_counter()
    reason, window = "", None
    with meter() as used:
        try:
            async with asyncio.timeout(SECONDS):
                await model.ask(TRY, TrialIn(word="light"))
                window = await asyncio.to_thread(lambda: model.window)
        except TimeoutError:
            reason = f"{model.name} did not reply within {SECONDS:g} seconds"
        except TomewiseError as error:
            reason = hide_credentials(str(error))
    return Trial(reason, window, time.perf_counter() - started, used.total)
