"""A model in one event loop: requests are sent, tried again, counted, and told from a model that is down."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import BaseModel

from tomewise.errors import ModelError, ModelUnavailable, Refused
from tomewise.language.places import Places
from tomewise.language.price import find_price
from tomewise.language.provider import ChargedReply, ChatRequest, Connection
from tomewise.language.retry import Backoff, Failure, PassingFailure, retry
from tomewise.language.usage import Bill, Request, announce_request, estimate_tokens
from tomewise.types import Spent


class _Sign(BaseModel):
    """What a sign of life is asked for as."""

    alive: bool


_SIGN_OF_LIFE = ChatRequest("Reply with one short JSON object.", ['Reply with {"alive": true}.'], _Sign, 16, None)


@dataclass(slots=True)
class Channel:
    """Connections cannot be shared between event loops, so each has a line of its own.

    `replies` counts what came over it. `test` is held while a sign of life is asked for.
    """

    connection: Connection
    places: Places
    timeout: float
    backoff: Backoff
    replies: int = 0
    test: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def request(self, asked: ChatRequest, bill: Bill) -> ChargedReply:
        """One reply, waited and retry for; what every request took is added to `bill`, whatever comes of it.

        Raises `ModelUnavailable` where the model is down, and another `ModelError` where it is this request that fails:
        one that keeps failing although another one was replied to since it was first sent. Where nothing else was
        replied to, one short request is sent to find out, so that a prompt on which a server hangs or breaks can fail
        alone.
        """
        async with self.places:
            attempts = _Attempts(self, asked, bill)
            try:
                charged = await retry(attempts.send, self.backoff)
            except Failure as failure:
                if isinstance(failure.error, ModelUnavailable) and await attempts.fail_alone(failure):
                    raise ModelError(f"{failure.error}; other requests were replied to meanwhile") from failure
                raise failure.error from failure.__cause__
        if charged.refused:
            raise Refused(charged.refused)
        return charged

    async def send(self, asked: ChatRequest, bill: Bill) -> ChargedReply:
        """One attempt. Raises `Failure`, or what a permit raises."""
        sent = sum(map(estimate_tokens, (asked.system, *asked.turns)))
        async with announce_request(Request(sent, self.connection.most_tokens(asked), self._price)) as own:
            try:
                charged = await self.connection.send(asked, self.timeout)
                own.spent = self._spent(charged, sent)
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

    def _spent(self, charged: ChargedReply, sent: int) -> Spent:
        """What a reply took. Where the server does not count tokens, they are estimated."""
        received = charged.output_tokens
        tokens_in = sent if charged.input_tokens is None else charged.input_tokens
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
    """The attempts at one request, and whether it is the request or the model that fails."""

    def __init__(self, line: Channel, asked: ChatRequest, bill: Bill) -> None:
        self._line = line
        self._asked = asked
        self._bill = bill
        self._replies_before = line.replies
        self._failures: list[
            PassingFailure
        ] = []  # those of a server that is not merely busy: the request may be the reason

    async def send(self) -> ChargedReply:
        try:
            return await self._line.send(self._asked, self._bill)
        except PassingFailure as failure:
            if not failure.busy:
                self._failures.append(failure)
            raise

    async def fail_alone(self, last: Failure) -> bool:
        """Whether the model replies to others, so that it is this request that fails."""
        if not (self._failures and isinstance(last, PassingFailure)):
            return False
        if self._others_were_replied_to:
            return True
        if not any(failure.sent for failure in self._failures):
            return False
        async with self._line.test:  # one sign of life tells all who wait for it
            if not self._others_were_replied_to:
                with suppress(Failure):
                    await self._line.send(_SIGN_OF_LIFE, self._bill)
            return self._others_were_replied_to

    @property
    def _others_were_replied_to(self) -> bool:
        return self._line.replies > self._replies_before
