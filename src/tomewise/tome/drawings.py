"""What a tome draws: its layers, and the working memory behind an answer."""

from __future__ import annotations

from tomewise.pictures import LIMIT, Picture
from tomewise.systems.kit import System
from tomewise.systems.spec import Choice
from tomewise.tome.damaged import explain_damage
from tomewise.tome.pictures import draw_answer, draw_layer, draw_trace, find_drawable
from tomewise.tome.questions import Questions
from tomewise.types import Answer, Question


class Drawings(Questions):
    """The part of a `Tome` that draws."""

    def check_drawing(self, system: Choice | System | None = None) -> None:
        """Raise UsageError unless the system has a working memory that can be drawn. Calls nothing."""
        find_drawable(self._default_system if system is None else system, self._kit)

    def draw_answer(
        self, question: str | Question, answer: Answer, *, system: Choice | System | None = None
    ) -> Picture:
        """The working memory behind an answer: the pool, or the hypergraph; `drawing.page.write_page` draws it.

        `system` is the one that answered; it may be left out where `answer.system` names it. Raises UsageError for a
        system without a working memory.
        """
        asked = Question(text=question) if isinstance(question, str) else question
        return draw_answer(asked, answer, system or answer.system, self._kit)

    def draw_trace(self, number: int) -> Picture:
        """The working memory behind a stored answer, which says what the trace left out. Raises UnknownName."""
        with explain_damage(self._store):
            return draw_trace(self.trace(number), self._kit)

    def draw_layer(
        self, layer: str, *, around: str = "", hops: int = 1, limit: int = LIMIT, trace: int | None = None
    ) -> Picture:
        """A layer as a picture, by the name that `tome show` prints, with at most `limit` (up to 500) nodes.

        A graph shows the entities within `hops` facts `around` one, or the most connected. What the answer of `trace`
        used is highlighted. Raises UnknownName, UsageError.
        """
        used = None if trace is None else self.trace(trace)
        with explain_damage(self._store):
            return draw_layer(layer, self._store, around=around, hops=hops, limit=limit, trace=used)
