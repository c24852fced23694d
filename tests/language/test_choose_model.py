"""Models by name, and a model per role: each role reaches its own model, with its limit, window, name and price."""

import asyncio
import json

import pytest
from tests.language.openai_server import OpenAIServer, reply_with

from tomewise import Document, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import ModelUnavailable, UnknownName, UsageError
from tomewise.language import roles
from tomewise.language.budget import ask_within_run
from tomewise.language.chat import ChatModel
from tomewise.language.choose_model import check_models, choose_model
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.price_list import find_price
from tomewise.language.spec import ModelSpec
from tomewise.language.wrapped import Wrapped, find_abilities, find_name, find_window, join_names
from tomewise.loops.evidence import fit_to_window
from tomewise.testing import check_language_model
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Evidence

EMBEDDER = HashEmbedder()
LOCAL = "http://127.0.0.1:1/v1"


def test_a_model_is_named_by_its_word_or_by_provider_and_model():
    assert isinstance(choose_model("extractive", embedder=EMBEDDER), ExtractiveModel)
    model = choose_model("openai:gpt-4o-mini", embedder=EMBEDDER, base_url=LOCAL, window=5000)
    assert isinstance(model, ChatModel)
    assert (model.name, model.window) == ("openai:gpt-4o-mini", 5000)
    assert choose_model("ollama:llama3.1:8b", embedder=EMBEDDER).name == "ollama:llama3.1:8b"


@pytest.mark.parametrize("spec", ["", "gpt-4o-mini", "openai:", ":x", "openai: gpt", "openai:a b", "nonsense"])
def test_a_malformed_name_shows_examples_and_the_whole_name_where_its_provider_is_known(spec):
    with pytest.raises(UsageError, match="openai:gpt-4o-mini") as caught:
        choose_model(spec, embedder=EMBEDDER)
    assert ("did you mean 'openai:gpt-4o-mini'" in str(caught.value)) == (spec == "gpt-4o-mini")


@pytest.mark.parametrize(
    ("name", "models", "error", "says"),
    [
        ("claude-sonnet-4-5", {}, UsageError, "did you mean 'anthropic:claude-sonnet-4-5'"),
        ("openai/gpt-4o", {}, UsageError, "did you mean 'openai:gpt-4o'"),
        ("extractive", {"answer": "b"}, UsageError, "does not name a model"),
        ("extractive", {"anwser": "openai:b"}, UnknownName, "did you mean 'answer'"),
    ],
)
def test_a_misspelt_role_or_model_is_named(name, models, error, says):
    with pytest.raises(error, match=says):
        check_models(name, models, None)


@pytest.mark.parametrize(
    ("name", "price"), [("openai:gpt-4o-mini", 0.75), ("openai:no-such-model", None), ("ollama:llama3.1", None)]
)
def test_prices_are_known_or_none(name, price):
    assert find_price(ModelSpec.parse(name), 1_000_000, 1_000_000) == (price and pytest.approx(price))


# ---------------------------------------------------------------- a model per role

FUSED = roles.FuseIn(question="Who?", cues=["Ada"])
ANSWER = {"answer": "Ada", "quotes": [{"label": "E1", "quote": "put out the light"}]}
LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")


def make_model(name, *, window=1000):
    script = {
        "fuse": lambda _: {"cue": "Ada"},
        "answer": lambda _: ANSWER,
        "gist": lambda given: {"memory": given.text},
        "extract_facts": lambda _: {"entities": ["Ada Marsh"], "triples": []},
    }
    return ScriptedModel(script, name=name, window=window)


async def test_each_role_reaches_its_own_model():
    small, large = make_model("small"), make_model("large", window=9000)
    model = Wrapped(small, models={"fuse": large})
    await check_language_model(model, roles.FUSE, FUSED)
    assert [call.role for call in large.calls] == ["fuse"]
    assert (model.name, model.window) == ("small fuse=large", 1000)
    for wrapper in (model, Wrapped(model, ask_within_run)):
        assert [find_name(wrapper, role) for role in (roles.FUSE, roles.GIST)] == ["large", "small"]
        assert [find_window(wrapper, role) for role in (roles.FUSE, roles.GIST)] == [9000, 1000]
    assert join_names(model, (roles.GIST, roles.FUSE, roles.SUMMARISE)) == "small, large"


async def test_equal_names_are_one_model_and_so_share_one_limit_and_one_address(here):
    names = {"answer": "openai:b", "fuse": "openai:b", "gist": "openai:a", "probe": "anthropic:c"}
    reply = reply_with(json.dumps({**ANSWER, "cue": "x", "memory": "m"}), delay=0.1)
    with OpenAIServer(lambda request: reply) as server:
        model = choose_model("openai:a", names, embedder=EMBEDDER, base_url=server.url, limit=1)
        await asyncio.gather(
            model.ask(roles.ANSWER, roles.AnswerIn(question="Who?")),
            model.ask(roles.FUSE, FUSED),
            model.ask(roles.GIST, roles.GistIn(text="x")),
        )
        with pytest.raises(ModelUnavailable, match="no key for anthropic:c"):  # the address is that of OpenAI alone
            await model.ask(roles.PROBE, roles.ProbeIn(question="Who?"))
        await find_abilities(model).close()
    assert sorted(request["model"] for request in server.requests) == ["a", "b", "b"]
    assert server.most_at_once == 2, "one request of each model"


def test_a_tome_asks_the_model_of_the_role_and_records_it(here):
    small, large = make_model("small"), make_model("large")
    with Tome.open(here / "a.tome", embedder="hash", model=small, settings={"models": {"gist": large}}) as tome:
        tome.add(LOG)
        (estimate,) = [each for each in tome.memory.estimate("cogitorag").layers if each.layer == "gists"]
        assert estimate.model == "large"
        answer = tome.ask("Who put out the light?")
        assert (answer.text, answer.model) == ("Ada", "small gist=large")
    assert [call.role for call in small.calls] == ["answer"]


def test_the_command_takes_a_model_for_a_role(here, command):
    (here / "log.txt").write_text(LOG.text)
    command("add", "log.txt")
    with OpenAIServer(lambda _: reply_with(json.dumps(ANSWER))) as server:
        words = ("ask", "Who put out the light?", "--base-url", server.url, "--json")
        ran = command(*words, "--model", "openai:small", "--model", "answer=openai:large")
        assert json.loads(ran.out)["text"] == "Ada"
        assert [request["model"] for request in server.requests] == ["large"]
        assert "has two models" in command(*words, "--model", "openai:a", "--model", "openai:b").err
        assert "did you mean 'answer'" in command(*words, "--model", "anwser=openai:b").err


def test_the_loop_heeds_the_window_of_the_answering_model():
    pieces = [Evidence(id=f"n{i}", layer="passages", text="word " * 200, score=1.0, sources=()) for i in range(20)]

    def count(model):
        def give(evidence):
            return roles.AnswerIn(question="Who?", evidence=[roles.Shown(label="E1", text=e.text) for e in evidence])

        return len(fit_to_window(pieces, model, roles.ANSWER, give))

    small, large = make_model("small", window=3000), make_model("large", window=100_000)
    assert count(Wrapped(small, models={"answer": large})) == 20
    assert count(Wrapped(large, models={"answer": small})) < 20


def test_a_chat_model_says_whether_it_samples_for_its_role():
    warm = ChatModel("openai:warm", temperature=0.7)
    model = Wrapped(make_model("cold"), models={"fuse": warm})
    assert [find_abilities(model, role).samples for role in (roles.FUSE, roles.GIST)] == [True, False]
