"""Make a follow-up question stand alone, before anything is searched."""

from __future__ import annotations

from collections.abc import Sequence

from tomewise.events import Rephrased, shorten
from tomewise.language.roles import REPHRASE, RephraseIn, RephraseOut, TurnShown
from tomewise.loops.steps import Skipped
from tomewise.tome.session_record import Turn
from tomewise.types import Event, LanguageModel

_TURNS = 3  # the last ones, which the model sees
_SHOWN = 400  # characters of a question and of an answer that it sees
_LONGER = 1_000  # characters that a question may gain


async def rephrase(model: LanguageModel, question: str, turns: Sequence[Turn]) -> tuple[str, list[Event]]:
    """The question so that it stands alone, and the events of that. The first question of a session stays as it is.

    An unusable reply is skipped: then the question stays as it is. Raises what every further call would meet as well.
    """
    if not turns:
        return question, []
    shown = [
        TurnShown(question=shorten(turn.question, _SHOWN), answer=shorten(turn.answer, _SHOWN))
        for turn in turns[-_TURNS:]
    ]
    skipped = Skipped()
    asked = model.ask(REPHRASE, RephraseIn(question=question, turns=shown))
    text = (await skipped.usable(asked, RephraseOut())).question or question
    if len(text) > len(question) + _LONGER:
        skipped.drop(f"a question of {len(text):,} characters in place of one of {len(question):,}")
        text = question
    return text, [*skipped.events(0), Rephrased(asked=question, question=text)]
