from __future__ import annotations

import pytest
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import UsageError
from tomewise.loops.evolve import Evolve
from tomewise.loops.once import Once
from tomewise.loops.probe import Probe
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.kit import Kit, once, read_declaration
from tomewise.systems.recipe_settings import list_settings
from tomewise.systems.registry import compose, parse_variant
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
        ("cogitorag+probe source=passages carrier=passages cycles=2", Probe, ["graph:passages-triples-in-2-calls"]),
        ("raptor+once search=traversal limit=3", Once, ["tree"]),
        ("cam+evolve rounds=2 selections=3", Evolve, ["schemata"]),
    ],
)
def test_the_recall_of_one_system_in_a_loop(kit, text, loop, layers):
    system = parse_variant(text).wire(kit)
    assert isinstance(system.loop, loop)
    assert [layer.name for layer in system.layers] == layers


def test_both_say_what_they_do_and_how_they_differ_from_their_papers():
    declared = parse_variant("raptor+interleave").declaration
    assert declared.deviations.startswith("`interleave`: any recall can search")
    assert "`raptor`: random steps have fixed seeds" in declared.deviations
    assert declared.deviations in declared.description
    assert "`hybrid`: Cosine and BM25" in parse_variant("hybrid+interleave").declaration.about


def test_a_recall_and_a_loop_that_do_not_fit_are_an_error():
    def recall(kit, *, depth=1): ...

    def loop(kit, system, *, depth=1): ...

    def of_kit_alone(kit, *, depth=1): ...

    declared = read_declaration(recall)
    for taken, message in ((loop, "both have the setting 'depth'"), (of_kit_alone, "take a Kit and a Recall")):
        with pytest.raises(UsageError, match=message):
            compose("own+loop", declared, read_declaration(taken))
    settings = list_settings(compose("own+once", declared, read_declaration(once)).recipe)
    assert list(settings) == ["depth", "limit", "context"]
