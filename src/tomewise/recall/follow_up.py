"""A second search with a question that a model writes from what the first search found."""

from __future__ import annotations

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.errors import BadReply, Refused
from tomewise.language.roles import FOLLOW_UP, FollowUpIn, Shown
from tomewise.recall.ranking import drop_repeats, mark_brought, score_by_place, take_turns
from tomewise.run import NOT_FOLLOWED_UP, record_fallback
from tomewise.types import Evidence, LanguageModel, Retriever, Rewrite, Scope


class FollowedUp:
    """Ours, near to one step of IRCoT: a model reads the first pieces and writes the question of the second search.

    One call, which sees `shown` pieces. The pieces of both searches come in turns, the best of the first one first;
    scores are then 1 / place. If the model sees nothing to search for, or its reply cannot be used, the first search
    stands alone.
    """

    def __init__(self, retriever: Retriever, model: LanguageModel, *, shown: int = 5) -> None:
        self._retriever = retriever
        self._model = model
        self._shown = shown

    @property
    def calls(self) -> CallCount:
        return sum_calls([CallCount("1", 1), read_calls(self._retriever).repeat(2)])

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        """The `limit` best pieces of both searches."""
        first = await self._retriever.retrieve(query, max(limit, self._shown), within=within)
        rewrite = await self._write(query, first) if limit else None
        if rewrite is None:
            return first[:limit]
        second = await self._retriever.retrieve(rewrite.text, limit, within=within)
        return score_by_place(drop_repeats(take_turns([first, mark_brought(second, rewrite)])), limit)

    async def _write(self, query: str, found: list[Evidence]) -> Rewrite | None:
        """The second question, if there is one."""
        shown = [
            Shown(label=f"E{number}", text=piece.text, title=piece.title)
            for number, piece in enumerate(found[: self._shown], start=1)
        ]
        if not shown:
            return None
        try:
            reply = await self._model.ask(FOLLOW_UP, FollowUpIn(question=query, evidence=shown))
        except (BadReply, Refused):
            record_fallback(NOT_FOLLOWED_UP)
            return None
        return Rewrite(text=reply.question, name=reply.bridge) if reply.question not in ("", query) else None
