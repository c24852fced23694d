"""An output folder pays for a reply once, and rows depend on the code that made them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from tomewise.evaluate import digests
from tomewise.evaluate.replay import PaidOnce
from tomewise.evaluate.results import tabulate
from tomewise.evaluate.running import run
from tomewise.language.prompts import Prompts
from tomewise.language.roles import DECOMPOSE, GIST, DecomposeIn, GistIn
from tomewise.language.usage import report_call
from tomewise.meter import ModelCall
from tomewise.run import meter
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing.scripted import ScriptedModel

ANSWER = {"answer": lambda given: {"answer": "the lighthouse"}}
KEPT = "The keeper put out the light."
COUNTED = ("calls", "input_tokens", "output_tokens", "cost", "depth")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A function that replaces the package by one file."""

    def change(name: str, text: str) -> None:
        folder = tmp_path / f"package{len(list(tmp_path.glob('package*')))}"
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        monkeypatch.setattr(digests, "PACKAGE", folder)

    return change


async def test_changed_code_makes_new_rows_and_pays_nothing(experiment, tmp_path, package):
    package("loops/once.py", "one")
    model = ScriptedModel(ANSWER)
    made = experiment(("naive",), model=model)
    first = await run(made, tmp_path / "out")
    name = made.name()
    package("loops/once.py", "two")
    assert made.name() != name
    second = await run(made, tmp_path / "out")
    assert len(model.calls) == 4
    assert [row.key for row in second.rows] != [row.key for row in first.rows]
    for before, after in zip(first.rows, second.rows, strict=True):
        assert [after.usage[name] for name in COUNTED] == [before.usage[name] for name in COUNTED]
        assert (before.usage["reused"], after.usage["reused"]) == (0, 1)
        assert after.asked >= before.asked
    assert tabulate(second).lines[0].usage["calls"] == 4


def test_names_change_with_every_source_and_memories_with_what_makes_them(experiment, package):
    made = experiment()
    seen = {}
    for name in (
        "loops/once.py",
        "memory/building.py",
        "prompts/answer.md",
        "terminal/commands.py",
    ):
        for text in ("one", "two"):
            package(name, text)
            seen[name, text] = made.name(), made.name_memory("d")
        assert seen[name, "one"][0] != seen[name, "two"][0]
        remade = seen[name, "one"][1] != seen[name, "two"][1]
        assert remade == (name in ("memory/building.py", "prompts/answer.md"))


def test_the_package_itself_has_a_digest():
    assert digests.PACKAGE.joinpath("evaluate", "running.py").is_file()
    assert len(digests.digest_code()) == len(digests.digest_memory_code()) == 64
    assert digests.digest_code() != digests.digest_memory_code()


class TwoCallModel:
    """A model whose every ask takes two calls, with a price and tokens of all kinds."""

    name, window = "charging", 1000

    def __init__(self) -> None:
        self.asks = 0

    async def ask(self, role, given):
        self.asks += 1
        for _ in range(2):
            await asyncio.sleep(0)
            moment = float(self.asks)
            report_call(ModelCall(
                role.name, model=self.name, started=moment, ended=moment + 1, input_tokens=10, output_tokens=5,
                cost=0.5, cached_tokens=4, reasoning_tokens=3,
            ))  # fmt: skip
        return role.output(memory=KEPT) if role is GIST else role.output()


@pytest.fixture
def calls(tmp_path):
    store = SqlStore.open(tmp_path / "calls.tome")
    yield store.calls
    store.close()


async def test_a_stored_reply_is_charged_as_if_paid_again(calls):
    model = TwoCallModel()
    for number in range(2):
        with meter() as used:
            paying = PaidOnce(model, Prompts(), calls)  # only the file survives
            reply = await paying.ask(GIST, GistIn(text="t"))
        total = used.usage().total
        assert reply.memory == KEPT
        assert (total.calls, total.input_tokens, total.output_tokens, total.cost) == (2, 20, 10, 1.0)
        assert (total.cached_tokens, total.reasoning_tokens) == (8, 6)
        assert used.reused == number
    assert model.asks == 1
    assert used.usage().depth == 2  # one call after the other, as the first time


async def test_equal_asks_at_one_moment_are_one_call_and_charged_to_each(calls):
    model = TwoCallModel()
    paying = PaidOnce(model, Prompts(), calls)

    async def count_calls() -> int:
        with meter() as used:
            await paying.ask(DECOMPOSE, DecomposeIn(question="q"))
        return used.usage().total.calls

    assert await asyncio.gather(*(count_calls() for _ in range(3))) == [2, 2, 2]
    assert model.asks == 1


async def test_stored_replies_asked_for_side_by_side_are_not_a_chain(calls):
    paying = PaidOnce(ScriptedModel({"gist": lambda given: {"memory": given.text}}), Prompts(), calls)
    inputs = [GistIn(text=str(number)) for number in range(4)]
    for _ in range(2):
        with meter() as used:
            await asyncio.gather(*(paying.ask(GIST, given) for given in inputs))
        assert (used.usage().total.calls, used.usage().depth) == (4, 1)


async def test_replies_of_the_extractive_model_depend_on_its_code(calls, package):
    model = ScriptedModel({"gist": lambda given: {"memory": given.text}}, name="extractive")
    for text in ("one", "two"):
        package("language/extractive/gist.py", text)
        for _ in range(2):
            await PaidOnce(model, Prompts(), calls).ask(GIST, GistIn(text="t"))
    assert len(model.calls) == 2


@pytest.mark.parametrize("stored", [{"gist": "m"}, {"memory": "<string>"}], ids=["another type", "a fault"])
async def test_a_stored_reply_that_fits_no_longer_is_paid_again(calls, stored):
    model = TwoCallModel()
    paying = PaidOnce(model, Prompts(), calls)
    given = GistIn(text="The keeper put out the light at nine.")
    text = json.dumps({"reply": stored, "paid": []})
    await calls.keep(paying.make_key(GIST, given), role="gist", model=model.name, reply=text)
    with meter() as used:
        assert (await paying.ask(GIST, given)).memory == KEPT
    assert (model.asks, used.usage().total.calls, used.reused) == (1, 2, 0)
    assert (await paying.ask(GIST, given)).memory == KEPT
    assert model.asks == 1


async def test_systems_cost_the_same_in_any_order_and_alone(experiment, tmp_path):
    def costs(results):
        return {line.system: [line.usage[name] for name in COUNTED[:-1]] for line in tabulate(results).lines}

    made = experiment(("naive", "hybrid"), model=ScriptedModel(ANSWER))
    together = costs(await run(made, tmp_path / "together"))
    model = ScriptedModel(ANSWER)
    for system in ("hybrid", "naive"):
        alone = replace(experiment((system,)), model=model)
        assert costs(await run(alone, tmp_path / "apart"))[system] == together[system]
    assert len(model.calls) == 4  # both systems rank these few passages alike, so the second asks nothing new
