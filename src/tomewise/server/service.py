"""What the endpoints share: the library, the options, the queue of questions and the jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Request

from tomewise.errors import TomewiseError
from tomewise.outgoing.answer_models import NumberedAnswer
from tomewise.outgoing.report_models import BuildCosts
from tomewise.server.bodies import Ask
from tomewise.server.choosing import choose_bounded, choose_naming
from tomewise.server.error_replies import HttpError
from tomewise.server.jobs import JobList
from tomewise.server.library import Library
from tomewise.server.limits import QuestionQueue
from tomewise.server.serve_options import ServerOptions
from tomewise.systems.registry import Variant
from tomewise.tome.reports import describe_costs, find_nearest
from tomewise.tome.session_record import Turn
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Event, Question, Spent


class Service:
    """Asks questions for all endpoints, so that each way to ask has the same queue, bounds and reply."""

    def __init__(self, library: Library, options: ServerOptions, jobs: JobList) -> None:
        self.library = library
        self.options = options
        self.jobs = jobs
        self.queue = QuestionQueue(options.questions, options.waiting)

    async def ask(
        self,
        name: str,
        body: Ask,
        on_event: Callable[[Event, Spent], None] | None = None,
        turns: Sequence[Turn] = (),
    ) -> tuple[Tome, Answer]:
        """Answer a question within the bounds of the server and of the request, and within its seconds.

        Earlier `turns` of a chat make the question stand alone. A session has its own turns.
        """
        if body.session and self.options.read_only:
            raise HttpError(403, "read_only", "this server only reads (--read-only): ask without a session")
        bounds = self.options.bounds.narrow(body.max_calls, body.max_tokens, body.max_cost)
        question = Question(
            text=body.question, options=tuple(body.options), instructions=body.instructions, force=body.force
        )
        async with self.queue, asyncio.timeout(self.options.seconds):
            tome = await self.library.open(name)
            await self.library.import_client()
            variant = await find_variant(tome, body)
            with self.library.budget(bounds) as budget:
                # Without a listener no provider is asked to stream.
                listener = (lambda event: on_event(event, budget.spent)) if on_event else None
                if body.session:
                    return tome, await tome.session(body.session).aask(question, system=variant, on_event=listener)
                return tome, await tome.aask(question, system=variant, on_event=listener, turns=turns)

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[None]:
        """The queue, the seconds and the budget of a question that MCP asks. Raises TomewiseError if too many wait."""
        async with AsyncExitStack() as inside:
            try:
                await inside.enter_async_context(self.queue)
            except HttpError as error:
                raise TomewiseError(error.message) from None
            async with asyncio.timeout(self.options.seconds):
                await self.library.import_client()
                with self.library.budget(self.options.bounds):
                    yield

    async def describe(self, tome: Tome, answer: Answer) -> NumberedAnswer:
        """The answer as it goes out, with the number of its trace."""
        nearest = await asyncio.to_thread(find_nearest, answer, tome.store)
        within = await asyncio.to_thread(tome.session(answer.session.name).read_within) if answer.session else None
        return NumberedAnswer.of(answer, choose_naming(tome), within=within, nearest=nearest)

    async def estimate(self, name: str, system: str | None, settings: dict[str, Any]) -> BuildCosts:
        """What a build would use."""
        async with self.queue, asyncio.timeout(self.options.seconds):
            tome = await self.library.open(name)
            variant = choose_bounded(system or tome.default_system, settings)
            variant = replace(variant, name=variant.label)
            estimates = await tome.aestimate(variant)
            return await asyncio.to_thread(describe_costs, estimates, variant, tome.kit.model.name)


async def find_variant(tome: Tome, body: Ask) -> Variant:
    """The system that a question is for, within bounds. A session that has begun supplies what the request leaves out.

    The session may have been begun elsewhere, so the bounds hold for its own settings too.
    """
    record = await asyncio.to_thread(tome.session(body.session).read) if body.session else None
    begun_with = record.system if record else tome.default_system
    return choose_bounded(body.system or begun_with, body.settings)


async def _find_service(request: Request) -> Service:  # FastAPI would call a plain function in a thread
    service: Service = request.app.state.service
    return service


Wanted = Annotated[Service, Depends(_find_service)]
