"""Answers in the shape of OpenAI's protocol."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from secrets import token_hex
from typing import Any, Literal
from urllib.parse import quote, urlencode

from tomewise.outgoing.answer_models import Lagging, NumberedAnswer
from tomewise.outgoing.form import Naming, Outgoing
from tomewise.place import describe_source
from tomewise.types import Answer, Citation, Usage

_MARKDOWN = re.compile(r"([\\`*_\[\]<>!])")


class ChatModel(Outgoing):
    """A tome with a system."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "tomewise"


class ChatModelList(Outgoing):
    """All models."""

    object: Literal["list"] = "list"
    data: list[ChatModel]


class UrlCitation(Outgoing):
    """A quotation: its mark in the text, and the address of the page that shows it."""

    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(Outgoing):
    """A mark in the text of a message."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class ChatMessage(Outgoing):
    """The reply to a chat."""

    role: Literal["assistant"]
    content: str
    annotations: list[Annotation]


class Choice(Outgoing):
    """The only choice of a completion."""

    index: int
    message: ChatMessage
    finish_reason: Literal["stop"]
    logprobs: None


class ChatUsage(Outgoing):
    """Tokens as OpenAI counts them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(Outgoing):
    """The next message of a chat; `tomewise` is the answer as `/ask` replies it, null for a title or tags."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    tomewise: NumberedAnswer | None


class Completion:
    """Makes the reply to one chat request, whole or in chunks."""

    def __init__(self, model: str) -> None:
        self._id = f"chatcmpl-{token_hex(12)}"
        self._created = int(time.time())
        self._model = model

    def whole(self, written: dict[str, Any], usage: Usage, tomewise: dict[str, Any] | None) -> dict[str, Any]:
        """The reply that is not streamed."""
        choice = {"index": 0, "message": {"role": "assistant", **written}, "finish_reason": "stop", "logprobs": None}
        return self._frame("chat.completion", [choice], usage=usage_of(usage), tomewise=tomewise)

    def chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        """One chunk of a streamed reply."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return write_data(self._frame("chat.completion.chunk", [choice], **more))

    def usage_chunk(self, usage: Usage) -> bytes:
        """The chunk that says what was used."""
        return write_data(self._frame("chat.completion.chunk", [], usage=usage_of(usage)))

    def _frame(self, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._model,
            "choices": choices,
            **more,
        }


def write_data(data: Any) -> bytes:
    """One chunk as it is sent."""
    return f"data: {json.dumps(data, ensure_ascii=False, default=str)}\n\n".encode()


def write_answer(answer: Answer, tome: str, address: str, naming: Naming) -> dict[str, Any]:
    """The `content` of a message and its `annotations`: the answer with `[1]` for each quotation, and the quotations
    below it with links, which name documents so.

    Chat clients show Markdown, and an image in it is fetched from wherever a document says: so all signs of Markdown in
    the texts of models and documents are escaped.
    """
    quoted = [quotation.citation for quotation in answer.quotations] or answer.citations
    citations = [replace(citation, document=naming(citation.document)) for citation in quoted]
    # Without a model nothing answers: the quotations are all there is.
    words = " ".join(NumberedAnswer.of(answer).list_remarks()) if answer.quotations else answer.text
    text = escape_markdown(words or _decline(answer.missing))
    lines, annotations = [], []
    for number, citation in enumerate(citations, start=1):
        start = len(text) + 1
        text += f" [{number}]"
        url = {
            "start_index": start,
            "end_index": len(text),
            "url": _link(citation, tome, answer.trace, address),
            "title": citation.title or citation.document,
        }
        annotations.append({"type": "url_citation", "url_citation": url})
        lines.append(_write_citation(number, citation))
    if answer.lagging:
        lines.append(escape_markdown(Lagging.of(answer.lagging).summarize(names=False)))
    return {"content": "\n\n".join([text, *lines]), "annotations": annotations}


def escape_markdown(text: str) -> str:
    """The text, so that a reader of Markdown shows it as it is."""
    return _MARKDOWN.sub(r"\\\1", text)


def usage_of(usage: Usage) -> dict[str, int]:
    """Tokens as OpenAI counts them."""
    total = usage.total
    return {
        "prompt_tokens": total.input_tokens,
        "completion_tokens": total.output_tokens,
        "total_tokens": total.input_tokens + total.output_tokens,
    }


def _decline(missing: str) -> str:
    return f"The memory does not hold the answer{f': {missing}' if missing else ''}".rstrip(".") + "."


def _write_citation(number: int, citation: Citation) -> str:
    quotation = escape_markdown(" ".join(citation.quote.split()))
    return f"[{number}] “{quotation}” ({escape_markdown(describe_source(citation))})"


def _link(citation: Citation, tome: str, trace: int | None, address: str) -> str:
    """The address of the quotation in the page."""
    span = {"id": citation.document, "start": citation.start, "end": citation.end}
    asked = {} if trace is None else {"trace": trace}
    return f"{address}/#/t/{quote(tome, safe='')}/doc?{urlencode(span | asked)}"
