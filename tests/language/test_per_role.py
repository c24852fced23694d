"""A model per role: each role reaches its own model, with that model's limit, window, name and price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, reply_with

from tomewise import Document, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BudgetExceeded, UnknownName, UsageError
from tomewise.language import roles
from tomewise.language.budget import Budgeted
from tomewise.language.cached import Cached
from tomewise.language.chat import ChatModel
from tomewise.language.choose_model import check_models, choose_model
from tomewise.language.forwarding import ModelPerRole
from tomewise.language.per_role import find_name, find_window, join_names
from tomewise.language.prompts import Prompts
from tomewise.store.records import BUILDS
from tomewise.testing import check_language_model
from tomewise.testing.scripted import ScriptedModel

FUSED = roles.FuseIn(question="Who?", cues=["Ada"])
CUE = {"cue": "Ada"}
ANSWER = {"answer": "Ada", "quotes": [{"label": "E1", "quote": "put out the light"}]}
LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")


def make_model(name: str, *, window: int = 1000, **options: Any) -> ScriptedModel:
    script = {"fuse": lambda _: CUE, "answer": lambda _: ANSWER, "gist": lambda given: {"memory": given.text}}
    return ScriptedModel(script, name=name, window=window, **options)


async def test_each_role_reaches_its_own_model() -> None:
    small, large = make_model("small"), make_model("large", window=9000)
    model = ModelPerRole(small, {"fuse": large})
    await check_language_model(model, roles.FUSE, FUSED)
    assert [call.role for call in large.calls] == ["fuse"]
    assert (model.name, model.window) == ("small fuse=large", 1000)
    for wrapper in (model, Budgeted(model), Cached(model, Prompts(), None)):  # type: ignore[arg-type]
        assert [find_name(wrapper, role) for role in (roles.FUSE, roles.GIST)] == ["large", "small"]
        assert [find_window(wrapper, role) for role in (roles.FUSE, roles.GIST)] == [9000, 1000]
    assert join_names(model, (roles.GIST, roles.FUSE, roles.SUMMARISE)) == "small, large"


def test_the_key_names_the_model_of_the_role() -> None:
    def key(model: Any) -> str:
        return Cached(model, Prompts(), None).make_key(roles.FUSE, FUSED)  # type: ignore[arg-type]

    small, large = make_model("small"), make_model("large")
    assert key(ModelPerRole(small, {"fuse": large})) == key(large)
    assert key(ModelPerRole(small, {"answer": large})) == key(small)


async def test_a_budget_is_over_all_models() -> None:
    model = Budgeted(ModelPerRole(make_model("small"), {"fuse": make_model("large")}), calls=1)
    await model.ask(roles.FUSE, FUSED)
    with pytest.raises(BudgetExceeded):
        await model.ask(roles.GIST, roles.GistIn(text="Ada"))


def test_equal_names_are_one_model_and_so_share_one_limit() -> None:
    names = {"answer": "openai:b", "probe": "openai:b", "gist": "openai:a", "fuse": "anthropic:c"}
    model: Any = choose_model("openai:a", names, embedder=HashEmbedder(), base_url="http://127.0.0.1:1/v1", limit=3)
    models = model._models
    assert models["answer"] is models["probe"]
    assert models["gist"] is model._model
    assert [each._limit for each in models.values()] == [3, 3, 3, 3]
    assert [each._spec.address for each in models.values()] == [*["http://127.0.0.1:1/v1"] * 3, None]


def test_a_misspelt_role_or_model_is_named() -> None:
    with pytest.raises(UnknownName, match="did you mean 'answer'"):
        check_models("extractive", {"anwser": "openai:b"}, None)
    with pytest.raises(UsageError, match="does not name a model"):
        check_models("extractive", {"answer": "b"}, None)
    with pytest.raises(UsageError, match="did you mean 'openai:gpt-4o'"):
        check_models("openai/gpt-4o", {}, None)


def test_a_tome_asks_the_model_of_the_role_and_records_it(here: Path) -> None:
    small, large = make_model("small"), make_model("large")
    with Tome.open(here / "a.tome", embedder="hash", model=small, models={"gist": large}) as tome:
        tome.add(LOG)
        (estimate,) = [each for each in tome.estimate("cogitorag") if each.layer == "gists"]
        assert estimate.model == "large"
        answer = tome.ask("Who put out the light?")
        assert (answer.text, answer.model) == ("Ada", "small gist=large")
    assert [call.role for call in small.calls] == ["answer"]


def test_the_build_record_and_its_note_name_the_model_of_the_role(here: Path) -> None:
    def facts(given: Any) -> dict[str, Any]:
        return {"entities": ["Ada Marsh"], "triples": []}

    def build(small_name: str, models: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        small = ScriptedModel({"gist": lambda given: {"memory": given.text}, "extract_facts": facts}, name=small_name)
        with Tome.open(here / "a.tome", embedder="hash", model=small, models=models) as tome:
            tome.add(LOG)
            report = tome.build("cogitorag")
            assert tome.store.notes(BUILDS)["gists"]["model"] == "large"
        return {layer.layer: layer.notes for layer in report.layers}

    assert not any(build("a", {"gist": make_model("large")}).values())
    notes = build("b", {"gist": make_model("large")})
    assert notes["gists"] == ()
    assert any("a built what was there" in note for name, each in notes.items() if name != "gists" for note in each)


@pytest.fixture
def server() -> Any:
    with OpenAIServer(lambda _: reply_with(json.dumps(ANSWER))) as running:
        yield running


def test_the_command_takes_a_model_for_a_role(here: Path, server: OpenAIServer, command: Any) -> None:
    (here / "log.txt").write_text(LOG.text)
    command("add", "log.txt")
    words = ("ask", "Who put out the light?", "--base-url", server.url, "--json")
    ran = command(*words, "--model", "openai:small", "--model", "answer=openai:large")
    assert json.loads(ran.out)["text"] == "Ada"
    assert [request["model"] for request in server.requests] == ["large"]
    assert "has two models" in command(*words, "--model", "openai:a", "--model", "openai:b").err
    assert "did you mean 'answer'" in command(*words, "--model", "anwser=openai:b").err


def test_the_loop_heeds_the_window_of_the_answering_model() -> None:
    from tomewise.loops.evidence import fit_to_window
    from tomewise.types import Evidence

    pieces = [Evidence(node=f"n{i}", layer="passages", text="word " * 200, score=1.0, sources=()) for i in range(20)]

    def give(evidence: Any) -> roles.AnswerIn:
        shown = [roles.Shown(label="E1", text=piece.text, title="", kind="") for piece in evidence]
        return roles.AnswerIn(question="Who?", evidence=shown)

    small, large = make_model("small", window=3000), make_model("large", window=100_000)
    role = roles.ANSWER
    assert len(fit_to_window(pieces, ModelPerRole(small, {"answer": large}), role, give)) == 20
    assert len(fit_to_window(pieces, ModelPerRole(large, {"answer": small}), role, give)) < 20


def test_a_chat_model_says_whether_it_samples_for_its_role() -> None:
    warm = ChatModel("openai:warm", temperature=0.7)
    model = Cached(ModelPerRole(make_model("cold"), {"fuse": warm}), Prompts(), None)  # type: ignore[arg-type]
    assert (model.samples(roles.FUSE), model.samples(roles.GIST)) == (True, False)
