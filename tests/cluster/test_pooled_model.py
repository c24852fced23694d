"""A model whose asks workers carry out: limits, budgets, meters and errors are those of one process."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.killing import wait_for
from tests.evaluate.test_hub import REQUEST
from tests.language.openai_server import OpenAIServer, fail_with, in_turn, reply_with
from tests.patience import wait_until

from tomewise.cluster.pool_worker import Failed
from tomewise.cluster.pooled_model import PooledAsks
from tomewise.cluster.worker_parts import ModelParts, WorkerParts
from tomewise.cluster.worker_pool import WorkerPool
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, BudgetExceeded, ModelError, PartError, TomewiseError
from tomewise.evaluate.on_workers import HERE, Hub
from tomewise.language import roles
from tomewise.language.budget import Budget
from tomewise.language.chat import ChatModel
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.wrapped import Wrapped
from tomewise.run import PART_SKIPPED, meter
from tomewise.testing import check_language_model
from tomewise.types import Cost, Limit

pytestmark = pytest.mark.cluster
GIVEN = roles.FuseIn(question="Who hid the letter?", cues=["Mara held it last."])
GOOD = reply_with('{"cue": "Mara hid it."}')
BAD = reply_with('{"no": "cue"}')
PASSAGES = [roles.PassageIn(text=f"Mara Hale gave Tom Ashe the key of lamp {number} in Port Gale.") for number in "123"]


@dataclass(frozen=True)
class Station:
    """A server, a pool of two workers that ask it, and the model of this process that they stand for."""

    server: OpenAIServer
    pool: WorkerPool
    own: ChatModel

    def make_model(self, *behaviours: Any, limit: int = 16) -> Wrapped:
        """The pooled model; from now on the server behaves so."""
        self.server.handler = in_turn(*behaviours)
        self.server.requests.clear()
        self.server.most_at_once = 0
        return Wrapped(self.own, PooledAsks(self.pool, limit))


@pytest.fixture(scope="module")
def station(nodes: object) -> Iterator[Station]:
    with OpenAIServer(in_turn(GOOD)) as server:
        pool = WorkerPool(WorkerParts(embedder="hash", model=ModelParts(model="openai:test", base_url=server.url)), 2)
        pool.open()
        yield Station(server, pool, ChatModel("openai:test", base_url=server.url))
        pool.close()


class Unreadable(Exception):
    """An error that holds what cannot be pickled, and has no text."""

    def __init__(self) -> None:
        super().__init__(threading.Lock())

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Odd(ExtractiveModel):
    """A model that calls no role quick, and replies to its question with something else."""

    def is_quick(self, role: Any, given: Any) -> bool:
        return False

    async def ask(self, role: Any, given: Any) -> Any:
        question = getattr(given, "question", "")
        if question == "an interrupt":
            raise KeyboardInterrupt
        if question == "an error without a text":
            raise Unreadable
        return ODD_REPLIES[question]() if question in ODD_REPLIES else await super().ask(role, given)


ODD_REPLIES: dict[str, Any] = {
    "nothing": lambda: None,
    "a mapping": lambda: {"cue": "Mara hid it."},
    "the output of another role": lambda: roles.GistOut(memory="Mara hid it."),
    "a value of another type": lambda: roles.CueOut.model_construct(cue={"a": 7}),
    "half of a letter": lambda: roles.CueOut.model_construct(cue="\ud800"),
    "a lock": lambda: roles.CueOut.model_construct(cue=threading.Lock()),
}
ODD_ERRORS = {
    "an exit": (PartError, r"a part failed on \S+ \(SystemExit: 3\): mend it"),
    "an interrupt": (PartError, r"a part failed on \S+ \(KeyboardInterrupt: \): mend it"),
    "an error without a text": (TomewiseError, r"the worker on \S+ sent what cannot be read \(.*: no text\): "),
    **dict.fromkeys(ODD_REPLIES, (BadReply, r"the reply of extractive for 'fuse' is \w+, which does not fit CueOut")),
}
ODD_REPLIES["an exit"] = lambda: sys.exit(3)


@pytest.fixture(scope="module")
def own_pool(nodes: object) -> Iterator[WorkerPool]:
    """A pool of workers whose model computes."""
    pool = WorkerPool(WorkerParts(embedder="hash", model=ModelParts(model=Odd(HashEmbedder()))), 2)
    pool.open()
    yield pool
    pool.close()


@pytest.fixture
def extractor(own_pool: WorkerPool) -> Wrapped:
    return Wrapped(Odd(HashEmbedder()), PooledAsks(own_pool, 16))


async def ask_many(model: Any, count: int) -> list[Any]:
    given = [GIVEN.model_copy(update={"question": f"Who hid letter {number}?"}) for number in range(count)]
    return await asyncio.gather(*(model.ask(roles.FUSE, each) for each in given), return_exceptions=True)


async def test_it_is_a_language_model(station: Station, extractor: Wrapped) -> None:
    await check_language_model(extractor, roles.FUSE, GIVEN)
    model = station.make_model(GOOD)
    with meter() as used:
        begun = time.perf_counter()
        assert (await model.ask(roles.FUSE, GIVEN)).cue == "Mara hid it."
    (call,) = used.calls
    assert (call.role, call.model, call.input_tokens, call.output_tokens) == ("fuse", "openai:test", 100, 20)
    assert begun <= call.started <= call.ended <= time.perf_counter()


@pytest.mark.parametrize("question", ODD_ERRORS)
async def test_what_is_no_reply_is_one_error(extractor: Wrapped, question: str) -> None:
    """It comes at once, and the workers go on."""
    kind, line = ODD_ERRORS[question]
    with pytest.raises(kind, match=rf"^{line}[^\n]*$"):
        await extractor.ask(roles.FUSE, GIVEN.model_copy(update={"question": question}))
    own = ExtractiveModel(HashEmbedder())
    assert await extractor.ask(roles.FUSE, GIVEN) == await own.ask(roles.FUSE, GIVEN)


async def test_what_the_model_calls_quick_is_asked_here(own_pool: WorkerPool) -> None:
    sent: list[str] = []
    own = ExtractiveModel(HashEmbedder())

    class Noting:
        def submit(self, verb: str, ask: Any) -> Future[Any]:
            sent.append(ask.role.name)
            return own_pool.submit(verb, ask)

    pool: Any = Noting()
    question = roles.AnswerIn(question="Who gave the key?", evidence=[roles.Shown(label="E1", text=PASSAGES[0].text)])
    long = GIVEN.model_copy(update={"cues": ["Mara held it last."] * 200})
    pooled = Wrapped(Wrapped(own, models={"gist": own}), PooledAsks(pool, 16))
    for role, given in ((roles.FUSE, GIVEN), (roles.ANSWER, question), (roles.FUSE, long)):
        assert await pooled.ask(role, given) == await own.ask(role, given)
    assert sent == ["answer", "fuse"]


async def test_an_ask_that_is_given_up_ends_on_its_worker(station: Station) -> None:
    """And no later one begins before: the server never sees more requests than the limit."""
    model = station.make_model(reply_with('{"cue": "Mara hid it."}', delay=20), limit=4)
    with meter() as used:
        asking = asyncio.create_task(ask_many(model, 12))
        await asyncio.to_thread(wait_for, station.server, 4)
        asking.cancel()
        begun = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert time.monotonic() - begun < 10
    await asyncio.to_thread(wait_until, lambda: station.server.at_once == 0)
    assert len(station.server.requests) == 4, "what waited was never sent"
    assert used.measure_cost().calls == 4, "a request that was sent counts"
    station.server.handler = in_turn(reply_with('{"cue": "Mara hid it."}', delay=0.2))
    assert len(await ask_many(model, 8)) == 8
    assert station.server.most_at_once == 4


async def test_long_asks_that_are_given_up_on_their_way_end_too(station: Station) -> None:
    """Ray keeps arguments of more than 100 KB apart, and later calls overtake theirs."""
    model = station.make_model(reply_with('{"cue": "Mara hid it."}', delay=20))
    given = GIVEN.model_copy(update={"cues": ["Mara held it last. " * 10_000]})
    asks = [asyncio.create_task(model.ask(roles.FUSE, given)) for _ in range(12)]
    await asyncio.sleep(0.02)
    for ask in asks:
        ask.cancel()
    begun = time.monotonic()
    await asyncio.gather(*asks, return_exceptions=True)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("behaviours", [(GOOD,), (BAD, GOOD)], ids=["sound", "each repaired"])
async def test_a_budget_of_20_calls_sends_20(station: Station, behaviours: tuple[Any, ...]) -> None:
    budget = Budget(Limit(calls=20), name="test")
    model = Wrapped(station.make_model(GOOD), budget.ask)
    turn = iter(range(10**6))
    station.server.handler = lambda _: behaviours[next(turn) % len(behaviours)]
    found = await ask_many(model, 60)
    assert len(station.server.requests) == 20
    assert budget.spent.calls == 20
    assert {type(each) for each in found if isinstance(each, Exception)} <= {BudgetExceeded, BadReply}


async def test_errors_are_those_of_the_model(station: Station) -> None:
    for behaviour in (BAD, fail_with(400, "no such model")):
        model = station.make_model(behaviour)
        with pytest.raises(ModelError) as here:
            await station.own.ask(roles.FUSE, GIVEN)
        await station.own.close()
        with meter() as used, pytest.raises(ModelError) as there:
            await model.ask(roles.FUSE, GIVEN)
        assert (type(there.value), str(there.value)) == (type(here.value), str(here.value))
        assert used.measure_cost().calls == len(station.server.requests) / 2, "a failed ask costs too"


async def test_parts_of_a_reply_that_a_worker_skips_are_counted_here(station: Station) -> None:
    good = {"label": "E1", "quote": "It rained.", "fact": "It rained."}
    facts = {"facts": [good, good, {"label": "E2", "fact": "without a quotation"}]}
    model = station.make_model(reply_with(json.dumps(facts)))
    given = roles.NotesIn(question="Did it rain?", evidence=[roles.Shown(label="E1", text="It rained.")])
    with meter() as used:
        assert len((await model.ask(roles.EXTRACT_NOTES, given)).facts) == 2
    assert used.fallbacks == {PART_SKIPPED: 1}


async def test_requests_that_wait_keep_out_none_that_ends(station: Station, tmp_path: Path) -> None:
    """Ray's own limit is 1,000 calls at a time."""
    hub = station.pool.start_beside(Hub, tmp_path / "calls.tome", partial(Budget, Limit(calls=1), name="a model"))
    assert await hub.reserve.remote(HERE, "first", REQUEST) == 1
    waiting = [hub.reserve.remote(HERE, str(number), REQUEST) for number in range(1100)]
    hub.settle.remote(HERE, "first", Cost(calls=1))
    found = await asyncio.wait_for(asyncio.gather(*waiting), 60)
    assert all(isinstance(each, Failed) for each in found)


async def test_asks_are_replaced_under_the_limit(station: Station) -> None:
    """Asks are given up and others come, over and over: some at the server, some on their way, some still waiting."""
    model = station.make_model(reply_with('{"cue": "Mara hid it."}', delay=0.1), limit=4)
    with meter() as used:
        for turn in range(1, 7):
            asking = asyncio.create_task(ask_many(model, 12))
            await asyncio.to_thread(wait_for, station.server, len(station.server.requests) + turn)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
    assert len(station.server.requests) < 6 * 12, "some were never sent"
    assert used.measure_cost().calls >= 1 + 2 + 3 + 4 + 5 + 6
    assert len(await ask_many(model, 8)) == 8
    assert station.server.most_at_once <= 4
