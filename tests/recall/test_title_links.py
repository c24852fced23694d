from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.recall.graph_tomes import NAMES, build_store, quiet
from tests.recall.test_rewriting import EMBEDDER, add_titled, list_facts

from tomewise.memory.building import build
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.recall.title_links import TitleLinks, strip_title
from tomewise.store.lookups import read_edges
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing.scripted import ScriptedModel


def weigh(links: TitleLinks, store: SqlStore) -> dict[tuple[str, str], float]:
    rows = read_edges(store, f"seen-in:{NAMES.entities}").rows.astype(np.int64)
    entities, passages = store.nodes(NAMES.entities), store.passages()
    weights = links.weigh(rows[:, 0], rows[:, 1])
    return {
        (entities[entity].text, passages[passage].document): weight
        for entity, passage, weight in zip(rows[:, 0].tolist(), rows[:, 1].tolist(), weights.tolist(), strict=True)
    }


async def rebuild(store: SqlStore) -> None:
    await build([GraphLayer(store, ScriptedModel({"extract_facts": list_facts}), EMBEDDER)], store, quiet)


async def test_an_entity_weighs_more_in_the_passage_that_has_it_as_title(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "a.tome")
    add_titled(store, "Ida Poe (painter)", "Ida Poe\nGhent\nPoe\npainter\nIda Poe (painter)")
    await rebuild(store)
    links = TitleLinks(store, NAMES)
    first = weigh(links, store)
    title = "Ida Poe (painter)"
    assert first == {
        ("ida poe", title): 3,
        ("ida poe painter", title): 3,
        ("poe", title): 2,
        ("painter", title): 2,
        ("ghent", title): 1,
    }
    add_titled(store, "Ghent", "Ghent\nIda Poe")
    await rebuild(store)
    assert weigh(links, store) == first | {("ghent", "Ghent"): 3, ("ida poe", "Ghent"): 1}
    with store.write() as change:
        change.remove_document(title)
    await rebuild(store)
    assert (
        weigh(links, store)
        == weigh(TitleLinks(store, NAMES), store)
        == {("ghent", "Ghent"): 3, ("ida poe", "Ghent"): 1}
    )
    store.close()


async def test_only_new_links_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await build_store(tmp_path, "Ida Poe\nGhent")
    links = TitleLinks(store, NAMES)
    assert set(weigh(links, store).values()) == {1.0}, "without titles all links are equal"
    rows = read_edges(store, f"seen-in:{NAMES.entities}").rows.astype(np.int64)
    monkeypatch.setattr(store, "passage_order", None)
    assert links.weigh(rows[:, 0], rows[:, 1]).tolist() == [1.0, 1.0]
    store.close()


@pytest.mark.parametrize(
    ("title", "bare"),
    [("Ghent (city)", "Ghent"), ("Ghent", "Ghent"), ("(Who) Ghent", "(Who) Ghent"), ("(1911)", "(1911)"), ("", "")],
)
def test_a_bare_title_has_no_parenthesis_at_its_end(title: str, bare: str) -> None:
    assert strip_title(title) == bare
