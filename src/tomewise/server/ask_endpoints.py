"""Endpoints that ask: a question, a search, an estimate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from fastapi import Request, Response

from tomewise.errors import NotBuilt, TomewiseError
from tomewise.events import is_event
from tomewise.server.bodies import Ask, Collect, Find, Narrowed, Search, ToPrice, Verify
from tomewise.server.choosing import choose_bounded
from tomewise.server.error_replies import HttpError, explain_error, make_body
from tomewise.server.operations import ASKING, BUSY, Family, Tool
from tomewise.server.replies import ScopeReply, SearchReply
from tomewise.server.scope_list import describe_scope
from tomewise.server.service import Service, Wanted, find_variant, narrow
from tomewise.server.streaming import Emit, EventStream, Produce, refuse_stopping, run_while_connected, write_event
from tomewise.tome.collected import Table
from tomewise.tome.reports import Price
from tomewise.tome.view import TomeView
from tomewise.types import Answer, Cost, Event, Hits, Noun, Question

_MOST_ESTIMATED = 5000  # passages
family = Family("/api/tomes/{tome}", "asking")


@family.post(
    "/ask",
    reply=Answer,
    errors=(*ASKING, "read_only", "estimate"),
    streams="also",
    tool=Tool(name="ask", title="Ask a tome", asks_model=True),
)
async def ask(tome: str, body: Ask, request: Request, service: Wanted) -> Response | dict[str, Any]:
    """Answer a question. With `Accept: text/event-stream`, its events come as they happen, then the answer."""
    if "text/event-stream" in request.headers.get("accept", ""):
        stopping = write_event("error", make_body(refuse_stopping()))
        return EventStream(_stream(service, tome, body), request.app.state.stopping, stopping)
    return await run_while_connected(request, _answer(service, tome, body))


@family.post("/search", reply=SearchReply, errors=ASKING, tool=Tool(name="search", title="Search a tome"))
async def search(tome: str, body: Search, request: Request, service: Wanted) -> dict[str, Any]:
    """The evidence that a system finds, without an answer: what `tome search --json` prints, as `evidence`."""
    return await run_while_connected(request, _search(service, tome, body))


@family.post("/scopes", reply=ScopeReply, errors=BUSY, tool=Tool(name="within", title="Open a part of a tome"))
async def open_scope(tome: str, body: Narrowed, service: Wanted) -> Any:
    """Open a part of the tome under an id. What is asked, searched, collected and read with it counts as read."""
    opened = await service.library.open(tome)
    part = await narrow(opened, body, service.scopes)
    id = body.scope or service.scopes.open(opened, part)
    return await asyncio.to_thread(describe_scope, id, part, opened)


@family.get("/scopes/{id}", reply=ScopeReply, errors=BUSY)
async def show_scope(tome: str, id: str, service: Wanted) -> Any:
    """What an open scope is narrowed to, and how much of it was read."""
    opened = await service.library.open(tome)
    return await asyncio.to_thread(describe_scope, id, service.scopes.find(opened, id), opened)


@family.post("/find", reply=Hits, errors=(*BUSY, "locked"), tool=Tool(name="find", title="Find a text"))
async def find(tome: str, body: Find, request: Request, service: Wanted) -> dict[str, Any]:
    """Every place that has one of these texts, exactly, without a model: what `tome find --json` prints."""
    ask = partial(TomeView.afind, kind=body.kind, case=body.case, limit=body.limit, skip=body.skip)
    return await run_while_connected(
        request, _ask_part(service, tome, body, None, lambda part: ask(part, *body.wanted))
    )


@family.post(
    "/collect", reply=Table, errors=ASKING, tool=Tool(name="collect", title="Collect a table", asks_model=True)
)
async def collect(tome: str, body: Collect, request: Request, service: Wanted) -> dict[str, Any]:
    """A table of all things of one kind, for which every passage is read: what `tome collect --json` prints."""
    given = body.model_dump(include={"asked", "columns", "key", "figures", "fresh"})
    ask = partial(TomeView.acollect, **given)
    return await run_while_connected(request, _ask_part(service, tome, body, body.model, ask))


@family.post("/verify", reply=Answer, errors=ASKING, tool=Tool(name="verify", title="Verify a text", asks_model=True))
async def verify(tome: str, body: Verify, request: Request, service: Wanted) -> dict[str, Any]:
    """Say of each statement of a text whether documents state it: what `tome verify --json` prints."""
    ask = partial(TomeView.averify, text=body.text, judge=body.judge)
    return await run_while_connected(request, _ask_part(service, tome, body, body.model, ask))


@family.post("/estimate", errors=(*ASKING, "read_only"))
async def estimate(tome: str, body: ToPrice, request: Request, service: Wanted) -> Price:
    """What a build or a question would cost: what `--estimate --json` of `tome build` and `tome ask` print."""
    return await run_while_connected(request, service.estimate(tome, body))


async def _answer(service: Service, name: str, body: Ask) -> Any:
    async with _offer_build(service, name, body), service.admit_question(name, body) as admitted:
        return await admitted.describe(await admitted.answer())


@asynccontextmanager
async def _stream(service: Service, name: str, body: Ask) -> AsyncIterator[Produce]:
    """Admit the question; then produce `started`, the events with what was spent after each, and `answer` or `error`.

    The parts of an answer that is being written are `answer_part`: `text`, and whether it replaces the parts before.
    """
    async with _offer_build(service, name, body), service.admit_question(name, body) as admitted:

        async def produce(emit: Emit) -> None:
            def report(event: Event, spent: Cost) -> None:
                if is_event(event, "answer_part"):
                    emit(write_event(event.name, event.detail))
                    return
                record = admitted.tome.documents.names.hide(event)
                emit(write_event(record.pop("name"), record))
                emit(write_event("cost", spent.to_dict()))

            about = {"tome": name, "system": admitted.variant.label, "model": service.library.name_model(body.model)}
            emit(write_event("started", about))
            try:
                answer = await admitted.describe(await admitted.answer(report))
                emit(write_event("answer", answer))
            except Exception as error:  # noqa: BLE001 - the stream has begun, so every error is its last event
                emit(write_event("error", make_body(explain_error(error), service.library.clean)))

        yield produce


@asynccontextmanager
async def _offer_build(service: Service, name: str, body: Ask) -> AsyncIterator[None]:
    """Add to NotBuilt what the missing build would cost. Raises HttpError 409.

    The estimate of a large tome can take minutes: a client asks for that one itself.
    """
    try:
        yield
    except NotBuilt as error:
        refusal = explain_error(error)
        tome = await service.library.open(name)
        if await asyncio.to_thread(tome.store.count_passages) <= _MOST_ESTIMATED:
            variant = await find_variant(tome, body)
            with suppress(TomewiseError, HttpError, TimeoutError):  # what was asked for matters more than its price
                refusal.more = {"estimate": (await service.price(tome, variant, body.model)).to_dict()}
        raise refusal from None


async def _search(service: Service, name: str, body: Search) -> Any:
    async with service.take_turn(name, body.model) as tome:
        variant = choose_bounded(body.system, body.settings, tome.default_system)
        with service.library.budget():
            part = await narrow(tome, body, service.scopes)
            query = Question(text=body.query, current=body.current)
            found = await part.asearch(query, system=variant, limit=body.limit)
            lagging = await part.alag(query, system=variant)
        return await asyncio.to_thread(tome.documents.names.hide, {"evidence": found, "lagging": lagging})


async def _ask_part(
    service: Service, name: str, body: Narrowed, model: str | None, ask: Callable[[TomeView], Awaitable[Noun]]
) -> Any:
    """What is asked of the part of a tome that a request names, when its turn comes, within the server's budget."""
    async with service.take_turn(name, model) as tome:
        await service.library.import_client(model)
        with service.library.budget(model):
            found = await ask(await narrow(tome, body, service.scopes))
        return await asyncio.to_thread(tome.documents.names.hide, found)
