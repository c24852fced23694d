"""The application: operations, the page, error replies, and what surrounds every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tomewise import __version__
from tomewise.errors import TomewiseError, UnknownName
from tomewise.server.error_replies import explain_error, make_body
from tomewise.server.jobs import JobList
from tomewise.server.library import Library
from tomewise.server.limits import BodyLimits
from tomewise.server.mcp_app import McpApp
from tomewise.server.operation_list import OPERATIONS
from tomewise.server.operations import add_routes
from tomewise.server.security import Security
from tomewise.server.serve_options import ServerOptions
from tomewise.server.service import Service
from tomewise.server.streaming import ClientLeft
from tomewise.web import PAGE, Asset, list_assets

_GREETING = "Tomewise is serving. What it can do is described at /openapi.json\n"
_page = APIRouter()
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
    app.include_router(_page)
    add_routes(app, OPERATIONS, read_only=options.read_only, needs_token=options.token is not None)
    app.state.mcp = McpApp(library.tomes, admit=app.state.service.admit, prepare=library.open_all)
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
        await asyncio.to_thread(service.library.delete_dead_drafts)
        await asyncio.to_thread(service.jobs.load)
    yield
    app.state.stopping.set()
    await app.state.mcp.close()
    await service.jobs.stop()
    await service.library.close()


async def _reply_error(request: Request, error: Exception) -> Response:
    if isinstance(error, ClientLeft):
        return Response(status_code=_LEFT)
    refusal = explain_error(error)
    clean = request.app.state.service.library.clean
    body = make_body(refusal, clean, request.scope["path"])
    return JSONResponse(body, refusal.status_code, headers=refusal.headers)


@_page.get("/", include_in_schema=False)
async def show_page(request: Request) -> Response:
    """The page for a browser, a line of text for everyone else."""
    if "text/html" in request.headers.get("accept", ""):
        return _reply(request, list_assets()[PAGE])
    return PlainTextResponse(_GREETING)


@_page.get("/assets/{name:path}", include_in_schema=False)
async def show_asset(name: str, request: Request) -> Response:
    """A file of the page. A browser keeps it, and asks each time whether it changed."""
    if name not in list_assets():
        raise UnknownName(f"no file {name[:100]!a} belongs to the page: open / to see it")
    return _reply(request, list_assets()[name])


def _reply(request: Request, asset: Asset) -> Response:
    headers = {"etag": asset.etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.body, headers=headers, media_type=asset.media_type)
