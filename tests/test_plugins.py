"""Parts that packages bring through entry points, and parts that a program registers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from unittest.mock import Mock

import pytest
from tests.installed_plugin import forget_parts, write_metadata

import tomewise
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import MissingDependency, PartError, UnknownName, UsageError
from tomewise.evaluate.datasets import read_dataset
from tomewise.evaluate.judges import find_judge
from tomewise.evaluate.metrics import find_metric
from tomewise.language.choose_model import check_models, choose_model
from tomewise.language.roles import find_outside_roles
from tomewise.parts import (
    CallCount,
    Dataset,
    Dense,
    Event,
    Item,
    Judge,
    MappedLayer,
    Metric,
    PassageIn,
    Question,
    Recall,
    Role,
    System,
    answer_once,
)
from tomewise.systems.from_passages import hybrid, naive
from tomewise.systems.registry import find_declaration
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document

MODULE = '''
from tomewise.parts import Dense, Kit, System, answer_once
from tomewise.testing import ScriptedModel

def few(kit: Kit, *, limit: int = 1) -> System:
    """Show one passage."""
    return answer_once(kit, Dense(kit.store, kit.embedder), limit=limit, context=500)

def model(name, *, embedder, **settings):
    return ScriptedModel({"answer": lambda _: {"answer": name}}, name=f"echo:{name}")
'''
POINTS = {
    "tomewise.systems": {"few": "mine_parts:few", "bad": "mine_parts:nowhere", "naive": "mine_parts:few"},
    "tomewise.models": {"echo": "mine_parts:model"},
}


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    forget_parts(monkeypatch, "mine_parts")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package: one with a part of each kind, of which one does not exist, or one of another text."""
    folder = tmp_path / "site"
    monkeypatch.syspath_prepend(folder)

    def install(text: str = MODULE, points: Mapping[str, Mapping[str, str]] = POINTS, name: str = "mine-parts") -> None:
        write_metadata(folder, name, points)
        (folder / "mine_parts.py").write_text(text)

    install()
    return install


def test_a_package_brings_parts_to_the_command_which_names_the_broken_one(command, package, here):
    (here / "log.txt").write_text("Ada kept the light of the tower.")
    assert command("add", "log.txt").code == 0
    ran = command("ask", "Who kept the light?", "--system", "few limit=1", "--model", "echo:Ada", "--json")
    answer = json.loads(ran.out)
    assert (answer["text"], answer["system"], answer["model"]) == ("Ada", "few limit=1", "echo:Ada")
    assert "few" in [row["name"] for row in json.loads(command("systems", "--json").out)]
    ran = command("ask", "Who?", "--system", "feew")
    assert (ran.code, "did you mean 'few'" in ran.err) == (2, True)
    rows = [row for row in json.loads(command("plugins", "--json").out) if row["package"] == "mine-parts"]
    assert [row["name"] for row in rows] == ["bad", "few", "naive", "echo"]
    assert [row["name"] for row in rows if row["problem"]] == ["bad"]
    assert "mine-parts" in command("plugins").out
    ran = command("ask", "Who?", "--system", "bad")
    assert (ran.code, ran.err.count("\n"), "update or uninstall mine-parts" in ran.err) == (5, 1, True)
    assert "uninstall mine-parts" in " ".join(command("systems").out.split())


def test_parts_are_found_by_their_names(package, tmp_path):
    assert find_declaration("naive").recipe is naive, "a plugin replaces no system of ours"
    tomewise.register("metrics", "length", Metric("length", "answers", len))
    tomewise.register("judges", "praise", Judge("praise", len))
    item = Item(id="q", question=Question(text="Who?"), answers=("Ada",))
    tomewise.register("layouts", "mine", lambda folder: Dataset(name="mine", documents=(), items=(item,)))
    tomewise.register("embedders", "small", lambda name: HashEmbedder(int(name)))
    assert (find_metric("length").name, find_judge("praise").name) == ("length", "praise")
    assert read_dataset("mine", tmp_path).items == (item,)
    assert choose_embedder("small:8").dimensions == 8
    check_models("echo:x", {}, None)
    assert choose_model("echo:x", embedder=HashEmbedder()).name == "echo:x"
    with pytest.raises(MissingDependency, match=r"the plugin 'bad' of mine-parts \(tomewise.systems\)"):
        find_declaration("bad")


@pytest.mark.parametrize(
    ("place", "code", "message"),
    [
        ("mine_parts:nowhere", 5, "update or uninstall mine-parts"),
        ("mine_parts:length", 5, "not a function of a path"),
        ("mine_parts:fail", 3, "the reader 'odd' of mine-parts failed: KeyError: 'read'"),
    ],
)
def test_a_broken_reader_names_its_package(place, code, message, command, package, here):
    package(MODULE + "\nlength = 3\ndef fail(path):\n    return {}['read']\n", {"tomewise.readers": {"odd": place}})
    (here / "a.odd").write_text("Ada kept the light.")
    ran = command("add", "a.odd")
    assert (ran.code, ran.err.count("\n"), message in ran.err) == (code, 1, True)


def test_two_packages_of_one_name_are_refused(package):
    package(MODULE, {"tomewise.systems": {"few": "mine_parts:few"}}, "more-parts")
    with pytest.raises(UsageError, match=r"several packages bring 'few'.*mine-parts, more-parts"):
        find_declaration("few")


def test_a_program_registers_a_system(tome):
    tomewise.register("systems", "mine", lambda kit, *, limit=1: hybrid(kit, limit=limit))
    tome.add(*(Document(id=name, text=f"{name} was here.") for name in ("Ada", "Ida", "Tom")))
    answer = tome.ask("Who?", system="mine limit=2")
    assert (answer.system, len(answer.evidence)) == ("mine limit=2", 2)


@pytest.mark.parametrize(
    ("kind", "name", "error", "message"),
    [
        ("system", "mine", UnknownName, "did you mean 'systems'"),
        ("systems", "my own", UsageError, "without blanks"),
        ("systems", "", UsageError, "cannot name a part"),
        ("readers", "logbook", UsageError, "runs in a process of its own"),
    ],
)
def test_what_cannot_be_registered(kind, name, error, message):
    with pytest.raises(error, match=message):
        tomewise.register(kind, name, object())


@pytest.mark.parametrize(
    ("kind", "name", "use"),
    [
        ("systems", "hybrid", find_declaration),
        ("loops", "probe", lambda name: find_declaration(f"naive+{name}")),
        ("metrics", "f1", find_metric),
        ("judges", "acc-l", find_judge),
    ],
)
def test_a_part_under_a_name_of_ours_is_refused_when_it_would_be_used(kind, name, use):
    tomewise.register(kind, name, object())
    with pytest.raises(UsageError, match=f"'{name}' is one of Tomewise's own {kind}"):
        use(name)


@pytest.mark.parametrize(
    ("kind", "use"),
    [
        ("systems", find_declaration),
        ("recalls", lambda name: find_declaration(f"{name}+once")),
        ("loops", lambda name: find_declaration(f"naive+{name}")),
        ("roles", lambda _: find_outside_roles()),
        ("metrics", find_metric),
        ("judges", find_judge),
        ("embedders", choose_embedder),
        ("layouts", read_dataset),
        ("models", lambda name: choose_model(name, embedder=HashEmbedder())),
    ],
)
def test_a_part_of_the_wrong_kind_is_named(kind, use):
    tomewise.register(kind, "odd", 3)
    with pytest.raises(UsageError, match=r"'odd'.*3"):
        use("odd")


class Broken:
    """A retriever, an embedder and a layer whose methods fail."""

    name, dimensions, max_tokens, tokenizer = "broken:", 8, 100, None
    calls = CallCount("0", 0)
    needs = ()

    async def retrieve(self, query, limit, *, within=None):
        return {}["retrieved"]

    def embed(self, texts):
        raise OSError("no network")


def find_broken(kit):
    return Recall(retriever=Broken())


def recall_nothing(kit):
    return {}["wired"]


def loop_once(kit, recall, *, turns: int = 1):
    class Loop:
        calls = CallCount("0", 0)

        async def run(self, question):
            yield Event(name="turn", step=1, summary="one turn")
            raise RuntimeError("looped")

    return System(loop=Loop())


class BrokenLayer(MappedLayer):
    name = "broken"
    role = Role("retitle", PassageIn, PassageIn, prompt="Retitle {{ text }}", play=lambda given: given)

    def make_input(self, passage):
        return passage.nothing

    def make_nodes(self, passage, reply):
        return []


def refuse(kit):
    raise UsageError("the light is out")


@pytest.fixture
def faulty(here):
    """A tome, and parts that fail when they are used."""
    tomewise.register("recalls", "empty", find_broken)
    tomewise.register("recalls", "unwired", recall_nothing)
    tomewise.register("loops", "turning", loop_once)
    tomewise.register("layers", "broken", BrokenLayer)
    tomewise.register("systems", "refusing", refuse)
    with Tome.open(here / "m.tome", embedder="hash") as tome:
        tome.add(Document(id="log", text="Ada kept the light. Nobody asked her why."))
        yield tome


@pytest.mark.parametrize(
    ("use", "named", "cause"),
    [
        (lambda tome: tome.ask_many(["Who?"], system="empty+once"), "the recall 'empty' failed", KeyError),
        (lambda tome: tome.search("Who?", system="empty+once"), "the recall 'empty' failed", KeyError),
        (lambda tome: tome.ask("Who?", system="unwired+once"), "the recall 'unwired' failed", KeyError),
        (lambda tome: tome.ask("Who?", system="naive+turning"), "the loop 'turning' failed", RuntimeError),
        (lambda tome: tome.build(layers="broken"), "the layer 'broken' failed", AttributeError),
    ],
)
def test_a_fault_in_a_part_names_the_part(faulty, use, named, cause):
    with pytest.raises(PartError, match=named) as caught:
        use(faulty)
    assert isinstance(caught.value.__cause__, cause)


def fail_to_hear(_):
    raise KeyError("heard")


class Shared:
    def __init__(self, kit):
        self.retriever = Dense(kit.store, kit.embedder)

    async def retrieve(self, query, limit, *, within=None):
        found = await self.retriever.retrieve(query, limit, within=within)
        return found if query == "Who?" else {}[query]


def test_a_part_is_not_blamed_for_what_others_raise(faulty, here, monkeypatch):
    tomewise.register("systems", "shared", lambda kit: answer_once(kit, Shared(kit), limit=3, context=500))
    with pytest.raises(PartError, match="the system 'shared' failed"):
        faulty.ask("What?", system="shared")
    with pytest.raises(KeyError, match="heard"):
        faulty.ask("Who?", system="shared", on_event=fail_to_hear)
    model = ScriptedModel({"answer": lambda _: KeyError("asked")})
    with Tome.open(here / "m.tome", model=model, embedder="hash") as tome, pytest.raises(KeyError, match="asked"):
        tome.ask("Who?", system="shared")
    for error in (OSError(28, "No space left on device"), TypeError("a bug of ours")):
        monkeypatch.setattr(HashEmbedder, "embed", Mock(side_effect=error))
        with pytest.raises(type(error)) as caught:
            faulty.ask("Who?", system="shared")
        assert caught.value is error


def test_an_error_of_ours_in_a_part_stays_as_it_is(faulty):
    with pytest.raises(UsageError, match="the light is out"):
        faulty.ask("Who?", system="refusing")


@pytest.mark.parametrize(
    ("kind", "make", "error", "message"),
    [
        ("models", lambda name: 3, UsageError, "must take 1 by position, and by keyword embedder, limit, timeout"),
        ("models", lambda name, **settings: 3, UsageError, "made 3, which is not a LanguageModel"),
        ("models", lambda name, **settings: {}[name], PartError, "the model 'odd' failed"),
        ("embedders", lambda: 3, UsageError, "must take 1 by position"),
        ("embedders", lambda name: 3, UsageError, "made 3, which is not an Embedder"),
    ],
)
def test_a_wrong_model_or_embedder_is_named(kind, make, error, message):
    tomewise.register(kind, "odd", make)
    with pytest.raises(error, match=message):
        choose_model("odd:x", embedder=HashEmbedder()) if kind == "models" else choose_embedder("odd:x")
