"""Errors as replies: each kind has a status and a code, and the message is the sentence of the command line."""

from __future__ import annotations

import errno
import json
import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from fastapi.exceptions import HTTPException, RequestValidationError
from starlette.exceptions import HTTPException as StarletteError
from starlette.responses import Response

from tomewise import errors
from tomewise.credentials import hide_credentials
from tomewise.tome.reports import Price

_logger = logging.getLogger(__name__)
# The first kind that fits decides.
_KINDS: tuple[tuple[type[BaseException], int, str], ...] = (
    (errors.UnknownName, 404, "unknown_name"),
    (errors.UsageError, 400, "usage"),
    (errors.NotBuilt, 409, "not_built"),
    (errors.Locked, 409, "locked"),
    (errors.StoreError, 409, "store"),
    (errors.ReadingError, 422, "reading"),
    (errors.BudgetExceeded, 402, "budget"),
    (errors.MissingDependency, 501, "missing_dependency"),
    (errors.ModelError, 502, "model"),
)
# The status of each code that a reply of an error can have.
STATUSES: Mapping[str, int] = {
    **{code: status for _, status, code in _KINDS},
    "token": 401,
    "origin": 403,
    "read_only": 403,
    "method": 405,
    "slow": 408,
    "estimate": 409,
    "too_large": 413,
    "media_type": 415,
    "host": 421,
    "busy": 429,
    "internal": 500,
    "part": 500,
    "stopping": 503,
    "timeout": 504,
    "disk_full": 507,
}
OPENAI = "/v1"  # what is below it speaks OpenAI's protocol
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_LONGEST = 2000  # characters of a message, which may repeat what a request holds
# What FastAPI itself refuses, in sentences of ours.
_REFUSALS = {
    400: ("usage", "the body cannot be read as JSON: it is nested too deep, has too long a number, or is not UTF-8"),
    404: ("unknown_name", "nothing is at this address: /openapi.json lists what there is"),
    405: ("method", "this address does not take that method: /openapi.json lists what it takes"),
}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def refuse_price(price: Price | None) -> None:
    """Raise HttpError for a price that is beyond what was accepted; None is not."""
    if price:
        message = f'this needs {price.text}, more than `accept` allows: to go on, send "accept": "{price.accept}"'
        raise HttpError("estimate", message, more={"estimate": price.to_dict()})


class HttpError(HTTPException):
    """A refusal with a code, from which its status follows. `more` are further fields of the reply beside `error`.

    It is an exception of FastAPI, since FastAPI takes any other one that reading a body raises for bad JSON.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        headers: dict[str, str] | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(STATUSES[code], message, headers)
        self.code = code
        self.message = message
        self.more = more or {}


def explain_error(error: BaseException) -> HttpError:
    """The reply that an error gets. What is not foreseen becomes a bare 500: its message may hold anything."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, RequestValidationError):
        return HttpError("usage", explain_field(error.errors()[0], skip=1))
    if isinstance(error, StarletteError):
        code, message = _REFUSALS.get(error.status_code, ("usage", str(error.detail)))
        return HttpError(code, message, headers=dict(error.headers or {}))
    if isinstance(error, TimeoutError):
        return HttpError("timeout", "the question took longer than the server allows: ask for less, or again")
    if isinstance(error, OSError) and error.errno in _FULL:
        return HttpError("disk_full", "the disk of the server is full: free some space, then try again")
    for kind, _, code in _KINDS:
        if isinstance(error, kind):
            return HttpError(code, hide_credentials(str(error)))
    if isinstance(error, errors.PartError):
        log_error(error)
        return HttpError("part", f"{error.part} failed: see the server's log")
    return HttpError("internal", f"an error of Tomewise itself, {type(error).__name__}: see the server's log")


def log_error(error: BaseException) -> None:
    """Write an error with its traceback into the log, without keys: what it raised may hold anything."""
    _logger.error("%s", hide_credentials("".join(traceback.format_exception(error))))


def make_body(error: HttpError, clean: Callable[[str], str] = str, path: str = "") -> dict[str, Any]:
    """The JSON of a refusal in the shape that clients of this path expect; `clean` takes paths out of the message."""
    message = clean(error.message)
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]}…"
    reason = {"code": error.code, "message": message}
    if path.startswith(OPENAI):
        kind = _TYPES.get(error.status_code, "invalid_request_error" if error.status_code < 500 else "server_error")
        return {"error": {**reason, "type": kind, "param": None}}
    return {"error": reason, **error.more}


def make_refusal(error: HttpError, path: str) -> Response:
    """A refusal from outside of FastAPI, which ends the connection: a body that was not read may follow."""
    headers = {"connection": "close", **(error.headers or {})}
    return Response(json.dumps(make_body(error, path=path)), error.status_code, headers, "application/json")


def explain_field(fault: Mapping[str, Any], skip: int = 0) -> str:
    """A field that pydantic refuses, by its name, without the first `skip` parts of its place.

    What was sent is not repeated: it may be long, or a secret.
    """
    if fault["type"] == "json_invalid":
        return "the body is not JSON: check its quotation marks, its brackets, and how deep it is nested"
    place = ".".join(str(part) for part in fault["loc"][skip:])
    if fault["type"] == "extra_forbidden":
        return f"{place[:100]!a} is not a field of this request: /openapi.json lists the fields"
    if fault["type"] == "missing":
        return f"{place[:100] or 'the body'} is missing: /openapi.json lists the fields"
    return f"{place[:100] or 'the body'}: {fault['msg'].removeprefix('Value error, ')[:300]}"
