"""The channel to a model in one event loop: sends requests, tries them again, and counts them.

It also finds out whether one request fails or the whole model is down.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pydantic import BaseModel

from tomewise.concurrency import take_turn
from tomewise.errors import ModelError, ModelUnavailable, Refused
from tomewise.language.places import Places
from tomewise.language.price import find_price
from tomewise.language.provider import ChargedReply, ChatRequest, Connection
from tomewise.language.retry import Backoff, Failure, PassingFailure, retry
from tomewise.language.usage import Bill, announce_request, estimate_tokens
from tomewise.run import Request
from tomewise.types import Spent


class _TestReply(BaseModel):
    """The output of a test request."""

    alive: bool


_TEST_REQUEST = ChatRequest("Reply with one short JSON object.", ['Reply with {"alive": true}.'], _TestReply, 16, None)


@dataclass(slots=True)
class Channel:
    """One connection and the requests on it. Event loops cannot share a connection, so each loop has a channel.

    `replies` counts the replies that came. `streams` is True once a streamed request got a reply, and False if only a
    plain one did after the streamed one had failed; None is unknown. `test` is locked while a test request runs.
    """

    connection: Connection
    places: Places
    timeout: float
    backoff: Backoff
    replies: int = 0
    streams: bool | None = None
    test: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def request(self, request: ChatRequest, bill: Bill, *, ahead: bool = False) -> ChargedReply:
        """Wait for one reply, with retries; with `ahead` before others that wait (see `Places`).

        The cost of every attempt is added to `bill`, also if all attempts fail.

        Raises `ModelUnavailable` if the model is down, and another `ModelError` if only this request fails. Only this
        request fails if the model replied to another one since this one was first sent. If there was no other reply,
        one short test request finds out: some prompts make a server hang or break, and such a prompt fails alone.
        """
        async with self.places.ahead() if ahead else self.places:
            attempts = _Attempts(self, request, bill)
            try:
                charged = await retry(attempts.send, self.backoff)
            except Failure as failure:
                if isinstance(failure.error, ModelUnavailable) and await attempts.fail_alone(failure):
                    raise ModelError(f"{failure.error}; meanwhile other requests got a reply") from failure
                raise failure.error from failure.__cause__
        if charged.refused:
            raise Refused(charged.refused)
        return charged

    async def send(self, request: ChatRequest, bill: Bill) -> ChargedReply:
        """Make one attempt. Raises `Failure`, or the error of a permit."""
        await take_turn()  # to make a request takes milliseconds
        prompt_tokens = sum(map(estimate_tokens, (request.system, *request.turns)))
        most_tokens = self.connection.most_tokens(request)
        async with announce_request(Request(prompt_tokens, most_tokens, self._price)) as own:
            try:
                charged = await self.connection.send(request, self.timeout)
                own.spent = self._count(charged, prompt_tokens)
            except Failure as failure:
                if failure.answered or not failure.sent:
                    own.spent = Spent(calls=int(failure.sent))
                raise
            finally:
                bill.spent += own.spent
        self.replies += 1
        return charged

    def _price(self, input_tokens: int, output_tokens: int) -> float | None:
        return find_price(self.connection.spec, input_tokens, output_tokens)

    def _count(self, charged: ChargedReply, prompt_tokens: int) -> Spent:
        """The cost of a reply. If the server does not count tokens, they are estimated."""
        received = charged.output_tokens
        tokens_in = prompt_tokens if charged.input_tokens is None else charged.input_tokens
        tokens_out = estimate_tokens(charged.reply.text) if received is None else received
        cost = self._price(tokens_in, tokens_out) if charged.cost is None else charged.cost
        return Spent(
            calls=1,
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            cost=cost,
            cached_tokens=charged.cached_tokens,
            reasoning_tokens=charged.reasoning_tokens,
        )


class _Attempts:
    """The attempts at one request; `fail_alone` finds out whether the request or the model fails."""

    def __init__(self, channel: Channel, request: ChatRequest, bill: Bill) -> None:
        self._channel = channel
        self._request = replace(request, listener=None) if channel.streams is False else request
        self._has_listener = request.listener is not None
        self._bill = bill
        self._replies_before = channel.replies
        self._failures: list[PassingFailure] = []  # without those of a busy server: the request does not cause them

    async def send(self) -> ChargedReply:
        try:
            return await self._stream_or_not()
        except PassingFailure as failure:
            if not failure.busy:
                self._failures.append(failure)
            raise

    async def _stream_or_not(self) -> ChargedReply:
        """Make an attempt. After a failure that may be due to the stream, the next one is plain."""
        try:
            charged = await self._channel.send(self._request, self._bill)
        except Failure as failure:
            if not failure.may_be_stream:
                raise
            self._request = replace(self._request, listener=None)
            if isinstance(failure, PassingFailure):
                raise  # `retry` waits before the plain attempt
            return await self._stream_or_not()
        if self._has_listener and not self._channel.streams:
            self._channel.streams = self._request.listener is not None
        return charged

    async def fail_alone(self, last: Failure) -> bool:
        """Whether only this request fails: the model replies to others."""
        if not (self._failures and isinstance(last, PassingFailure)):
            return False
        if self._model_replied_since:
            return True
        if not any(failure.sent for failure in self._failures):
            return False
        async with self._channel.test:  # one test request is enough for all requests that wait for it
            if not self._model_replied_since:
                with suppress(Failure):
                    await self._channel.send(_TEST_REQUEST, self._bill)
            return self._model_replied_since

    @property
    def _model_replied_since(self) -> bool:
        return self._channel.replies > self._replies_before
