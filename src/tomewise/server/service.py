"""What the endpoints share: the library, the options, the queue of questions and the jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request

from tomewise.errors import UsageError
from tomewise.language.trial import Trial
from tomewise.server.bodies import Ask, ChosenSystem, Narrowed, ToPrice
from tomewise.server.choosing import choose_bounded
from tomewise.server.error_replies import HttpError, refuse_price
from tomewise.server.jobs import JobList
from tomewise.server.library import Library
from tomewise.server.limits import QuestionQueue
from tomewise.server.scope_list import ScopeList
from tomewise.server.serve_options import ServerOptions
from tomewise.systems.efforts import choose_by_effort
from tomewise.systems.registry import Variant
from tomewise.tome.reports import Price
from tomewise.tome.session_record import Turn
from tomewise.tome.tome import Tome
from tomewise.tome.view import TomeView
from tomewise.types import Answer, Cost, Event, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedQuestion:
    """A question that has its place in the queue, with its tome and its system, which is ready."""

    tome: Tome
    part: TomeView
    variant: Variant
    question: Question
    body: Ask
    turns: Sequence[Turn]
    running: asyncio.Semaphore
    service: Service

    async def answer(self, on_event: Callable[[Event, Cost], None] | None = None) -> Answer:
        """The answer, when its turn comes, within the bounds and the seconds of the server."""
        library, options, tome, body = self.service.library, self.service.options, self.tome, self.body
        async with self.running, asyncio.timeout(options.seconds):
            await library.import_client(body.model)
            with library.use_model(body.model, tome), library.budget(body.model, body.budget) as budget:
                # Without a listener no provider is asked to stream.
                listener = (lambda event: on_event(event, budget.spent)) if on_event else None
                if body.session:
                    session = self.part.sessions[body.session]
                    return await session.aask(self.question, system=self.variant, on_event=listener)
                return await self.part.aask(self.question, system=self.variant, on_event=listener, turns=self.turns)

    async def describe(self, answer: Answer) -> Any:
        """The answer as it goes out."""
        return await asyncio.to_thread(self.tome.documents.names.hide, answer)


class Service:
    """Asks questions for all endpoints, so that each way to ask has the same queue, bounds and reply."""

    def __init__(self, library: Library, options: ServerOptions, jobs: JobList) -> None:
        self.library = library
        self.options = options
        self.jobs = jobs
        self.queue = QuestionQueue(options.questions, options.waiting)
        self.scopes = ScopeList()

    @asynccontextmanager
    async def admit_question(self, name: str, body: Ask, turns: Sequence[Turn] = ()) -> AsyncIterator[AdmittedQuestion]:
        """A place in the queue for a question, until the context ends. Earlier `turns` of a chat make it stand alone.

        Raises what refuses it before any call: HttpError for a full queue, UnknownName, UsageError, NotBuilt, Locked.
        """
        if body.session and self.options.read_only:
            raise HttpError("read_only", "this server only reads (--read-only): ask without a session")
        with self.queue.admit() as running, self.library.hold(name):
            async with asyncio.timeout(self.options.seconds):
                tome = await self.library.open(name)
                self.library.name_model(body.model)
                variant = await find_variant(tome, body)
                part = await narrow(tome, body, self.scopes)
                question = _make_question(body, part)
                check = part.sessions[body.session].acheck if body.session else part.acheck
                await check(question, system=variant)
                if body.accept is not None:
                    with self.library.use_model(body.model, tome):
                        refuse_price(await part.aprice_above(body.accept, question, system=variant))
            yield AdmittedQuestion(
                tome=tome,
                part=part,
                variant=variant,
                question=question,
                body=body,
                turns=turns,
                running=running,
                service=self,
            )

    async def delete_tome(self, name: str) -> None:
        """Delete a tome with its jobs. Raises Locked while a question or a job works on it, UnknownName, UsageError."""
        self.jobs.check_idle(name)
        path = await self.library.delete(name)
        await asyncio.to_thread(self.jobs.forget, name, path)

    async def rename_tome(self, name: str, new: str) -> None:
        """Rename a tome; its jobs go with it. Raises what `delete_tome` raises."""
        self.jobs.check_idle(name)
        path, new_path = await self.library.rename(name, new)
        await asyncio.to_thread(self.jobs.move, name, new, path, new_path)

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[None]:
        """The queue, the seconds and the budget of a question that MCP asks. Raises HttpError if too many wait."""
        async with self.queue.run(), asyncio.timeout(self.options.seconds):
            await self.library.import_client(None)
            with self.library.budget(), self.library.hold(*self.library.tomes):
                yield

    async def try_model(self, name: str) -> Trial:
        """Ask a model one small question, when its turn comes. Raises UnknownName."""
        async with self.queue.run():
            return await self.library.try_model(name)

    @asynccontextmanager
    async def take_turn(self, name: str, model: str | None) -> AsyncIterator[Tome]:
        """A tome with the model that a request names, when its turn comes, for the server's seconds."""
        async with self.queue.run(), asyncio.timeout(self.options.seconds):
            with self.library.hold(name):
                tome = await self.library.open(name)
                with self.library.use_model(model, tome):
                    yield tome

    async def estimate(self, name: str, body: ToPrice | ChosenSystem) -> Price:
        """What a build or a question would use, when its turn comes."""
        async with self.take_turn(name, body.model) as tome:
            if isinstance(body, ToPrice) and body.question:
                part, variant = await narrow(tome, body, self.scopes), await find_variant(tome, body)
                price: Price = await part.aestimate(_make_question(body, part), system=variant)
                return price
            return await tome.memory.aestimate(choose_bounded(body.system, body.settings, tome.default_system))

    async def price(self, tome: Tome, variant: Variant, model: str | None) -> Price:
        """The same at once: it takes a place in the queue, but does not wait for its turn."""
        with self.queue.admit(), self.library.use_model(model, tome):
            async with asyncio.timeout(self.options.seconds):
                return await tome.memory.aestimate(variant)


def _make_question(body: Ask, part: TomeView) -> Question:
    return Question(
        text=body.question,
        options=tuple(body.options),
        instructions=body.instructions,
        form=body.form,
        force=body.force,
        current=body.current,
        only_supported=body.only_supported,
        within=part.scope,
    )


async def narrow(tome: Tome, body: Narrowed, scopes: ScopeList) -> TomeView:
    """The part of the tome that a request is about, or the open one that it names."""
    if body.scope:
        if body.documents or body.where:
            raise UsageError("a scope has its documents and conditions: name it alone, or open another")
        return scopes.find(tome, body.scope)
    find = tome.documents.names.find_all
    return await asyncio.to_thread(lambda: tome.within(*find(body.documents), where=body.where))


async def find_variant(tome: Tome, body: Ask) -> Variant:
    """The system that a question is for, within bounds. A session that has begun supplies what the request leaves out.

    The session may have been begun elsewhere, so the bounds hold for its own settings too; the operator's default has
    none.
    """
    record = await asyncio.to_thread(tome.sessions[body.session].read) if body.session else None
    begun = record.system if record else ""
    choose = partial(choose_by_effort, body.system, body.effort, tome.kit, current=body.current, begun=begun)
    stated = await asyncio.to_thread(choose) or begun or None
    return choose_bounded(stated, body.settings, tome.default_system)


async def _find_service(request: Request) -> Service:  # FastAPI would call a plain function in a thread
    service: Service = request.app.state.service
    return service


Wanted = Annotated[Service, Depends(_find_service)]


async def _open_tome(tome: str, service: Wanted) -> Tome:
    return await service.library.open(tome)


Opened = Annotated[Tome, Depends(_open_tome)]  # the tome that the address names
