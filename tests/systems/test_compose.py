from __future__ import annotations

import pytest
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import UnknownName, UsageError
from tomewise.loops.evolve import Evolve
from tomewise.loops.once import Once
from tomewise.loops.probe import Probe
from tomewise.recall.comparing import ComparedRecall
from tomewise.recall.derived import TreeTraversal
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.compose import compose
from tomewise.systems.declaration import read_declaration
from tomewise.systems.from_passages import naive
from tomewise.systems.kit import Kit, once
from tomewise.systems.recipe_settings import list_settings
from tomewise.systems.registry import assemble, find_declaration, find_recipe, list_ablations, parse_variant
from tomewise.testing.scripted import ScriptedModel


@pytest.fixture
def kit(tmp_path):
    store = SqlStore.open(tmp_path / "a.tome")
    put_texts(store, HashEmbedder(), "story", "Ada kept the light.")
    yield Kit(store, ScriptedModel({}), HashEmbedder())
    store.close()


@pytest.mark.parametrize(
    ("text", "loop", "layers"),
    [
        ("associative+probe", Probe, ["graph:passages-triples"]),
        ("cogitorag+probe source=passages carrier=passages cycles=2", Probe, ["graph:passages-triples"]),
        ("raptor+once search=traversal limit=3", Once, ["tree"]),
        ("naive+probe", Probe, []),
        ("cam+probe", Probe, ["schemata"]),
        ("cam+evolve rounds=2 selections=3", Evolve, ["schemata"]),
    ],
)
def test_the_recall_of_one_system_in_a_loop(kit, text, loop, layers):
    system = parse_variant(text).wire(kit)
    assert isinstance(system.loop, loop)
    assert [layer.name for layer in system.layers] == layers


def test_the_settings_of_both_reach_their_parts(kit):
    assert isinstance(assemble("associative+probe", kit).retriever, ComparedRecall)
    assert isinstance(assemble("raptor+once", kit, search="traversal").retriever, TreeTraversal)
    settings = list_settings(find_recipe("raptor+probe"))
    assert list(settings) == ["search", "probes", "cycles", "selection", "limit", "context"]
    with pytest.raises(UsageError, match=r"raptor\+probe: cycles must be greater than or equal to 0"):
        parse_variant("raptor+probe cycles=-1")
    assert parse_variant("raptor+probe:traversal").settings == {"search": "traversal"}
    assert list_ablations("hipporag2+probe") == {"without recognition": {"recognition": "none"}}
    assert find_declaration("raptor+once").summary.startswith("One answer")


def compose_parts(name, recall, loop):
    """The recipe of two functions."""
    return compose(name, read_declaration(recall), read_declaration(loop)).recipe


def test_a_setting_that_both_have_is_an_error(kit):
    def recall(kit, *, depth=1): ...

    def loop(kit, system, *, depth=1): ...

    with pytest.raises(UsageError, match="both have the setting 'depth'"):
        compose_parts("own+loop", recall, loop)
    settings = list_settings(compose_parts("own+once", recall, once))
    assert list(settings) == ["depth", "selection", "limit", "context"]


def test_a_loop_takes_a_kit_and_a_recall():
    def of_kit_alone(kit, *, depth=1): ...

    def by_position(kit, recall, /, *, depth=1): ...

    with pytest.raises(UsageError, match="it must take a Kit and a Recall by position"):
        compose_parts("naive+loop", naive, of_kit_alone)
    assert "depth" in list_settings(compose_parts("naive+loop", naive, by_position))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("raptor+prob", UnknownName, "did you mean 'probe'"),
        ("rapto+probe", UnknownName, "did you mean 'raptor'"),
        ("raptor+probe+once", UnknownName, "is not a loop"),
        ("comorag+once", UsageError, "searches several layers at once"),
    ],
)
def test_pairs_that_do_not_exist(name, error, message):
    with pytest.raises(error, match=message):
        find_recipe(name)
