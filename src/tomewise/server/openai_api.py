"""The endpoints of OpenAI's protocol, for chat clients: a model is a tome with a system."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from tomewise.errors import TomewiseError, UnknownName
from tomewise.loops.answer_parts import answer_whole
from tomewise.server.bodies import Ask
from tomewise.server.chat_turns import Chat, answer_task, read_chat
from tomewise.server.choosing import choose_naming
from tomewise.server.error_replies import OPENAI, explain_error, make_openai_body
from tomewise.server.library import Library
from tomewise.server.openai_replies import Completion, Written, write_answer, write_data
from tomewise.server.service import Service, Wanted
from tomewise.server.streaming import Emit, EventStream, refuse_stopping, run_while_connected
from tomewise.tome.session_record import Turn
from tomewise.types import Answer, Event, Spent, Usage

router = APIRouter(prefix=OPENAI, tags=["OpenAI-compatible"])
_DONE = b"data: [DONE]\n\n"


@router.get("/models")
async def models(service: Wanted) -> dict[str, Any]:
    """The models: every tome with every system whose layers are ready."""
    names = await list_models(service.library)
    return {"object": "list", "data": [_describe_model(name) for name in names]}


@router.get("/models/{name:path}")
async def model(name: str, service: Wanted) -> dict[str, Any]:
    """One model."""
    if name not in await list_models(service.library):
        raise UnknownName(f"no model {name[:200]!a} here: GET /v1/models lists them")
    return _describe_model(name)


@router.post("/chat/completions", response_model=None)
async def complete(body: Chat, request: Request, service: Wanted) -> Response | dict[str, Any]:
    """Answer the last message of a chat from a tome. Fields for sampling are ignored."""
    body.check()
    completion = Completion(body.model)
    reply = answer_task(body.messages)
    address = str(request.base_url).rstrip("/")
    if not body.stream:
        if reply is not None:
            return completion.whole(Written(reply, []), Usage(), None)
        return await run_while_connected(request, _answer(service, body, completion, address))

    async def produce(emit: Emit) -> None:
        if reply is None:
            await _stream(service, body, completion, address, emit)
        else:
            emit(completion.chunk({"role": "assistant", "content": reply}))
            emit(completion.chunk({}, "stop"))
        emit(_DONE)

    return EventStream(produce, request.app.state.stopping, write_data(make_openai_body(refuse_stopping())))


async def _answer(service: Service, body: Chat, completion: Completion, address: str) -> dict[str, Any]:
    name, ask, turns = _read_request(body)
    tome, answer = await service.ask(name, ask, turns=turns)
    data = (await service.describe(tome, answer)).write()
    written = write_answer(answer, name, address, choose_naming(tome))
    return completion.whole(written, answer.usage, data)


async def _stream(service: Service, body: Chat, completion: Completion, address: str, emit: Emit) -> None:
    """Emit the trace as reasoning, then the answer, whose quotations are verified by then."""

    def report(event: Event, _: Spent) -> None:
        emit(completion.chunk({"reasoning_content": f"{event.name}: {event.summary}\n"}))

    try:
        name, ask, turns = _read_request(body)
        service.library.find_path(name)
        emit(completion.chunk({"role": "assistant", "content": ""}))
        with answer_whole():
            tome, answer = await service.ask(name, ask, report, turns)
        data = (await service.describe(tome, answer)).write()
        _emit_answer(completion, body, write_answer(answer, name, address, choose_naming(tome)), answer, data, emit)
    except Exception as error:  # noqa: BLE001 - the stream has begun, so every error is its last chunk
        emit(write_data(make_openai_body(explain_error(error), service.library.clean)))


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


def _describe_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "tomewise"}


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
