"""Recorded replies in place of a model: each prompt is made, counted and paid for as always, and nobody is asked.

A line of `tools/docs/replies/*.jsonl` is `{"role", "texts", "reply"}`. It replies to a request of this role whose
prompt holds all of these texts; where several do, they reply in turn, and the last one to all later requests. A
request for which nothing was recorded gets a reply of the extractive model, and `missing` notes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic_ai import messages

from tomewise.language.chat import ChatModel
from tomewise.language.client import ChatRequest, Client
from tomewise.language.extractive import ExtractiveModel
from tomewise.types import Embedder

FOLDER = Path(__file__).parent / "replies"
_asked: ContextVar[tuple[Any, Any] | None] = ContextVar("asked", default=None)


class Recorded:
    """Replies of a strong model. `missing` are the requests that have none: their roles and prompts."""

    def __init__(self, embedder: Embedder, folder: Path = FOLDER) -> None:
        files = sorted(folder.glob("*.jsonl"))
        self._left = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        self._extractive = ExtractiveModel(embedder)
        self.missing: list[tuple[str, str]] = []

    async def reply(self, client: Client, request: ChatRequest) -> messages.ModelResponse:
        """What the model writes; takes the place of `Client.exchange`."""
        text = self._find(request.role, request.turns[0])
        if text is None:
            self.missing.append((request.role, request.turns[0]))
            text = await self._invent()
        if request.listener:
            request.listener.begin()
            request.listener.hear(text[:1])
            request.listener.hear(text[1:])
        return messages.ModelResponse(parts=[messages.TextPart(text)], model_name=client.spec.model)

    def _find(self, role: str, prompt: str) -> str | None:
        fits = [row for row in self._left if row["role"] == role and all(text in prompt for text in row["texts"])]
        if not fits:
            return None
        best = max(fits, key=lambda row: sum(map(len, row["texts"])))
        if sum(row["texts"] == best["texts"] for row in fits) > 1:
            self._left.remove(best)
        return json.dumps(best["reply"], ensure_ascii=False)

    async def _invent(self) -> str:
        asked = _asked.get()
        if asked is None:
            return '{"alive": true}'
        reply = await self._extractive.ask(*asked)
        return str(reply.model_dump_json(by_alias=True))


@contextmanager
def replay(recorded: Recorded) -> Iterator[None]:
    """Let recorded replies take the place of every model behind an API."""
    ask = ChatModel.ask

    async def remember(model: ChatModel, role: Any, given: Any) -> Any:
        token = _asked.set((role, given))
        try:
            return await ask(model, role, given)
        finally:
            _asked.reset(token)

    async def exchange(client: Client, request: ChatRequest, bound: int) -> messages.ModelResponse:
        return await recorded.reply(client, request)

    with patch.object(ChatModel, "ask", remember), patch.object(Client, "exchange", exchange):
        yield
