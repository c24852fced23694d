"""The endpoints of OpenAI's protocol, for chat clients: a model is a tome with a system."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tomewise.errors import TomewiseError, UnknownName, UsageError
from tomewise.loops.answer_parts import answer_whole
from tomewise.server.bodies import MOST_QUESTION, Ask, Name
from tomewise.server.choosing import choose_naming
from tomewise.server.error_replies import OPENAI, explain_error, make_body
from tomewise.server.library import Library
from tomewise.server.openai_replies import (
    ChatCompletion,
    ChatModel,
    ChatModelList,
    Completion,
    write_answer,
    write_data,
)
from tomewise.server.operations import ASKING, Family
from tomewise.server.service import Service, Wanted
from tomewise.server.streaming import Emit, EventStream, Produce, refuse_stopping, run_while_connected
from tomewise.tome.session_record import Turn
from tomewise.types import Event, Spent, Usage

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


@family.get("/models")
async def list_chat_models(service: Wanted) -> ChatModelList:
    """The models: every tome with every system whose layers are ready."""
    names = await list_models(service.library)
    return ChatModelList(data=[ChatModel(id=name) for name in names])


@family.get("/models/{name:path}", errors=("unknown_name",))
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
        return completion.whole({"content": reply, "annotations": []}, Usage(), None)
    return await run_while_connected(request, _answer(service, body, completion, address))


async def _answer(service: Service, body: Chat, completion: Completion, address: str) -> dict[str, Any]:
    name, ask, turns = _read_request(body)
    async with service.admit_question(name, ask, turns) as admitted:
        answer = await admitted.answer()
        data = (await admitted.describe(answer)).write()
    return completion.whole(write_answer(answer, name, address, choose_naming(admitted.tome)), answer.usage, data)


@asynccontextmanager
async def _stream_task(completion: Completion, reply: str) -> AsyncIterator[Produce]:
    async def produce(emit: Emit) -> None:
        emit(completion.chunk({"role": "assistant", "content": reply}))
        emit(completion.chunk({}, "stop"))
        emit(_DONE)

    yield produce


@asynccontextmanager
async def _stream(service: Service, body: Chat, completion: Completion, address: str) -> AsyncIterator[Produce]:
    """Admit the question; then produce its trace as reasoning, and the answer with verified quotations."""
    name, ask, turns = _read_request(body)
    async with service.admit_question(name, ask, turns) as admitted:

        async def produce(emit: Emit) -> None:
            def report(event: Event, _: Spent) -> None:
                summary = admitted.tome.document_names.read().clean(event.summary)
                emit(completion.chunk({"reasoning_content": f"{event.name}: {summary}\n"}))

            emit(completion.chunk({"role": "assistant", "content": ""}))
            try:
                with answer_whole():
                    answer = await admitted.answer(report)
                data = (await admitted.describe(answer)).write()
                emit(completion.chunk(write_answer(answer, name, address, choose_naming(admitted.tome))))
                emit(completion.chunk({}, "stop", tomewise=data))
                if body.stream_options and body.stream_options.include_usage:
                    emit(completion.usage_chunk(answer.usage))
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
