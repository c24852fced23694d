"""The application: endpoints, error replies, and what surrounds every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tomewise import __version__
from tomewise.errors import TomewiseError
from tomewise.server import (
    ask_endpoints,
    evaluation_endpoints,
    job_endpoints,
    openai_api,
    page_endpoints,
    tome_endpoints,
    trace_endpoints,
)
from tomewise.server.error_replies import explain_error, make_body_at
from tomewise.server.jobs import JobList
from tomewise.server.library import Library
from tomewise.server.limits import JSON_BYTES, BodyLimits
from tomewise.server.mcp_mount import McpMount
from tomewise.server.replies import Info
from tomewise.server.security import Security
from tomewise.server.serve_options import ServerOptions
from tomewise.server.service import Service, Wanted
from tomewise.server.streaming import ClientLeft, run_while_connected

_ENDPOINTS = (
    page_endpoints,
    tome_endpoints,
    ask_endpoints,
    job_endpoints,
    trace_endpoints,
    evaluation_endpoints,
    openai_api,
)
_LEFT = 499  # nobody reads the reply


def make_app(library: Library, options: ServerOptions) -> FastAPI:
    """The server of these tomes. It closes the library when it ends."""
    app = FastAPI(
        title="Tomewise",
        version=__version__,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        lifespan=_live,
    )
    app.state.service = Service(library, options, JobList(library))
    app.state.stopping = asyncio.Event()
    for module in _ENDPOINTS:
        app.include_router(module.router)
    app.add_api_route("/api/health", _check_health, tags=["server"])
    app.add_api_route("/api/health", _check_health, methods=["HEAD"], include_in_schema=False)
    app.add_api_route("/api/info", _show_info, tags=["server"], response_model=Info, response_model_exclude_unset=True)
    app.state.mcp = McpMount(library, app.state.service.admit)
    for path in ("/mcp", "/mcp/"):
        app.router.routes.append(Route(path, endpoint=app.state.mcp))  # a mount would redirect the first to the second
    for kind in (HTTPException, RequestValidationError, TomewiseError, TimeoutError, OSError, ClientLeft, Exception):
        app.add_exception_handler(kind, _reply_error)
    app.add_middleware(BodyLimits, max_upload=options.max_upload)
    app.add_middleware(Security, options=options)
    return app


@asynccontextmanager
async def _live(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    if not service.options.read_only:
        await asyncio.to_thread(service.jobs.load)
    yield
    app.state.stopping.set()
    await app.state.mcp.close()
    await service.jobs.stop()
    await service.library.close()


async def _check_health() -> dict[str, bool]:
    """Whether the server answers. Needs no token."""
    return {"ok": True}


async def _show_info(request: Request, service: Wanted, systems: bool = True) -> dict[str, Any]:
    """The version, the model, the systems with their settings, the limits, and what was spent since the start.

    `systems=false` leaves out the systems: the first look at all of them takes a second.
    """
    options = service.options
    return {
        "version": __version__,
        "model": service.library.model_name,
        **({"systems": await run_while_connected(request, asyncio.to_thread(_summarise_systems))} if systems else {}),
        "limits": {
            **asdict(options.bounds),
            "questions": options.questions,
            "waiting": options.waiting,
            "seconds": options.seconds,
            "upload_bytes": options.max_upload,
            "body_bytes": JSON_BYTES,
        },
        "read_only": options.read_only,
        "makes_tomes": service.library.makes_tomes,
        "spent": asdict(service.library.spent),
    }


@cache
def _summarise_systems() -> list[dict[str, Any]]:
    from tomewise.systems.registry import list_systems, parse_variant
    from tomewise.tome.system_summary import summarise_system

    summaries = []
    for name in list_systems():
        try:
            summaries.append(asdict(summarise_system(parse_variant(name))))
        except TomewiseError as error:  # a broken plugin does not hide the other systems
            summaries.append({"name": name, "description": str(error)})
    return summaries


async def _reply_error(request: Request, error: Exception) -> Response:
    if isinstance(error, ClientLeft):
        return Response(status_code=_LEFT)
    refusal = explain_error(error)
    clean = request.app.state.service.library.clean
    body = make_body_at(request.scope["path"], refusal, clean)
    return JSONResponse(body, refusal.status_code, headers=refusal.headers)
