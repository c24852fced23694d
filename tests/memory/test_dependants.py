"""What a removal would remove: the count that is given before is that of the removal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tomewise.tome.tome import Tome
from tomewise.types import Document

TEXTS = {
    "light": "Ada Marsh put out the light at nine. Ada Marsh met Tom Reed at the harbour in May.",
    "letter": "The clerk forged the letter in May. Ada Marsh knew nothing of the letter.",
    "boat": "Tom Reed rowed the boat to the harbour. The boat belonged to the clerk.",
}


@pytest.mark.parametrize("system", ["comorag", "cogitorag", "hgmem", "graphrag", "cam", "memtree", "read_agent"])
@pytest.mark.parametrize("document", TEXTS)
def test_the_count_is_that_of_the_removal(system: str, document: str, tmp_path: Path):
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        tome.add(*(Document(id=id, text=text) for id, text in TEXTS.items()))
        tome.build(system)
        before = {name: layer["nodes"] for name, layer in tome.store.layers().items()}
        keys = list(tome.store.passages(documents=[document]))
        foreseen = tome.store.find_dependants(keys)
        report = tome.remove(document)
        assert sum(foreseen.values()) == report.derived
        after = {name: layer["nodes"] for name, layer in tome.store.layers().items()}
        lost = {name: count - after.get(name, 0) for name, count in before.items() if name != "passages"}
        assert {name: count for name, count in lost.items() if count} == foreseen


def test_nothing_depends_on_passages_alone(tmp_path: Path):
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        tome.add(Document(id="light", text=TEXTS["light"]))
        assert tome.store.find_dependants(tome.store.passages(documents=["light"])) == {}
