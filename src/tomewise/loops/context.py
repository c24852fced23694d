"""What loops with a working memory show: evidence of several layers, and notes, within one budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tomewise.events import make_event
from tomewise.loops.desk import Attempt, Desk
from tomewise.loops.layout import Context, Note, Share
from tomewise.types import Event, Evidence, Question
from tomewise.working.pool import Unit

HISTORY = "history"
_KNOWN = 8  # earlier cues take at most one part in so many, beside the evidence that is encoded


class Contexts:
    """Fits evidence and cues for a question into `budget` tokens, fewer if the model has less room.

    `shares` are those of the layers, and of `HISTORY`.
    """

    def __init__(self, question: Question, desk: Desk, budget: int, shares: Mapping[str, int]) -> None:
        self._layout = desk.layout
        self._budget = min(budget, desk.measure_answer_room(question))
        self._shares = shares

    def select_evidence(self, unit: Unit) -> tuple[Evidence, ...]:
        """The evidence of one unit that fits into its layer's share, best first: one piece at least."""
        return tuple(self._layout.pack(unit.evidence, self._measure_room(unit.layer))) or unit.evidence[:1]

    def fits(self, evidence: Sequence[Evidence]) -> bool:
        """Whether all of this evidence has room."""
        return len(self._layout.pack(evidence, self._budget)) == len(evidence)

    def fit_cues(self, cues: Sequence[str]) -> list[str]:
        """Cues for a role that is shown nothing else."""
        return self._layout.fit_texts(cues, self._budget)

    def fit_known(self, cues: Sequence[str]) -> list[str]:
        """Earlier cues for the encoding role, which also sees new evidence: the first ones that have room."""
        return self._layout.fit_texts(cues, self._budget // _KNOWN)

    def make_context(
        self, ranked: Sequence[Evidence], notes: Sequence[Note], beside: Mapping[str, Sequence[Evidence]] | None = None
    ) -> Context:
        """What the answering role sees: the best passages of `ranked`, notes, and of layers `beside` their shares."""
        shares = [Share(pieces, self._measure_room(layer)) for layer, pieces in (beside or {}).items()]
        return self._layout.lay_out(ranked, self._budget, notes, shares)

    def _measure_room(self, layer: str) -> int:
        return self._budget * self._shares.get(layer, 0) // sum(self._shares.values())


def make_attempt_event(name: str, step: int, context: Context, attempt: Attempt, **more: Any) -> Event:
    """What an attempt to answer was shown, and what came of it; `more` are further fields of the event of this name."""
    return make_event(
        name,
        step,
        answer=attempt.reply.answer,
        choice=attempt.reply.choice,
        failed=not attempt.answer.resolved,
        missing=attempt.reply.missing,
        shown=[piece.id for piece in context.evidence],
        cut=context.cut,
        notes=context.notes,
        **{"kept": "", **more},
    )
