"""What the errors of a server, and of the clients that ask it, mean for a request."""

from __future__ import annotations

from typing import TypeVar

from pydantic_ai import exceptions

from tomewise.errors import ModelError, ModelUnavailable, Refused
from tomewise.language.retry import AttemptFailed
from tomewise.language.spec import OPENAI_PROTOCOL, ModelSpec
from tomewise.language.wire import LONGEST_BODY, NotAReply, ResponseTooLong

E = TypeVar("E", bound=Exception)
_NOT_IMPLEMENTED = 501
_BUSY_STATUS = frozenset({408, 409, 425, 429, 503, 529})


def classify_error(error: Exception, spec: ModelSpec) -> AttemptFailed:
    """The failure that an error of Pydantic AI, or of the client below it, means."""
    if _find_cause(error, ResponseTooLong):
        return AttemptFailed(
            ModelError(f"{spec.full_name} sent more than {LONGEST_BODY:,} bytes for one reply: it was given up")
        )
    if stray := _find_cause(error, NotAReply):
        return _classify_stray(stray, spec)
    match error:
        case exceptions.ModelQuotaExceededError():
            message = f"the account of {spec} has no quota left: {_read_message(error)}"
            return AttemptFailed(ModelUnavailable(message), answered=True)
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
            unusable = ModelError(f"{spec.full_name} sent no usable response: {shorten(error)}")
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
        error = error.__cause__ or error.__context__
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


def _read_message(error: exceptions.ModelAPIError) -> str:
    """The server's message in one short line."""
    body = error.body
    if isinstance(body, dict):
        body = body.get("message") or body
    status = f"status {error.status_code}: " if isinstance(error, exceptions.ModelHTTPError) else ""
    return f"{status}{shorten(body or error)}"


def _classify_http_error(error: exceptions.ModelHTTPError, spec: ModelSpec) -> AttemptFailed:
    """The failure that an error reported by the server means."""
    message = _read_message(error)
    status = error.status_code
    busy = status in _BUSY_STATUS
    final: ModelError
    if status in (401, 403):
        final = ModelUnavailable(f"{spec.full_name} refused the key: check {spec.key_variables} ({message})")
    elif status == 404:
        final = ModelUnavailable(f"{spec.full_name} does not exist: check the model's name and the address ({message})")
    elif isinstance(error, exceptions.ModelContextWindowExceededError):
        final = ModelError(f"the prompt is too long for {spec}: name a model with a larger window ({message})")
    elif busy or (status >= 500 and status != _NOT_IMPLEMENTED):
        final, after = ModelUnavailable(f"{spec.full_name} keeps failing: {message}"), error.retry_after
        return AttemptFailed(final, passes=True, retry_after=after, busy=busy, answered=True, may_be_stream=not busy)
    elif error.provider_error_code in ("content_filter", "content_policy_violation"):
        final = Refused(f"{spec} declined: {message}")
    else:
        final = ModelError(f"{spec.full_name} rejected the request: {message}")
        return AttemptFailed(final, answered=True, may_be_stream=True)
    return AttemptFailed(final, answered=True)


def shorten(message: object) -> str:
    return " ".join(str(message)[:3000].split())[:300]
