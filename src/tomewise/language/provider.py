"""The only module that knows Pydantic AI. It is imported at the first call, since that takes more than a second.

Written for pydantic-ai 2.68: `direct.model_request` sends one request without an agent; its errors come in categories.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import httpx2
from pydantic import BaseModel
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from tomewise.errors import MissingDependency, ModelError, ModelUnavailable, Refused, UsageError
from tomewise.language.reply import THINKING_ROOM, Reply, lean_schema
from tomewise.language.retry import Failure, PassingFailure
from tomewise.language.spec import EXAMPLES, OPENAI_PROTOCOL, PROVIDERS, ModelSpec
from tomewise.language.transport import LONGEST_BODY, BoundedClient, NotAReply, ResponseTooLong
from tomewise.names import suggest
from tomewise.run import Listener

E = TypeVar("E", bound=Exception)
_EXTRAS = frozenset({"anthropic", "google"})  # ours; Pydantic AI has one for every other provider
_NOT_IMPLEMENTED = 501
_BUSY_STATUS = frozenset({408, 409, 425, 429, 503, 529})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request and its bounds. `system` holds the rules; `turns` alternate between user and model, user first.

    With a `listener` the reply is streamed, if the provider can.
    """

    system: str
    turns: Sequence[str]
    output: type[BaseModel]
    max_tokens: int
    temperature: float | None
    listener: Listener | None = None


@dataclass(frozen=True, slots=True)
class ChargedReply:
    """A reply and its cost. Tokens are None if the server does not count them, `cost` if no price is known.

    `refused` gives the reason if the model declined to reply. `cached_tokens` are part of the input tokens,
    `reasoning_tokens` part of the output tokens.
    """

    reply: Reply
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    refused: str | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Connection:
    """A provider's model with one HTTP client, for one event loop."""

    spec: ModelSpec
    model: Model
    http: httpx2.AsyncClient

    async def send(self, request: ChatRequest, timeout: float) -> ChargedReply:
        """Make one attempt of at most `timeout` seconds. Whatever the server does, the only error is `Failure`."""
        if request.listener:
            request.listener.begin()
        has_begun = False
        try:
            async with asyncio.timeout(timeout), aclosing(self._receive(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ModelResponse):
                        return self._read(piece)
                    has_begun = True
                    if request.listener:
                        request.listener.hear(piece)
        except TimeoutError as error:
            late = ModelUnavailable(f"{self.spec.place} did not reply within {timeout:g} s")
            raise PassingFailure(late, may_be_stream=self._streams(request) and not has_begun) from error
        except Failure as failure:
            failure.answered = failure.answered and not has_begun  # what has begun to reply may charge for it
            failure.may_be_stream = failure.may_be_stream and self._streams(request) and not has_begun
            raise
        raise AssertionError("unreachable: the response is the last piece")

    async def _receive(self, request: ChatRequest) -> AsyncGenerator[str | ModelResponse]:
        """The pieces of the text if the reply is streamed, and the response at the end. Raises `Failure`."""
        messages, settings, parameters = _messages(request), self._settings(request), self._parameters(request.output)
        try:
            if not self._streams(request):
                yield await model_request(
                    self.model, messages, model_settings=settings, model_request_parameters=parameters
                )
                return
            async with model_request_stream(
                self.model, messages, model_settings=settings, model_request_parameters=parameters
            ) as stream:
                async for event in stream:
                    if text := _find_new_text(event):
                        yield text
                yield stream.get()
        except (MemoryError, TimeoutError):
            raise
        except Exception as error:
            # Pydantic AI and the provider's client read what the server sends, and may raise any exception. An odd
            # reply must fail its own request only, not the whole build. None of our own code runs inside this `try`.
            raise classify_error(error, self.spec) from error

    def _streams(self, request: ChatRequest) -> bool:
        """Whether the reply is streamed: somebody listens, and the provider can."""
        can_stream = type(self.model).request_stream is not Model.request_stream
        return request.listener is not None and can_stream

    @property
    def thinks(self) -> bool:
        """Whether the model writes hidden thoughts, for which it needs more tokens."""
        return bool(self.model.profile.get("thinking_enabled_by_default"))

    def most_tokens(self, request: ChatRequest) -> int:
        """The bound on the tokens of the reply, thoughts included."""
        return request.max_tokens + (THINKING_ROOM if self.thinks else 0)

    async def close(self) -> None:
        await self.http.aclose()

    def _settings(self, request: ChatRequest) -> ModelSettings:
        settings = ModelSettings(max_tokens=self.most_tokens(request))
        if request.temperature is not None and not self.thinks:  # models that think take no temperature
            settings["temperature"] = request.temperature
        return settings

    def _parameters(self, output: type[BaseModel]) -> ModelRequestParameters:
        # A server at an own address may not support response formats; Ollama does.
        supported = self.spec.address is None or self.spec.provider == "ollama"
        if not (supported and self.model.profile.get("supports_json_schema_output")):
            return ModelRequestParameters()
        definition = OutputObjectDefinition(json_schema=lean_schema(output), name=output.__name__)
        return ModelRequestParameters(output_mode="native", output_object=definition)

    def _read(self, response: ModelResponse) -> ChargedReply:
        refused = None
        if response.finish_reason == "content_filter":
            reason = (response.provider_details or {}).get("refusal") or "its content filter stopped the reply"
            refused = f"{self.spec} declined: {_shorten(reason)}"
        usage = response.usage
        return ChargedReply(
            Reply(
                text=_text(response),
                cut=response.finish_reason == "length",
                thought=any(isinstance(part, ThinkingPart) for part in response.parts),
            ),
            input_tokens=usage.input_tokens or None,
            output_tokens=usage.output_tokens if usage.input_tokens else usage.output_tokens or None,
            cost=_cost(response) if usage.input_tokens else None,
            refused=refused,
            cached_tokens=usage.cache_read_tokens,
            reasoning_tokens=usage.output_reasoning_tokens,
        )


def connect(spec: ModelSpec, api_key: str | None, limit: int) -> Connection:
    """Prepare a connection to `spec` without sending anything. Raises `UsageError` or `MissingDependency`."""
    http = BoundedClient(limit, spec.model)
    try:
        return Connection(spec, _model(spec, _provider(spec, api_key, http)), http)
    except exceptions.UserError as error:
        raise ModelUnavailable(f"{spec} cannot be used: {error}") from error
    except ImportError as error:
        package = "tomewise" if spec.provider in _EXTRAS else "pydantic-ai-slim"
        raise MissingDependency(
            f"the provider {spec.provider!r} needs a package that is not installed: "
            f"pip install '{package}[{spec.provider}]' ({error})"
        ) from error


def import_provider(name: str) -> None:
    """Import the code of a provider, which takes a second. One that cannot be imported fails when it is asked."""
    with suppress(ValueError, ImportError):
        infer_provider_class(name)
    if name == "openai":
        import_module("pydantic_ai.models.openai")


def classify_error(error: Exception, spec: ModelSpec) -> Failure:
    """The failure that stands for an error of Pydantic AI or of the client below it."""
    if _find_cause(error, ResponseTooLong):
        return Failure(ModelError(f"{spec.place} sent more than {LONGEST_BODY:,} bytes for one reply: it was given up"))
    if stray := _find_cause(error, NotAReply):
        return _classify_stray(stray, spec)
    match error:
        case exceptions.ModelHTTPError():
            return _classify_http_error(error, spec)
        case exceptions.ModelQuotaExceededError():
            message = f"the account of {spec} has no quota left: {_server_message(error)}"
            return Failure(ModelUnavailable(message), answered=True)
        case exceptions.ModelConnectionError():
            unreached = ModelUnavailable(
                f"{spec.place} cannot be reached: {_shorten(error).rstrip('.')}; check address and network"
            )
            sent = error.phase not in ("pool", "connect")
            return PassingFailure(unreached, sent=sent, may_be_stream=sent)
        case exceptions.ContentFilterError():
            return Failure(Refused(f"{spec} declined: {_shorten(error)}"))
        case exceptions.AgentRunError():
            unusable = ModelError(f"{spec.place} sent no usable response: {_shorten(error)}")
            return PassingFailure(unusable, may_be_stream=True)
    remedy = ""
    if spec.address and spec.provider not in OPENAI_PROTOCOL:
        remedy = (
            f"; {spec.provider!r} has a protocol of its own: if this server is compatible with OpenAI's, "
            f"name the model openai:{spec.model}"
        )
    reason = f"{type(error).__name__}: {_shorten(error)}"
    unreadable = ModelError(f"{spec.place} sent a response that cannot be read: {reason}{remedy}")
    return Failure(unreadable, may_be_stream=True)


def _classify_stray(error: NotAReply, spec: ModelSpec) -> Failure:
    """The failure that stands for what is not from the server of a model. Another attempt would meet the same."""
    remedy = "check the network: a proxy or a page to sign in may answer in its place"
    if spec.address:
        remedy = "check the base URL, which for most servers ends in /v1, and what answers there"
    message = f"{spec.place} sent {_shorten(error)} in place of a reply: {remedy}"
    if error.is_elsewhere:
        return Failure(ModelUnavailable(message), answered=True)
    # What answers one request so may reply to the next, as a firewall that does not like a text.
    return Failure(ModelError(message), answered=True, may_be_stream=True)


def _classify_http_error(error: exceptions.ModelHTTPError, spec: ModelSpec) -> Failure:
    """The failure that stands for an error reported by the server."""
    message = _server_message(error)
    refused = error.provider_error_code in ("content_filter", "content_policy_violation")
    final: ModelError
    match error:
        case exceptions.ModelQuotaExceededError():
            final = ModelUnavailable(f"the account of {spec} has no quota left: {message}")
        case exceptions.ModelHTTPError(status_code=401 | 403):
            final = ModelUnavailable(f"{spec.place} refused the key: check {spec.key_variables} ({message})")
        case exceptions.ModelHTTPError(status_code=404):
            final = ModelUnavailable(f"{spec.place} does not exist: check the model's name and the address ({message})")
        case exceptions.ModelContextWindowExceededError():
            final = ModelError(f"the prompt is too long for {spec}: name a model with a larger window ({message})")
        case exceptions.ModelHTTPError(status_code=status) if _may_pass(status):
            final = ModelUnavailable(f"{spec.place} keeps failing: {message}")
            busy = status in _BUSY_STATUS
            return PassingFailure(final, error.retry_after, busy=busy, answered=True, may_be_stream=not busy)
        case _ if refused:
            final = Refused(f"{spec} declined: {message}")
        case _:
            final = ModelError(f"{spec.place} rejected the request: {message}")
            return Failure(final, answered=True, may_be_stream=True)
    return Failure(final, answered=True)


def _may_pass(status: int) -> bool:
    return status in _BUSY_STATUS or (status >= 500 and status != _NOT_IMPLEMENTED)


def _find_cause(error: BaseException | None, kind: type[E]) -> E | None:
    """The error of this kind among an error and its causes."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def find_provider_class(provider: str) -> type[Provider[Any]]:
    """The class of Pydantic AI for a provider. Raises UsageError, and ImportError if its package is not installed."""
    try:
        return infer_provider_class(provider)
    except ValueError as error:
        near = suggest(provider, sorted({*PROVIDERS, "ollama"}))
        raise UsageError(
            f"Pydantic AI has no provider {provider!r}: {near}write provider:model, such as {EXAMPLES}"
        ) from error


def _provider(spec: ModelSpec, api_key: str | None, http: httpx2.AsyncClient) -> Provider[Any]:
    kind = find_provider_class(spec.provider)
    api_key = spec.key(api_key)
    if spec.address:
        api_key = api_key or "none"  # the clients require a key, the server may not
    arguments = {"api_key": api_key, "base_url": spec.address, "http_client": http}
    parameters = inspect.signature(kind.__init__).parameters
    if spec.address and "base_url" not in parameters:
        raise UsageError(f"{spec.provider!r} cannot be asked at another address: leave the base URL out")
    accepted = {name: value for name, value in arguments.items() if value and name in parameters}
    try:
        provider: Provider[Any] = kind(**accepted)
    except TypeError as error:  # its client takes an HTTP client of another library alone
        raise UsageError(
            f"{spec.provider!r} cannot be asked in its own protocol here: name the model openai:{spec.model}, with the "
            f"address of its OpenAI-compatible endpoint as the base URL ({error})"
        ) from error
    if hasattr(provider.client, "max_retries"):
        provider.client.max_retries = 0  # `retry` counts and bounds the retries, and waits as the server asks
    return provider


def _model(spec: ModelSpec, provider: Provider[Any]) -> Model:
    if spec.provider != "openai":
        return infer_model(str(spec), provider_factory=lambda _: provider)
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    # Every compatible server speaks Chat Completions. Other servers than OpenAI's often know only `max_tokens`; models
    # that think know only the newer name, on every server.
    model = OpenAIChatModel(spec.model, provider=provider)
    if spec.address and not model.profile.get("thinking_enabled_by_default"):
        older = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
        return OpenAIChatModel(spec.model, provider=provider, profile=older)
    return model


def _messages(request: ChatRequest) -> list[ModelMessage]:
    first, *rest = request.turns
    messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(request.system), UserPromptPart(first)])]
    for number, turn in enumerate(rest):
        messages.append(
            ModelRequest(parts=[UserPromptPart(turn)]) if number % 2 else ModelResponse(parts=[TextPart(turn)])
        )
    return messages


def _text(response: ModelResponse) -> str:
    """The text that the model wrote. If it called a tool instead, which nobody offered, the arguments of the call."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    if text.strip():
        return text
    return "\n".join(part.args_as_json_str() for part in response.parts if isinstance(part, ToolCallPart))


def _find_new_text(event: ModelResponseStreamEvent) -> str:
    """The text that an event adds to what `_text` returns in the end."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
    return ""


def _cost(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (
        LookupError,
        ValueError,
        ArithmeticError,
        TypeError,
        AssertionError,
    ):  # the price of this model is unknown or cannot be computed
        return None


def _server_message(error: exceptions.ModelAPIError) -> str:
    """The server's message in one short line."""
    body = error.body
    if isinstance(body, dict):
        body = body.get("message") or body
    status = f"status {error.status_code}: " if isinstance(error, exceptions.ModelHTTPError) else ""
    return f"{status}{_shorten(body or error)}"


def _shorten(message: object) -> str:
    return " ".join(str(message)[:3000].split())[:300]
