"""One connection to a model in one event loop: sends requests, tries them again, and counts what they cost.

It also finds out whether one request fails or the whole model is down.

Written for pydantic-ai 2.68: `direct.model_request` sends one request without an agent. It is imported at the first
call, since that takes more than a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import perf_counter
from typing import Any

import httpx2
from pydantic import BaseModel
from pydantic_ai import messages
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings

from tomewise.concurrency import take_turn
from tomewise.errors import ModelError, ModelUnavailable, PromptTooLong, Refused
from tomewise.language.adapting import Adapter, Learnt, merge
from tomewise.language.call_slots import CallSlots
from tomewise.language.models_at_hand import Window
from tomewise.language.pace import SharedClock
from tomewise.language.price_list import find_price
from tomewise.language.reply import THINKING_ROOM, Reply, find_thoughts, make_lean_schema
from tomewise.language.retry import AttemptFailed, Backoff, report, retry
from tomewise.language.server_errors import classify_error, shorten
from tomewise.language.spec import ModelSpec
from tomewise.language.usage import COUNTED, announce_request, estimate_tokens
from tomewise.run import Listener, ModelCall, Request, report_call
from tomewise.types import Cost

SILENCE = 60.0  # seconds without a word of the server, after which a message says so
_READ_IN_TIME = 3_600  # tokens of a prompt that a small machine reads in the usual time limit
_ADAPTATIONS = 6  # of one request: more refusals are not about its form


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request of a role. `system` holds the rules; `turns` alternate between user and model, user first.

    With a `listener` the reply is streamed, if the provider can. A reply that has `begun` is continued: no schema is
    asked for, since the rest alone fits none.
    """

    role: str
    system: str
    turns: Sequence[str]
    output: type[BaseModel]
    max_tokens: int
    temperature: float | None = None
    listener: Listener | None = None
    begun: str = ""

    @property
    def prompt_tokens(self) -> int:
        """About how many tokens it has."""
        return sum(map(estimate_tokens, (self.system, *self.turns)))


class _TestReply(BaseModel):
    """The output of a test request."""

    alive: bool


_TEST = ChatRequest("", "Reply with one short JSON object.", ['Reply with {"alive": true}.'], _TestReply, 16)


@dataclass(slots=True)
class Client:
    """A provider's model with one HTTP client. Event loops cannot share a connection, so each loop has a client.

    `replies` counts the replies that came. `streams` is True once a streamed request got a reply, and False if only a
    plain one did after the streamed one had failed; None is unknown. `test` is locked while a test request runs.
    """

    spec: ModelSpec
    model: Model
    http: httpx2.AsyncClient
    slots: CallSlots
    timeout: float
    backoff: Backoff
    adapter: Adapter
    window: Window
    replies: int = 0
    streams: bool | None = None
    test: asyncio.Lock = field(default_factory=asyncio.Lock)
    clock: SharedClock = field(default_factory=SharedClock)

    async def request(self, request: ChatRequest, *, ahead: bool = False) -> Reply:
        """One reply, after retries if needed. With `ahead` the request waits before others (see `CallSlots`).

        The meters count every request that was sent, also if no reply came.

        Raises `ModelUnavailable` if the model is down, and another `ModelError` if only this request fails, since some
        prompts make a server hang or break. Only this request fails if the model replied to another one since this one
        was first sent; if there was no other one, a short test request finds out.
        """
        started = perf_counter()
        attempts = _Attempts(self, request)
        try:
            async with self.slots.take(ahead=ahead):
                reply = await attempts.run()
        finally:
            if (spent := attempts.spent).calls:
                call = ModelCall(
                    role=request.role,
                    model=str(self.spec),
                    started=started,
                    ended=perf_counter(),
                    input_tokens=spent.input_tokens,
                    output_tokens=spent.output_tokens,
                    dollars=spent.dollars,
                    requests=spent.calls,
                    cached_tokens=spent.cached_tokens,
                    reasoning_tokens=spent.reasoning_tokens,
                )
                report_call(call)
        if reply.refused:
            raise Refused(reply.refused)
        return reply

    async def exchange(self, request: ChatRequest, bound: int) -> messages.ModelResponse:
        """Make one attempt within `patience`, at a reply of at most `bound` tokens.

        Whatever the server does, the only error is `AttemptFailed`.
        """
        if request.listener:
            request.listener.begin(request.begun)
        may_be_stream = self._can_stream(request)  # and the server has written nothing yet
        answered = True
        seconds = self.measure_patience(request)
        loop = asyncio.get_running_loop()
        watch = partial(loop.call_later, SILENCE, self._report_silence, loop.time() + seconds)
        silence = watch()
        try:
            async with asyncio.timeout(seconds), aclosing(self._receive(request, bound)) as pieces:
                async for piece in pieces:
                    silence.cancel()
                    if isinstance(piece, messages.ModelResponse):
                        return piece
                    silence = watch()
                    may_be_stream = answered = False  # what has begun to reply may charge for it
                    if request.listener:
                        request.listener.hear(piece)
        except TimeoutError as error:
            late = ModelUnavailable(
                f"{self.spec.full_name} did not reply within {seconds:,.1f} s: raise `timeout` if it is slow"
            )
            raise AttemptFailed(late, passes=True, may_be_stream=may_be_stream) from error
        except AttemptFailed as failure:
            failure.answered = failure.answered and answered
            failure.may_be_stream = failure.may_be_stream and may_be_stream
            raise
        finally:
            silence.cancel()
        raise AssertionError("unreachable: the response is the last piece")

    def measure_patience(self, request: ChatRequest) -> float:
        """How many seconds one attempt may take: a small machine reads some 30 tokens of a prompt in a second."""
        return self.timeout * (1 + (request.prompt_tokens / _READ_IN_TIME if self.spec.is_near else 0))

    def _report_silence(self, end: float) -> None:
        reason = f"no word from {self.spec.full_name} for {SILENCE:.0f} s; `timeout` gives it so long"
        report("waiting", reason, seconds=end - asyncio.get_running_loop().time(), level=logging.WARNING)

    async def _receive(self, request: ChatRequest, bound: int) -> AsyncGenerator[str | messages.ModelResponse]:
        """The pieces of the text if the reply is streamed, and the response at the end. Raises `AttemptFailed`."""
        parts: dict[str, Any] = {
            "messages": _make_messages(request),
            "model_settings": self._make_settings(request, bound),
            "model_request_parameters": self._make_parameters(request),
        }
        try:
            if not self._can_stream(request):
                yield await model_request(self.model, **parts)
                return
            async with model_request_stream(self.model, **parts) as stream:
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

    def _can_stream(self, request: ChatRequest) -> bool:
        """Whether the reply is streamed: somebody listens, and the provider can."""
        return request.listener is not None and type(self.model).request_stream is not Model.request_stream

    @property
    def _thinks(self) -> bool:
        """Whether the model writes hidden thoughts, for which it needs more tokens."""
        if level := self.adapter.reasoning:
            return level != "off"
        return bool(self.adapter.known.thoughts or self.model.profile.get("thinking_enabled_by_default"))

    def bound_tokens(self, request: ChatRequest) -> int:
        """The bound on the tokens of the reply, thoughts included. The window leaves no less than the role needs."""
        room = max(THINKING_ROOM, 2 * self.adapter.known.thoughts) if self._thinks else 0
        left = (self.window.known or inf) - COUNTED * request.prompt_tokens
        return int(min(request.max_tokens + room, max(left, request.max_tokens), self.adapter.known.reply or inf))

    def read_reply(self, response: messages.ModelResponse, begun: str) -> Reply:
        """What the model replied, or how it went on with what had `begun`, and learn from it how long it thinks."""
        text, is_cut, refused = _join_text(response, messages.TextPart), response.finish_reason == "length", None
        if response.finish_reason == "content_filter":
            reason = (response.provider_details or {}).get("refusal") or "its content filter stopped the reply"
            refused = f"{self.spec} declined: {shorten(reason)}"
        thoughts = _join_text(response, messages.ThinkingPart)
        if thoughts and not (text.strip() or is_cut or refused):  # some servers take the whole reply for a thought
            return Reply(thoughts)
        thoughts += find_thoughts(text)
        usage, known = response.usage, self.adapter.known
        tokens = max(usage.output_reasoning_tokens, estimate_tokens(thoughts))
        if is_cut and not begun and "{" not in text:  # its thoughts took all
            tokens = max(tokens, usage.output_tokens or estimate_tokens(text))
        if not known.thoughts / 2 <= tokens <= known.thoughts * 2:  # one that thinks no more has no thoughts in the end
            mean = (known.thoughts + tokens) // (2 if known.thoughts else 1)
            self.adapter.known = replace(known, thoughts=mean)
        return Reply(text, is_cut, bool(tokens), refused)

    async def close(self) -> None:
        await self.http.aclose()

    def _make_settings(self, request: ChatRequest, bound: int) -> ModelSettings:
        settings = ModelSettings(max_tokens=bound)
        # Models that think take no temperature.
        if request.temperature is not None and (not self._thinks or self.adapter.is_wanted("temperature")):
            settings["temperature"] = request.temperature
        if level := self.adapter.reasoning:
            settings["thinking"] = False if level == "off" else level  # type: ignore[typeddict-item]
            if self.spec.address:  # Ollama has the one field, vLLM and llama.cpp have the other
                effort = "none" if level == "off" else level
                settings["openai_reasoning_effort"] = effort  # type: ignore[typeddict-unknown-key]
                settings["extra_body"] = {"chat_template_kwargs": {"enable_thinking": level != "off"}}
        return settings

    def _make_parameters(self, request: ChatRequest) -> ModelRequestParameters:
        if request.begun or not self.model.profile.get("supports_json_schema_output"):
            return ModelRequestParameters()
        output = request.output
        definition = OutputObjectDefinition(json_schema=make_lean_schema(output), name=output.__name__)
        return ModelRequestParameters(output_mode="native", output_object=definition)


class _Attempts:
    """The attempts at one request. `spent` is the cost of all, also of those that failed."""

    def __init__(self, client: Client, request: ChatRequest) -> None:
        self.spent = Cost()
        self._client = client
        self._request = request
        self._has_listener = request.listener is not None
        self._replies_before = 0
        self._bound = 0  # tokens of the reply, as the last attempt had it
        self._most: float = inf  # of them, as a refusal says
        self._lessons: list[tuple[Learnt, Learnt]] = []  # what was known before and after each refusal that taught
        self._failures: list[AttemptFailed] = []  # without those of a busy server: the request does not cause them

    async def run(self) -> Reply:
        """The first reply. Raises a `ModelError`."""
        client, holds = self._client, False
        self._replies_before = client.replies
        if client.streams is False:
            self._request = replace(self._request, listener=None)
        try:
            reply = await retry(self._attempt, client.backoff, patience=client.timeout)
            holds = True
            return reply
        except AttemptFailed as failure:
            holds = isinstance(failure.error, PromptTooLong)
            if isinstance(failure.error, ModelUnavailable) and await self._fails_alone(failure):
                raise ModelError(f"{failure.error}; meanwhile other requests got a reply") from failure
            raise failure.error from failure.__cause__
        finally:
            if holds:
                client.adapter.keep()
            else:  # the refusals were about something else
                for before, after in reversed(self._lessons):
                    client.adapter.known = merge(after, before, client.adapter.known)

    def _can_adapt(self, failure: AttemptFailed) -> bool:
        """Whether a refusal teaches how the model takes the request."""
        refusal, adapter = failure.refusal, self._client.adapter
        before = adapter.known
        if refusal is None or len(self._lessons) == _ADAPTATIONS or not adapter.learn(refusal):
            return False
        self._lessons.append((before, adapter.known))
        if not isinstance(failure.error, PromptTooLong):
            return True
        # The model may take as much if less room is kept for its reply. What the server counts comes first.
        window, asked = refusal.find_limit()
        least = self._request.max_tokens // 2
        left = self._bound - (asked - window) if asked else int(window - COUNTED * self._request.prompt_tokens)
        self._most = left if left < self._bound else max(least, self._bound // 2)
        return least <= self._most < self._bound

    async def _attempt(self) -> Reply:
        """Make an attempt. After a failure that may be due to the stream, the next one is plain."""
        while True:
            try:
                reply = await self._send(self._request)
                break
            except AttemptFailed as failure:
                if self._can_adapt(failure):
                    report("asked again", failure, change="in the form that its server takes")
                    continue
                if failure.may_be_stream:
                    self._request = replace(self._request, listener=None)
                if not (failure.sent or self._client.replies) and self._client.spec.is_here:
                    # a server that nobody started stays away
                    raise AttemptFailed(failure.error, sent=False) from failure
                if failure.passes:  # `retry` waits before the next attempt
                    self._failures += [] if failure.busy else [failure]
                    raise
                if not failure.may_be_stream:
                    raise
                report("asked again", failure, change="without streaming")
        if self._has_listener and not self._client.streams:
            self._client.streams = self._request.listener is not None
        return reply

    async def _send(self, request: ChatRequest) -> Reply:
        """Send a request once, and count it. Raises `AttemptFailed`, or the error of a permit."""
        client = self._client
        await take_turn()  # to make a request takes milliseconds
        prompt_tokens = request.prompt_tokens
        price = partial(find_price, client.spec)
        self._bound = bound = int(min(client.bound_tokens(request), self._most))
        async with announce_request(Request(prompt_tokens, bound, price)) as bill:
            try:
                began, shared = perf_counter(), client.clock.count(1)
                try:
                    response = await client.exchange(request, bound)
                finally:
                    shared = client.clock.count(-1) - shared
                seconds = perf_counter() - began
                reply = client.read_reply(response, request.begun)
                bill.spent = self._count(response, prompt_tokens, reply.text)
                client.adapter.time(bill.spent, shared if client.spec.is_near else seconds)
            except AttemptFailed as failure:
                if failure.answered or not failure.sent:
                    bill.spent = Cost(calls=int(failure.sent))
                raise
            finally:
                self.spent += bill.spent
        client.replies += 1
        return reply

    def _count(self, response: messages.ModelResponse, prompt_tokens: int, text: str) -> Cost:
        """The cost of a response. If the server does not count tokens, they are estimated."""
        usage = response.usage
        tokens_in = usage.input_tokens or prompt_tokens
        tokens_out = usage.output_tokens if usage.input_tokens else usage.output_tokens or estimate_tokens(text)
        cost, cached = _find_cost(response) if usage.input_tokens else None, min(usage.cache_read_tokens, tokens_in)
        return Cost(
            calls=1,
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            dollars=find_price(self._client.spec, tokens_in, tokens_out, cached) if cost is None else cost,
            cached_tokens=cached,
            reasoning_tokens=usage.output_reasoning_tokens,
        )

    async def _fails_alone(self, last: AttemptFailed) -> bool:
        """Whether only this request fails: the model replies to others."""
        if not (self._failures and last.passes):
            return False
        if self._model_replied_since:
            return True
        if not any(failure.sent for failure in self._failures):
            return False
        async with self._client.test:  # one test request is enough for all requests that wait for it
            if not self._model_replied_since:
                with suppress(AttemptFailed):
                    await self._send(_TEST)
            return self._model_replied_since

    @property
    def _model_replied_since(self) -> bool:
        return self._client.replies > self._replies_before


def _make_messages(request: ChatRequest) -> list[messages.ModelMessage]:
    """The turns as Pydantic AI has them. A turn of the user is a request, one of the model a response."""
    first, *rest = request.turns
    rules = messages.SystemPromptPart(request.system)
    turns: list[messages.ModelMessage] = [messages.ModelRequest(parts=[rules, messages.UserPromptPart(first)])]
    for number, turn in enumerate(rest):
        of_user = messages.ModelRequest(parts=[messages.UserPromptPart(turn)])
        turns.append(of_user if number % 2 else messages.ModelResponse(parts=[messages.TextPart(turn)]))
    return turns


def _join_text(response: messages.ModelResponse, kind: type[messages.TextPart | messages.ThinkingPart]) -> str:
    """The text that the model wrote, or the thoughts that its server keeps apart from it."""
    return "".join(part.content for part in response.parts if isinstance(part, kind))


def _find_new_text(event: messages.ModelResponseStreamEvent) -> str:
    """The text that an event adds to what `_join_text` returns in the end."""
    match event:
        case (
            messages.PartStartEvent(part=messages.TextPart(content=text))
            | messages.PartDeltaEvent(delta=messages.TextPartDelta(content_delta=text))
        ):
            return text
    return ""


def _find_cost(response: messages.ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, ArithmeticError, TypeError, AssertionError):
        return None  # the price of this model is unknown or cannot be computed
