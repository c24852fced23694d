"""What the errors of a server, and of the clients that ask it, mean for a request."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TypeVar

from pydantic_ai import exceptions

from tomewise.errors import ModelError, ModelUnavailable, PromptTooLong, Refused
from tomewise.language.adapting import read_refusal
from tomewise.language.retry import AttemptFailed
from tomewise.language.spec import OPENAI_PROTOCOL, ModelSpec
from tomewise.language.wire import LONGEST_BODY, STATUS, NotAReply, ResponseTooLong

E = TypeVar("E", bound=Exception)
_NOT_IMPLEMENTED = 501
_PATIENCE = 600.0  # seconds: who asks for a longer wait is not asked again
_LONGEST_WAIT = 1e8  # seconds: no time further away can be named
_BUSY_STATUS = frozenset({408, 409, 425, 429, 503, 529})
_LOADING = re.compile(r"(?<!error )(?<!failed )(?<!while )\bloading\b(?!.{0,20}\bfail)|warming up", re.IGNORECASE)
_QUOTA = {  # by status
    400: re.compile(r"your credit balance|billing hard limit", re.IGNORECASE),
    429: re.compile(r"quota|insufficient|billing|credits?\b|balance", re.IGNORECASE),
}


def classify_error(error: Exception, spec: ModelSpec) -> AttemptFailed:
    """The failure that an error of Pydantic AI, or of the client below it, means."""
    if _find_cause(error, ResponseTooLong):
        return AttemptFailed(
            ModelError(f"{spec.full_name} sent more than {LONGEST_BODY:,} bytes for one reply: it was given up")
        )
    if stray := _find_cause(error, NotAReply):
        return _classify_stray(stray, spec)
    match error:
        case exceptions.ModelAPIError() if _is_spent(error):
            spent = ModelUnavailable(f"the account of {spec} has no quota left: {_read_message(error)}")
            return AttemptFailed(spent, answered=True)
        case exceptions.ModelHTTPError():
            return _classify_http_error(error, spec)
        case exceptions.ModelConnectionError():
            unreached = ModelUnavailable(
                f"{spec.full_name} cannot be reached: {shorten(error).rstrip('.')}; check address and network"
            )
            sent = error.phase not in ("pool", "connect")
            return AttemptFailed(unreached, passes=True, sent=sent, may_be_stream=sent)
        case exceptions.ContentFilterError():
            return AttemptFailed(Refused(f"{spec} declined: {shorten(error)}"))
        case exceptions.AgentRunError():
            words = _read_message(error) if isinstance(error, exceptions.ModelAPIError) else shorten(error)
            unusable = ModelError(f"{spec.full_name} sent no usable response: {words}")
            return AttemptFailed(unusable, passes=True, may_be_stream=True)
    remedy = ""
    if spec.address and spec.provider not in OPENAI_PROTOCOL:
        remedy = (
            f"; {spec.provider!r} has a protocol of its own: if this server is compatible with OpenAI's, "
            f"name the model openai:{spec.model}"
        )
    reason = f"{type(error).__name__}: {shorten(error)}"
    unreadable = ModelError(f"{spec.full_name} sent a response that cannot be read: {reason}{remedy}")
    return AttemptFailed(unreadable, may_be_stream=True)


def _find_cause(error: BaseException | None, kind: type[E]) -> E | None:
    """The error of this kind among an error and its causes."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__
    return error


def _classify_stray(error: NotAReply, spec: ModelSpec) -> AttemptFailed:
    """The failure if what answered is not the server of a model. Another attempt would have the same result."""
    remedy = "check the network: a proxy or a page to sign in may answer in its place"
    if spec.address:
        remedy = "check the base URL, which for most servers ends in /v1, and what answers there"
    message = f"{spec.full_name} sent {shorten(error)} in place of a reply: {remedy}"
    if error.is_elsewhere:
        return AttemptFailed(ModelUnavailable(message), answered=True)
    # Only this request fails: a firewall may refuse one text and let the next one pass.
    return AttemptFailed(ModelError(message), answered=True, may_be_stream=True)


def _is_spent(error: exceptions.ModelAPIError) -> bool:
    """Whether the account has no quota left, which no later attempt changes."""
    words = None
    if isinstance(error, exceptions.ModelHTTPError) and error.retry_after is None:
        words = _QUOTA.get(error.status_code)
    return isinstance(error, exceptions.ModelQuotaExceededError) or bool(words and words.search(_read_message(error)))


def _read_message(error: exceptions.ModelAPIError) -> str:
    """The server's message in one short line, with the status that came with it."""
    body = error.body
    if isinstance(body, dict):
        body = body.get("message") or body
    words = shorten(body or error)
    if not isinstance(error, exceptions.ModelHTTPError):
        return words
    return f"status {(error.headers or {}).get(STATUS) or error.status_code}: {words}"


def _classify_http_error(error: exceptions.ModelHTTPError, spec: ModelSpec) -> AttemptFailed:
    """The failure that an error reported by the server means."""
    message, status = _read_message(error), error.status_code
    refusal = read_refusal(error)
    loads = status in (400, 500, 503) and bool(_LOADING.search(message))
    busy = loads or status in _BUSY_STATUS or bool(refusal and refusal.passes)
    final: ModelError
    if status in (401, 403):
        final = ModelUnavailable(f"{spec.full_name} refused the key: check {spec.key_variables} ({message})")
    elif status == 404:
        final = ModelUnavailable(f"{spec.full_name} does not exist: check the model's name and the address ({message})")
    elif isinstance(error, exceptions.ModelContextWindowExceededError) or (
        refusal and status in (400, 413, 422, 500) and refusal.is_of_length
    ):
        window, asked = refusal.find_limit() if refusal else (0, 0)
        stated = f"`tome config set window {window}` keeps to what it takes, or " if window else ""
        words = f"the prompt is too long for {spec}: {stated}name a model with a larger window ({message})"
        return AttemptFailed(PromptTooLong(words, window, asked), answered=True, refusal=refusal)
    elif busy or (status >= 500 and status != _NOT_IMPLEMENTED):
        after = error.retry_after or 0.0
        hopeless = f"; it asks to wait until {_name_time(after)}" if after > _PATIENCE else ""
        return AttemptFailed(
            ModelUnavailable(f"{spec.full_name} keeps failing: {message}{hopeless}"),
            passes=not hopeless,
            retry_after=after,
            busy=busy,
            loads=loads,
            answered=True,
            may_be_stream=not busy,
            refusal=refusal,
        )
    elif error.provider_error_code in ("content_filter", "content_policy_violation"):
        final = Refused(f"{spec} declined: {message}")
    else:
        final = ModelError(f"{spec.full_name} rejected the request: {message}")
        return AttemptFailed(final, answered=True, may_be_stream=True, refusal=refusal)
    return AttemptFailed(final, answered=True)


def _name_time(seconds: float) -> str:
    """The time of day in so many seconds, and the day where it is another."""
    now = datetime.now().astimezone()
    then = now + timedelta(seconds=min(seconds, _LONGEST_WAIT))
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%H:%M on %d %B}"


def shorten(message: object) -> str:
    return " ".join(str(message)[:3000].split())[:300]
