"""The endpoints of OpenAI's protocol, for chat clients: a model is a tome with a system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request, Response

from tomewise.errors import TomewiseError, UnknownName
from tomewise.loops.answer_parts import answer_whole
from tomewise.server.bodies import Ask
from tomewise.server.chat_turns import Chat, answer_task, read_chat
from tomewise.server.choosing import choose_naming
from tomewise.server.error_replies import OPENAI, explain_error, make_openai_body
from tomewise.server.library import Library
from tomewise.server.openai_replies import (
    ChatCompletion,
    ChatModel,
    ChatModelList,
    Completion,
    Written,
    write_answer,
    write_data,
)
from tomewise.server.operations import ASKING, Family
from tomewise.server.service import Service, Wanted
from tomewise.server.streaming import Emit, EventStream, Produce, refuse_stopping, run_while_connected
from tomewise.tome.session_record import Turn
from tomewise.types import Answer, Event, Spent, Usage

family = Family(OPENAI, "OpenAI-compatible")
_DONE = b"data: [DONE]\n\n"


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
        return EventStream(work, request.app.state.stopping, write_data(make_openai_body(refuse_stopping())))
    if reply is not None:
        return completion.whole(Written(reply, []), Usage(), None)
    return await run_while_connected(request, _answer(service, body, completion, address))


async def _answer(service: Service, body: Chat, completion: Completion, address: str) -> dict[str, Any]:
    name, ask, turns = _read_request(body)
    async with service.admit_question(name, ask, turns) as admitted:
        answer = await admitted.answer()
        data = (await admitted.describe(answer)).write()
    written = write_answer(answer, name, address, choose_naming(admitted.tome))
    return completion.whole(written, answer.usage, data)


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
                written = write_answer(answer, name, address, choose_naming(admitted.tome))
                _emit_answer(completion, body, written, answer, data, emit)
            except Exception as error:  # noqa: BLE001 - the stream has begun, so every error is its last chunk
                emit(write_data(make_openai_body(explain_error(error), service.library.clean)))
            emit(_DONE)

        yield produce


def _emit_answer(
    completion: Completion, body: Chat, written: Written, answer: Answer, data: dict[str, Any], emit: Emit
) -> None:
    emit(completion.chunk({"content": written.content, "annotations": written.annotations}))
    emit(completion.chunk({}, "stop", tomewise=data))
    if body.stream_options and body.stream_options.include_usage:
        emit(completion.usage_chunk(answer.usage))


def _read_request(body: Chat) -> tuple[str, Ask, tuple[Turn, ...]]:
    name, slash, system = body.model.partition("/")
    if not slash or not system:
        raise UnknownName(f"{body.model[:200]!a} is not TOME/SYSTEM: GET /v1/models lists the models")
    chat = read_chat(body.messages)
    return name, Ask(question=chat.question, instructions=chat.instructions, system=system), chat.turns


async def list_models(library: Library) -> list[str]:
    """`TOME/SYSTEM`, sorted by tome, the systems in their own order. Tomes that cannot be opened are left out."""
    models = []
    for name in await asyncio.to_thread(library.names):
        try:
            known = await library.find(name)
            ready = await asyncio.to_thread(known.readiness.list_ready)
        except TomewiseError:
            continue
        models += [f"{name}/{system}" for system in ready]
    return models
