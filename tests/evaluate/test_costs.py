"""What a run costs: a folder pays for a reply once, each system is charged for its layers, and rows depend on code."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

from tomewise.errors import BadReply, PromptTooLong, UsageError
from tomewise.evaluate import digests
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.replay import PaidOnce, ask_as_before, remember_question, replay
from tomewise.evaluate.report import make_json, write_markdown
from tomewise.evaluate.results import tabulate
from tomewise.language.prompts import Prompts
from tomewise.language.roles import DECOMPOSE, GIST, DecomposeIn, GistIn
from tomewise.language.together import ask_together
from tomewise.language.wrapped import Wrapped
from tomewise.run import ModelCall, meter, report_call
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing.scripted import ScriptedModel

ROLES = {
    "answer": lambda given: {"answer": "the lighthouse"},
    "gist": lambda given: {"memory": given.text},
    "decompose": lambda given: {},
    "filter_facts": lambda given: {"keep": [1]},
    "select_nodes": lambda given: {"keep": [1]},
    **dict.fromkeys(
        ("extract_facts", "extract_triples"),
        lambda given: {"entities": ["Ada Marsh"], "triples": [["Ada Marsh", "kept", "a light"]]},
    ),
    "extract_entities": lambda given: {},
}
RANKED = {"retrieval_only": True, "metrics": (find_metric("recall@2"),)}
KEPT = "The keeper put out the light."
COUNTED = ("calls", "input_tokens", "output_tokens", "dollars")


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


async def test_changed_code_makes_new_rows_and_pays_nothing(evaluate, experiment, package, tmp_path):
    model, out = ScriptedModel(ROLES), tmp_path / "out"
    package("loops/once.py", "one")
    first, name = await evaluate("naive", model=model, out=out), experiment("naive", model=model).name()
    package("loops/once.py", "two")
    assert experiment("naive", model=model).name() != name
    second = await evaluate("naive", model=model, out=out)
    assert len(model.calls) == 4
    assert [row.key for row in second.rows] != [row.key for row in first.rows]
    for before, after in zip(first.rows, second.rows, strict=True):
        for counted in (*COUNTED, "depth"):
            assert after.cost[counted] == before.cost[counted]
        assert (before.cost["reused"], after.cost["reused"]) == (0, 1)
        assert after.asked >= before.asked
    assert tabulate(second).lines[0].cost["calls"] == 4


@pytest.mark.parametrize(
    ("file", "makes_memories"),
    [("loops/once.py", False), ("memory/building.py", True), ("prompts/answer.md", True)],
)
def test_names_change_with_every_source_and_memories_with_what_makes_them(experiment, package, file, makes_memories):
    made, names = experiment(), []
    for text in ("one", "two"):
        package(file, text)
        names.append((made.name(), made.name_memory("d")))
    assert names[0][0] != names[1][0]
    assert (names[0][1] != names[1][1]) == makes_memories


async def charge(given):
    """Reply after a call of its own, with a price and tokens of all kinds, beside that of the scripted model."""
    await asyncio.sleep(0)
    call = ModelCall("gist", model="charging", started=0.0, ended=1.0, input_tokens=10, output_tokens=5, dollars=0.5)
    report_call(replace(call, cached_tokens=4, reasoning_tokens=3))
    return {"memory": KEPT} if isinstance(given, GistIn) else {}


@pytest.fixture
def model():
    """A model whose every ask takes two calls."""
    return ScriptedModel({"gist": charge, "decompose": charge}, name="charging", cost=0.5)


@pytest.fixture
def calls(tmp_path):
    store = SqlStore.open(tmp_path / "calls.tome")
    yield store.calls
    store.close()


async def test_a_stored_reply_is_charged_as_if_paid_again(calls, model):
    totals = []
    for number in range(2):
        with meter() as used:
            paying = Wrapped(model, PaidOnce(Prompts(), calls))  # only the file survives
            reply = await paying.ask(GIST, GistIn(text="t"))
        assert reply.memory == KEPT
        assert used.reused == number
        totals.append(replace(used.measure_cost(), model_seconds=0.0, own_seconds=0.0, roles={}))
        assert used.measure_cost().depth == 2  # one call after the other, as the first time
    first, again = totals
    assert (first.calls, first.dollars, first.cached_tokens, first.reasoning_tokens) == (2, 1.0, 4, 3)
    assert again == replace(first, kept=again.kept)
    assert len(model.calls) == 1


async def test_a_batch_is_charged_as_if_paid_again_and_asked_for_once(calls):
    items = [{"label": "P1", "memory": KEPT}, {"label": "P2", "memory": KEPT}]
    model, costs = ScriptedModel({"gist": lambda given: {"passages": items}}, cost=0.5), []
    for _ in range(2):
        paying = Wrapped(Wrapped(model, PaidOnce(Prompts(), calls)), ask_as_before)
        with meter() as used:
            outputs = await ask_together(paying, GIST, [GistIn(text="t"), GistIn(text="u")], 2)
        assert [output.memory for output in outputs] == [KEPT] * 2
        costs.append(used.measure_cost().dollars)
    assert (len(model.calls), costs) == (1, [0.5, 0.5])


async def test_a_prompt_that_was_too_long_is_not_sent_again_to_rank():
    inside = ScriptedModel({"gist": [PromptTooLong("too long", 9, 10)]})
    model = Wrapped(inside, ask_as_before)
    with remember_question():
        for where in (nullcontext, replay):
            with where(), pytest.raises(PromptTooLong):
                await model.ask(GIST, GistIn(text="t"))
    assert len(inside.calls) == 1


async def test_equal_asks_at_one_moment_are_one_call_and_charged_to_each(calls, model):
    paying = Wrapped(model, PaidOnce(Prompts(), calls))

    async def count_calls() -> int:
        with meter() as used:
            await paying.ask(DECOMPOSE, DecomposeIn(question="q"))
        return used.measure_cost().calls

    assert await asyncio.gather(*(count_calls() for _ in range(3))) == [2, 2, 2]
    assert len(model.calls) == 1


async def test_replies_of_the_extractive_model_depend_on_its_code(calls, package):
    model = ScriptedModel(ROLES, name="extractive")
    for text in ("one", "two"):
        package("language/extractive/pronouns.py", text)
        for _ in range(2):
            await Wrapped(model, PaidOnce(Prompts(), calls)).ask(GIST, GistIn(text="t"))
    assert len(model.calls) == 2


@pytest.mark.parametrize("stored", [{"gist": "m"}, {"memory": "<string>"}], ids=["another type", "a fault"])
async def test_a_stored_reply_that_fits_no_longer_is_paid_again(calls, model, stored):
    paying = Wrapped(model, PaidOnce(Prompts(), calls))
    given = GistIn(text="The keeper put out the light at nine.")
    text = json.dumps({"reply": stored, "paid": []})
    await calls.keep(PaidOnce(Prompts(), calls).make_key(model, GIST, given), role="gist", model=model.name, reply=text)
    with meter() as used:
        assert (await paying.ask(GIST, given)).memory == KEPT
    assert (len(model.calls), used.measure_cost().calls, used.reused) == (1, 2, 0)
    assert (await paying.ask(GIST, given)).memory == KEPT
    assert len(model.calls) == 1


async def test_each_system_is_charged_for_its_layers_whichever_ran_first(evaluate, tmp_path):
    given = {"model": ScriptedModel(ROLES), "out": tmp_path / "together"}
    together = (await evaluate("hipporag2", "associative", **given)).builds
    assert {name: build["calls"] for name, build in together.items()} == {"hipporag2": 10, "associative": 5}
    alone = (await evaluate("associative", model=ScriptedModel(ROLES), out=tmp_path / "alone")).builds
    for name in COUNTED:
        assert alone["associative"][name] == together["associative"][name]


@pytest.fixture
def openie(dataset, tmp_path):
    """The dataset with triples of its documents."""
    path = tmp_path / "openie.jsonl"
    rows = [
        {"id": document.id, "entities": ["Ada Marsh"], "triples": [["Ada Marsh", "kept", f"lighthouse {document.id}"]]}
        for document in dataset.documents
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return replace(dataset, openie=path)


@pytest.mark.parametrize(
    ("system", "extractions", "notes"),
    [
        ("hipporag2", 0, []),
        ("cogitorag", 8, ["asked the model: the given triples are of passages"]),
    ],
)
async def test_given_extractions_replace_calls_but_for_a_graph_of_gists(evaluate, openie, system, extractions, notes):
    model = ScriptedModel(ROLES)
    results = await evaluate(system, dataset=openie, model=model)
    assert [row.error for row in results.rows] == [None] * 4
    assert sum(call.role.startswith("extract") for call in model.calls) == extractions
    assert results.builds[system]["notes"] == notes
    assert ("given triples" in write_markdown(tabulate(results))) == bool(notes)


async def test_retrieval_alone_leaves_out_systems_whose_graph_the_extraction_file_do_not_fit(evaluate, openie):
    model = ScriptedModel(ROLES)
    for _ in range(2):  # a rerun gives the same reason
        results = await evaluate("naive", "cogitorag", dataset=openie, model=model, **RANKED)
        assert results.systems == ("naive",)
        reason = "the given triples are of passages, and graph:gists-triples-in-2-calls is not"
        assert make_json(tabulate(results))["refused"] == {"cogitorag": reason}
    assert model.calls == []
    with pytest.raises(UsageError, match="cogitorag cannot be compared here"):
        await evaluate("cogitorag", dataset=openie, model=model, **RANKED)


async def test_fallbacks_stand_in_the_table(evaluate):
    inventing = {"memory": "Percival Zweig kept it in 1877."}
    roles = {
        **ROLES,
        "gist": lambda given: inventing,
        "restate": lambda given: {},
        "decompose": lambda given: BadReply("no JSON"),
    }
    model = ScriptedModel(roles)
    results = await evaluate("naive", "cogitorag", model=model)
    whole = {"question asked whole": 1, "ranked by cosine alone": 1}
    assert [row.fallbacks for row in results.rows] == [{}] * 4 + [whole] * 4
    assert [call.role for call in model.calls].count("decompose") == 4  # the ranking does not ask again
    assert results.builds["cogitorag"]["fallbacks"] == {"gists": 5}
    assert "by kind or layer: question asked whole 4, ranked by cosine alone 4, gists 5." in write_markdown(
        tabulate(results)
    )
