"""What clients can ask of a server: one list, from which the routes, /openapi.json and the tools of MCP derive.

An operation is a function. Its parameters, as FastAPI reads them, are the typed request, and it returns a model of what
goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi

from tomewise.server.error_replies import OPENAI, STATUSES, HttpError
from tomewise.server.replies import ErrorReply, OpenAIErrorReply
from tomewise.server.streaming import EventStream

Method: TypeAlias = Literal["GET", "POST", "DELETE"]
Function = TypeVar("Function", bound=Callable[..., Any])
# Codes of errors (see `error_replies.STATUSES`) that several operations can give, beside those of `find_errors`.
BUSY = ("busy", "timeout", "stopping")
ASKING = (*BUSY, "not_built", "locked", "budget", "missing_dependency", "model", "part")
_EVERY = ("origin", "host", "internal")
_GUARDED = ("token", "usage")
_SENDING = ("media_type", "too_large", "slow", "usage")
_REFERENCE = "#/components/schemas/{model}"
_EVENT = {
    "type": "object",
    "description": "A server-sent event; its data is JSON, or `[DONE]` at the end of a chat.",
    "required": ["data"],
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}
FILE = {
    "type": "object",
    "description": "Lines of JSON: the first names the format, each other one is a row of a table.",
    "properties": {"table": {"type": "string"}},
}
_EVENTS: dict[str, Any] = {EventStream.media_type: {"schema": _EVENT}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The tool of MCP that is this operation for agents, with its hints. It is found in the class of tools by name."""

    name: str
    title: str
    asks_model: bool = False
    destroys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that a client can ask for. The name of its function is its id; `errors` are codes of its own.

    `changes` says whether it changes a tome or a job: a server that only reads does not offer it. Its reply is JSON, a
    stream of events, or either (`streams`), as the client wants.
    """

    run: Callable[..., Any]
    method: Method
    path: str
    tag: str
    reply: Any = None  # if the annotation of the function does not say it
    status: int = 200
    errors: tuple[str, ...] = ()
    changes: bool = False
    streams: Literal["", "also", "only"] = ""
    sends: str = ""  # the type of the file that is its reply
    is_open: bool = False
    leaves_out: bool = False  # fields that were not set
    tool: Tool | None = None
    more: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its id."""
        return self.run.__name__

    def find_errors(self) -> tuple[str, ...]:
        """The codes of all errors that it can give: its own, and those of each request of its kind."""
        found = [*_EVERY, *self.errors, *(() if self.is_open else _GUARDED)]
        found += _SENDING if self.method != "GET" else ()
        found += ("read_only",) if self.changes else ()
        found += ("unknown_name",) if "{" in self.path else ()
        found += ("store",) if "{tome}" in self.path else ()
        return tuple(dict.fromkeys(found))

    def describe_errors(self) -> dict[int | str, dict[str, Any]]:
        """What OpenAPI says of its errors, by status."""
        model = OpenAIErrorReply if self.path.startswith(OPENAI) else ErrorReply
        content = {"application/json": {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}}
        by_status: dict[int, list[str]] = {}
        for code in self.find_errors():
            by_status.setdefault(STATUSES[code], []).append(code)
        replies: dict[int | str, dict[str, Any]] = {
            status: {"description": f"Refused: {', '.join(sorted(codes))}.", "content": content}
            for status, codes in sorted(by_status.items())
        }
        if busy := replies.get(STATUSES["busy"]):
            words = {"description": "After so many seconds to ask again.", "schema": {"type": "integer"}}
            busy["headers"] = {"Retry-After": words}
        return replies


class Family:
    """Operations under one path, with one tag where they state no other. Each method registers what it decorates."""

    def __init__(self, prefix: str, tag: str) -> None:
        self.operations: list[Operation] = []
        self._prefix = prefix
        self._tag = tag

    def get(self, path: str, **about: Any) -> Callable[[Function], Function]:
        """An operation that reads."""
        return self._register("GET", path, about)

    def post(self, path: str, **about: Any) -> Callable[[Function], Function]:
        """An operation with a body."""
        return self._register("POST", path, about)

    def delete(self, path: str, **about: Any) -> Callable[[Function], Function]:
        """An operation that deletes."""
        return self._register("DELETE", path, {"changes": True, **about})

    def _register(self, method: Method, path: str, about: Mapping[str, Any]) -> Callable[[Function], Function]:
        about = {"tag": self._tag, **about}

        def register(run: Function) -> Function:
            self.operations.append(Operation(run=run, method=method, path=self._prefix + path, **about))
            return run

        return register


def add_routes(app: FastAPI, operations: Iterable[Operation], *, read_only: bool, needs_token: bool) -> None:
    """The routes of the operations, and what /openapi.json says of them."""
    for operation in operations:
        if read_only and operation.changes:
            app.add_api_route(operation.path, _refuse, methods=[operation.method], include_in_schema=False)
            continue
        _add_route(app, operation, [] if operation.is_open else [{"token": []}, *([] if needs_token else [{}])])
        if operation.method == "GET" and operation.is_open:
            app.add_api_route(operation.path, operation.run, methods=["HEAD"], include_in_schema=False)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]


def _add_route(app: FastAPI, operation: Operation, security: list[dict[str, Any]]) -> None:
    about: dict[str, Any] = {"response_model": operation.reply} if operation.reply else {}
    if operation.streams == "only" or operation.sends:
        about = {"response_model": None, "response_class": Response}
    content = _EVENTS if operation.streams else {operation.sends: {"schema": FILE}} if operation.sends else {}
    app.add_api_route(
        operation.path,
        operation.run,
        methods=[operation.method],
        tags=[operation.tag],
        operation_id=operation.name,
        status_code=operation.status,
        responses={operation.status: {"content": content}, **operation.describe_errors()},
        response_model_exclude_unset=operation.leaves_out,
        openapi_extra={"security": security, **(operation.more or {})},
        **about,
    )


async def _refuse() -> None:
    raise HttpError("read_only", "this server only reads (--read-only): start it without that option")


def _describe(app: FastAPI) -> dict[str, Any]:
    """The document of OpenAPI. FastAPI names a refusal 422 that no operation gives: ours is 400."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for described in (operation for path in found["paths"].values() for operation in path.values()):
            described["responses"].pop("422", None)
        parts = found["components"]
        for name in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(name, None)
        for model in (ErrorReply, OpenAIErrorReply):
            schema = model.model_json_schema(ref_template=_REFERENCE, mode="serialization")
            parts["schemas"] |= {**schema.pop("$defs"), model.__name__: schema}
        words = "The token that the server prints. On loopback without a token none is needed."
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": words}}
        app.openapi_schema = found
    return app.openapi_schema
