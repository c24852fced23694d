from __future__ import annotations

from pathlib import Path

import pytest
from tests.recall.graph_tomes import NAMES, build_store

from tomewise.recall.mentions import find_named_entities

TEXT = "Ida Poe\nPoe\nGhent\nstate of Ghent\nboat\n1911"


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Where was Ida Poe born?", {"ida poe"}),
        ("Where was Poe born, and what of the state of Ghent?", {"poe", "state of ghent"}),
        ("Which boat did Ghent buy in 1911?", {"ghent", "1911"}),
        ("Poe?", set()),  # a capital that opens the question shows nothing
        ("where was ida poe born?", {"ida poe"}),  # as people type
        ("which boat is in ghent?", set()),  # one word in small letters may be no name
        ("", set()),
    ],
)
async def test_named_entities(tmp_path: Path, question: str, names: set[str]) -> None:
    store = await build_store(tmp_path, TEXT)
    found = find_named_entities(store, NAMES, question)
    assert set(found.values()) == names
    assert {node.text for node in store.nodes_at(found).values()} == names
    store.close()
