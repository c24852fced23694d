"""The endpoints of OpenAI's protocol, for chat clients: a model is a tome with a system."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from secrets import token_hex
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tomewise.errors import TomewiseError, UnknownName, UsageError
from tomewise.events import is_event, shorten
from tomewise.server.bodies import MOST_QUESTION, Ask, Name
from tomewise.server.error_replies import OPENAI, explain_error, make_body
from tomewise.server.library import Library
from tomewise.server.operations import ASKING, Family
from tomewise.server.replies import Reply
from tomewise.server.service import Service, Wanted
from tomewise.server.streaming import Emit, EventStream, Produce, refuse_stopping, run_while_connected
from tomewise.text.quotable import find_sentences
from tomewise.tome.session_record import Turn
from tomewise.types import Answer, Cost, Event, Quote, read_plain
from tomewise.types.proof import (
    Piece,
    count_safe,
    cut_text,
    decline,
    escape_markdown,
    escape_pieces,
    list_quotes,
)

family = Family(OPENAI, "OpenAI-compatible")
_DONE = b"data: [DONE]\n\n"
_NOT_SERVED = ("tools", "functions", "tool_choice", "audio", "modalities", "logprobs")
_TITLE = 40  # characters of the title of a chat
# The tasks that Open WebUI and LibreChat send beside each message: what they ask for, and the empty reply.
_TASK = re.compile(r"\s*(### Task:|Provide a concise, 5-word-or-less title)", re.IGNORECASE)
_REPLIES: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    (re.compile(r"follow[- _]?up", re.IGNORECASE), {"follow_ups": []}),
    (re.compile(r"\btags\b", re.IGNORECASE), {"tags": []}),
    (re.compile(r"search quer|\bqueries\b", re.IGNORECASE), {"queries": []}),
    (re.compile(r"autocomplet|completion", re.IGNORECASE), {"text": ""}),
)
_BEGINNING = 60  # characters of a statement
_FIRST_TURN = re.compile(r"^(?:USER|Human|User): *(.+)$", re.MULTILINE)


class Part(BaseModel):
    """A part of a message."""

    model_config = ConfigDict(strict=True, extra="ignore")

    type: str
    text: Annotated[str, Field(max_length=MOST_QUESTION)] = ""


class Message(BaseModel):
    """A message of a chat."""

    model_config = ConfigDict(strict=True, extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str, Field(max_length=MOST_QUESTION)] | Annotated[list[Part], Field(max_length=1000)] | None = (
        None
    )

    @property
    def text(self) -> str:
        """The text of all parts. Raises UsageError for a part that is not text."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        for part in self.content:
            if part.type != "text":
                raise UsageError(f"messages: a part of type {part.type[:40]!a} cannot be read here: send text alone")
        return "\n".join(part.text for part in self.content)


class StreamOptions(BaseModel):
    """Whether the last chunk says what was used."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool | None = False


class Chat(BaseModel):
    """A request for the next message of a chat."""

    model_config = ConfigDict(strict=True, extra="allow")

    model: Name
    messages: Annotated[list[Message], Field(min_length=1, max_length=1000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    response_format: dict[str, Any] | None = None

    def check(self) -> None:
        """Raise UsageError for what a tome cannot do, by name."""
        if self.n not in (None, 1):
            raise UsageError(f"n is {self.n}: this server gives one answer to a question")
        if self.response_format and self.response_format.get("type", "text") != "text":
            raise UsageError("response_format: this server answers in text; the answer as data is under `tomewise`")
        for name in _NOT_SERVED:
            if (self.model_extra or {}).get(name) not in (None, [], {}, "none", "auto", False, ["text"]):
                raise UsageError(f"{name}: this server does not serve that; leave it out")
        if self.messages[-1].role != "user":
            raise UsageError("messages: the last one must be of the user; it is the question")


class ChatModel(Reply):
    """A tome with a system."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "tomewise"


class ChatModelList(Reply):
    """All models."""

    object: Literal["list"] = "list"
    data: list[ChatModel]


class UrlCitation(Reply):
    """A quotation: its mark in the text, or the statement, and the address of the page that shows it."""

    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(Reply):
    """A mark in the text of a message."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class ChatMessage(Reply):
    """The reply to a chat."""

    role: Literal["assistant"]
    content: str
    annotations: list[Annotation]


class Choice(Reply):
    """The only choice of a completion."""

    index: int
    message: ChatMessage
    finish_reason: Literal["stop", "length"]
    logprobs: None


class ChatUsage(Reply):
    """Tokens as OpenAI counts them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(Reply):
    """The next message of a chat; `tomewise` is the answer as `/ask` replies it, null for a title or tags."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    tomewise: Answer | None


@family.get("/models")
async def list_chat_models(service: Wanted) -> ChatModelList:
    """The models: every tome with every system whose layers are ready."""
    names = await list_models(service.library)
    return ChatModelList(data=[ChatModel(id=name) for name in names])


@family.get("/models/{name:path}")
async def show_chat_model(name: str, service: Wanted) -> ChatModel:
    """One model."""
    if name not in await list_models(service.library):
        raise UnknownName(f"no model {name[:200]!a} here: GET /v1/models lists them")
    return ChatModel(id=name)


@family.post("/chat/completions", reply=ChatCompletion, errors=(*ASKING, "unknown_name", "store"), streams="also")
async def complete_chat(body: Chat, request: Request, service: Wanted) -> Response | dict[str, Any]:
    """Answer the last message of a chat from a tome. Fields for sampling are ignored."""
    body.check()
    completion = Completion(body.model)
    reply = answer_task(body.messages)
    address = str(request.base_url).rstrip("/")
    if body.stream:
        work = _stream_task(completion, reply) if reply is not None else _stream(service, body, completion, address)
        return EventStream(work, request.app.state.stopping, write_data(make_body(refuse_stopping(), path=OPENAI)))
    if reply is not None:
        return completion.whole({"content": reply, "annotations": []}, Cost(), None)
    return await run_while_connected(request, _answer(service, body, completion, address))


async def _answer(service: Service, body: Chat, completion: Completion, address: str) -> dict[str, Any]:
    name, ask, turns = _read_request(body)
    async with service.admit_question(name, ask, turns) as admitted:
        answer = await admitted.answer()
        data = await admitted.describe(answer)
    return completion.whole(write_answer(read_plain(Answer, data), name, address), answer.cost, data, name_end(answer))


@asynccontextmanager
async def _stream_task(completion: Completion, reply: str) -> AsyncIterator[Produce]:
    async def produce(emit: Emit) -> None:
        emit(completion.chunk({"role": "assistant", "content": reply}))
        emit(completion.chunk({}, "stop"))
        emit(_DONE)

    yield produce


@asynccontextmanager
async def _stream(service: Service, body: Chat, completion: Completion, address: str) -> AsyncIterator[Produce]:
    """Admit the question; then produce its trace as reasoning, its sentences, and marks and quotations in the end."""
    name, ask, turns = _read_request(body)
    async with service.admit_question(name, ask, turns) as admitted:

        async def produce(emit: Emit) -> None:
            draft = Draft()

            def report(event: Event, _: Cost) -> None:
                clean = admitted.tome.documents.names.read().clean
                if not is_event(event, "answer_part"):
                    emit(completion.chunk({"reasoning_content": f"{event.name}: {clean(event.summary)}\n"}))
                elif new := draft.take(clean(event.detail["text"]), replace=event.detail["replace"]):
                    emit(completion.chunk({"content": new}))

            emit(completion.chunk({"role": "assistant", "content": ""}))
            try:
                answer = await admitted.answer(report)
                data = await admitted.describe(answer)
                emit(completion.chunk(write_answer(read_plain(Answer, data), name, address, draft.sent)))
                emit(completion.chunk({}, name_end(answer), tomewise=data))
                if body.stream_options and body.stream_options.include_usage:
                    emit(completion.usage_chunk(answer.cost))
            except Exception as error:  # noqa: BLE001 - the stream has begun, so every error is its last chunk
                emit(write_data(make_body(explain_error(error), service.library.clean, OPENAI)))
            emit(_DONE)

        yield produce


def _read_request(body: Chat) -> tuple[str, Ask, list[Turn]]:
    name, slash, system = body.model.partition("/")
    if not slash or not system:
        raise UnknownName(f"{body.model[:200]!a} is not TOME/SYSTEM: GET /v1/models lists the models")
    question, instructions = body.messages[-1].text, read_instructions(body.messages)
    return name, Ask(question=question, instructions=instructions, system=system), read_turns(body.messages[:-1])


async def list_models(library: Library) -> list[str]:
    """`TOME/SYSTEM`, sorted by tome, the systems in their own order. Tomes that cannot be opened are left out."""
    models = []
    for name in await asyncio.to_thread(library.names):
        try:
            known = await library.find(name)
            ready = await asyncio.to_thread(known.list_ready)
        except TomewiseError:
            continue
        models += [f"{name}/{system}" for system in ready]
    return models


def read_instructions(messages: Sequence[Message]) -> str:
    """What the system messages say. Raises UsageError."""
    return "\n\n".join(each.text for each in messages if each.role in ("system", "developer"))


def read_turns(messages: Sequence[Message]) -> list[Turn]:
    """Each message of the user with the reply to it, empty where the chat has none. Raises UsageError."""
    turns: list[Turn] = []
    is_open = False  # the last turn waits for its reply
    for message in messages:
        if message.role == "user":
            turns.append(Turn(asked=message.text, question=message.text, answer=""))
            is_open = True
        elif message.role == "assistant" and is_open:
            turns[-1] = replace(turns[-1], answer=message.text)
            is_open = False
    return turns


def answer_task(messages: Sequence[Message]) -> str | None:
    """The reply to a prompt by which a chat client asks for a title, tags or follow-ups; None for a question.

    No model is asked for them: the title is the beginning of the chat.
    """
    text = messages[-1].text
    begin = _TASK.match(text)
    if begin is None:
        return None
    task = text[: text.lower().find("chat_history")] if "chat_history" in text.lower() else text
    first = _FIRST_TURN.search(text)
    title = " ".join((first[1] if first else "Questions").split())[:_TITLE]
    if "title" in task.split("\n\n")[0].lower():
        return title if begin[1].lower().startswith("provide") else json.dumps({"title": title}, ensure_ascii=False)
    return next((json.dumps(reply) for pattern, reply in _REPLIES if pattern.search(task)), json.dumps({}))


# ---------------------------------------------------------------- replies


class Completion:
    """Makes the reply to one chat request, whole or in chunks."""

    def __init__(self, model: str) -> None:
        self._id = f"chatcmpl-{token_hex(12)}"
        self._created = int(time.time())
        self._model = model

    def whole(
        self, written: dict[str, Any], cost: Cost, tomewise: dict[str, Any] | None, finish: str = "stop"
    ) -> dict[str, Any]:
        """The reply that is not streamed."""
        choice = {"index": 0, "message": {"role": "assistant", **written}, "finish_reason": finish, "logprobs": None}
        return self._frame("chat.completion", [choice], usage=usage_of(cost), tomewise=tomewise)

    def chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        """One chunk of a streamed reply."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return write_data(self._frame("chat.completion.chunk", [choice], **more))

    def usage_chunk(self, cost: Cost) -> bytes:
        """The chunk that says what was used."""
        return write_data(self._frame("chat.completion.chunk", [], usage=usage_of(cost)))

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


class Draft:
    """What a model has written of an answer, and what of it was sent: whole sentences, before proof is there."""

    def __init__(self) -> None:
        self.sent = ""
        self._text = ""

    def take(self, text: str, *, replace: bool) -> str:
        """What can be sent of the text with this new part: sentences that end, before any sign that may do harm."""
        self._text = text if replace else self._text + text
        begin = len(self.sent)
        if not self._text.startswith(self.sent):
            return ""
        most = begin + count_safe(self._text[begin:])
        ends = [begin + end for _, end in find_sentences(self._text[begin:])][:-1]
        end = max((end for end in ends if end <= most and self._text[end].isspace()), default=begin)
        self.sent = self._text[:end]
        return self.sent[begin:]


def write_answer(answer: Answer, tome: str, address: str, sent: str = "") -> dict[str, Any]:
    """The `content` of a message and its `annotations`: the answer with its marks, and the quotations below it.

    No mark is put into what was `sent` already: an annotation spans the statement, and its beginning stands below with
    its mark. Chat clients show Markdown, and fetch an image from wherever a document says: what does harm is escaped.
    """
    quotes = list_quotes(answer)
    pieces = escape_pieces(cut_text(answer) or [Piece(decline(answer))])
    is_new = not "".join(piece.text for piece in pieces).startswith(sent)
    content = f"{sent}\n\nThe model began anew:\n\n" if is_new else ""
    before = len(content) if is_new else len(sent)  # no mark stands before it
    late, annotations, cited = [], [], set[int]()

    def cite(number: int, start: int, end: int) -> None:
        quoted = quotes[number - 1]
        url = link_quote(quoted, tome, answer.trace, address)
        span = {"start_index": start, "end_index": end, "url": url, "title": quoted.title or quoted.document}
        annotations.append({"type": "url_citation", "url_citation": span})
        cited.add(number)

    for piece in pieces:
        start, mark = len(content), piece.mark()
        content += piece.text
        is_late = len(content) < before
        if is_late and mark:
            late.append(f"“{shorten(piece.text, _BEGINNING)}”{mark}")
        for number in piece.numbers:
            name = f"[{number}]" if f"[{number}]" in mark else mark.strip()
            at = len(content) + mark.index(name)
            cite(number, *((start, len(content)) if is_late else (at, at + len(name))))
        content += "" if is_late else mark
    remarks = [escape_markdown(remark) for remark in (*answer.remarks, answer.coverage.remark) if remark]
    lines = [content, *late, *remarks] if content else remarks
    for number, quoted in enumerate(quotes, start=1):
        start = sum(map(len, lines)) + 2 * len(lines)
        if number not in cited:
            cite(number, start, start + len(f"[{number}]"))
        lines.append(f"[{number}] {escape_markdown(str(quoted))}")
    return {"content": "\n\n".join(lines)[len(sent) :], "annotations": annotations}


def name_end(answer: Answer) -> str:
    """Why the text ends, as OpenAI names it."""
    return "length" if answer.unfinished else "stop"


def usage_of(cost: Cost) -> dict[str, int]:
    """Tokens as OpenAI counts them."""
    return {
        "prompt_tokens": cost.input_tokens,
        "completion_tokens": cost.output_tokens,
        "total_tokens": cost.input_tokens + cost.output_tokens,
    }


def link_quote(quoted: Quote, tome: str, trace: int | None, address: str) -> str:
    """The address of the quotation in the page."""
    span = {"id": quoted.document, "start": quoted.start, "end": quoted.end}
    asked = {} if trace is None else {"trace": trace}
    return f"{address}/#/t/{quote(tome, safe='')}/doc?{urlencode(span | asked)}"
