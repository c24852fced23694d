"""Announce each request to the permits (`run`), and estimate its tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tomewise.run import Permit, Request, current_run
from tomewise.types import Cost

COUNTED = 1.1  # tokens that a server may count where we estimate one


@dataclass(slots=True)
class Bill:
    """The cost of one request. The sender sets it when it is known, and sends no more than `most` requests."""

    spent: Cost
    most: int = 1


@asynccontextmanager
async def announce_request(request: Request) -> AsyncIterator[Bill]:
    """Announce a request to all permits. A model enters this around each request. Raises the error of a permit.

    The sender sets the cost on the bill. Before it does, and so if the request is cancelled, the request counts as one
    call with the tokens of its prompt.
    """
    reserved: list[Permit] = []
    bill = Bill(Cost(), request.most)
    try:
        for permit in current_run().permits:
            bill.most = min(bill.most, await permit.reserve(request))
            reserved.append(permit)
        bill.spent = Cost(calls=1, input_tokens=request.input_tokens, dollars=request.price(request.input_tokens, 0))
        yield bill
    finally:
        for permit in reserved:
            permit.settle(request, bill.spent)


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens a text has: one for four bytes of UTF-8, about right for English and for Chinese."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4
