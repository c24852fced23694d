"""How fast a model is: learnt from its calls, kept between processes, and worth nothing where the file is broken."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.language.openai_server import CUE, GIVEN, GOOD, Behaviour, OpenAIServer, fuse, open_chat, reply_with

from tomewise.language import adapting, roles
from tomewise.language.chat import ChatModel
from tomewise.language.pace import KEPT, measure_pace
from tomewise.run import meter
from tomewise.types import Cost, Pace

READS, WRITES = 4_000, 200  # tokens a second
SIZES = ((400, 20), (1_600, 20), (400, 80), (1_600, 80))


def take(read: int, written: int) -> float:
    return read / READS + written / WRITES


def reply_in_time(read: int, written: int, cached: int = 0, delay: float | None = None) -> Behaviour:
    """A reply to so many tokens in so many, as slow as the model is."""
    good = reply_with(json.dumps({"cue": CUE}))
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    body = {**good.body, "usage": {**usage, "prompt_tokens_details": {"cached_tokens": cached}}}
    return replace(good, body=body, delay=take(read - cached, written) if delay is None else delay)


def check(pace: Pace | None, share: float = 0.2) -> None:
    assert pace is not None
    assert abs(pace.reads / READS - 1) < share, pace
    assert abs(pace.writes / WRITES - 1) < share, pace


@pytest.mark.parametrize("odd", [0, 1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_speed_is_found_in_noisy_times_whatever_odd_calls_took(seed, odd):
    random.seed(seed)
    calls = [(random.randint(300, 9_000), random.randint(10, 400)) for _ in range(KEPT)]
    timings = [(*call, take(*call) * random.uniform(0.97, 1.03)) for call in calls]
    for place in random.sample(range(KEPT), odd):
        timings[place] = (*timings[place][:2], random.choice([0.001, 500.0]))
    check(measure_pace(tuple(timings), 1))


def test_few_calls_and_equal_ones_foretell_calls_like_them():
    for timings in [((2_000, 50, 3.0),), ((2_000, 50, 3.0),) * 5]:
        pace = measure_pace(timings, 1)
        assert pace.foresee(Cost(calls=1, input_tokens=2_000, output_tokens=50)) == pytest.approx(3.0)
        assert 4 < pace.reads / pace.writes < 16, "which share is which is not known, so the usual one"
    assert measure_pace((), 1) is None
    assert measure_pace(((0, 0, 1.0), (5, 5, 0.0), (5, 5, float("inf")), (-1, 5, 1.0), (5, 5, float("nan"))), 1) is None


async def test_the_speed_of_a_server_is_learnt_cached_tokens_are_not_read_and_it_is_kept():
    async with open_chat(*(reply_in_time(read + 900, written, 900) for read, written in SIZES)) as (model, _):
        assert model.abilities.pace is None
        for _ in SIZES:
            await fuse(model)
        check(model.abilities.pace)
        again = ChatModel("openai:test", base_url=model.adapter.name.rpartition(" ")[2])
        assert again.abilities.pace == model.abilities.pace


async def test_calls_side_by_side_share_the_seconds_of_a_near_server():
    """The server takes one at a time, so that each of four waits for those before it."""
    free, left = 0.0, [*SIZES, *SIZES]

    def queue(_: dict[str, Any]) -> Behaviour:
        nonlocal free
        read, written = left.pop()
        free = max(free, time.perf_counter()) + take(read, written)
        return reply_in_time(read, written, delay=free - time.perf_counter())

    async with open_chat() as (model, server):
        server.handler = queue
        await asyncio.gather(*(model.ask(roles.FUSE, GIVEN.model_copy(update={"question": str(n)})) for n in range(8)))
        pace = model.abilities.pace
    cost = Cost(calls=8, input_tokens=2 * sum(size[0] for size in SIZES), output_tokens=2 * sum(s[1] for s in SIZES))
    seconds = 2 * sum(take(*size) for size in SIZES)
    assert seconds / 1.4 < pace.foresee(cost) < seconds * 1.4


async def test_failures_are_no_measure_and_a_long_build_writes_rarely(learnt):
    async with open_chat(reply_with("{}"), GOOD) as (model, _):
        for _ in range(KEPT + 5):
            await fuse(model)
        assert len(model.adapter.known.timings) == KEPT
        latest = model.adapter.known.timings[-1]
        await fuse(model)
        assert model.adapter.known.timings[-1] == latest, "one every ten seconds"
        model.adapter._next_time = 0.0
        await fuse(model)
    assert len(model.adapter.known.timings) == KEPT
    (row,) = json.loads((learnt / "servers.json").read_text()).values()
    assert len(row["timings"]) == KEPT


@pytest.mark.parametrize(
    "timings",
    ["3", '[["a", 1, 1]]', "[[1, 2]]", "[[1, 2, NaN]]", '{"from": "later"}', "[[1, 2, 3, 4]]", "[[0, 0, 0]]"],
)
async def test_timings_that_cannot_be_read_are_none(learnt, timings):
    learnt.mkdir()
    async with open_chat() as (model, _):
        row = f'{{"refused": ["temperature"], "timings": {timings}, "of_later": 1}}'
        (learnt / "servers.json").write_text(f"{{{json.dumps(model.adapter.name)}: {row}}}")
        assert model.abilities.pace is None
        assert await fuse(model) == CUE
        assert model.abilities.pace is not None


async def test_a_folder_that_takes_no_file_costs_the_memory_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(adapting, "find_cache_folder", lambda: tmp_path / "file")
    async with open_chat() as (model, _):
        assert await fuse(model) == CUE
        assert model.abilities.pace is not None


def test_two_processes_keep_what_both_measured(learnt, tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from tomewise.language import adapting; from tomewise.types import Cost\n"
        f"adapting.find_cache_folder = lambda: Path({str(learnt)!r})\n"
        "for turn in range(40):\n"
        "    for name in (sys.argv[1], 'both'):\n"
        "        adapter = adapting.Adapter(name)\n"
        "        adapter.time(Cost(input_tokens=100, output_tokens=10), 1.0)\n"
        "        adapter.keep()\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, name], cwd=tmp_path) for name in ("a", "b")]
    assert [process.wait() for process in processes] == [0, 0]
    kept = adapting.read_servers()
    assert kept.keys() == {"a", "b", "both"}
    assert all(len(each.timings) == KEPT for each in kept.values())


async def test_calls_of_a_provider_run_beside_each_other():
    with OpenAIServer(lambda _: GOOD) as server:
        near = ChatModel("openai:test", base_url=server.url, limit=4)
        far = ChatModel("openai:test", base_url="https://models.example.com/v1", limit=4)
        for model in (near, far):
            model.adapter.time(Cost(calls=1, input_tokens=100, output_tokens=10), 1.0)
        cost = Cost(calls=8, input_tokens=800, output_tokens=80)
        assert near.abilities.pace.foresee(cost) == pytest.approx(8.0)
        assert far.abilities.pace.foresee(cost) == pytest.approx(2.0)


async def test_a_server_that_counts_more_cached_tokens_than_it_read_still_has_a_price():
    async with open_chat(reply_in_time(100, 20, 300, delay=0), name="openai:gpt-4o-mini") as (model, _):
        with meter() as used:
            await fuse(model)
    spent = used.measure_cost()
    assert (spent.input_tokens, spent.cached_tokens) == (100, 100)
    assert spent.dollars
