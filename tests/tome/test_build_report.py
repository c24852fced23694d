"""The report of a build as programs read it."""

from __future__ import annotations

from tomewise.tome.reports import BuildReport, describe_build
from tomewise.tome.tome import Tome
from tomewise.types import Document, LayerReport, Usage


def test_failures_name_the_places_of_their_passages(tmp_path):
    with Tome.open(tmp_path / "a.tome", embedder="hash", passage_tokens=32) as tome:
        tome.add(Document(id="letter.txt", text="Ada Marsh put out the light at nine. " * 12))
        key, passage = list(tome.store.passages().items())[1]
        gone = max(tome.store.passages()) + 1
        failed = {key: "no reply", gone: "refused"}
        report = BuildReport(layers=(LayerReport(layer="gists", failed=failed),), usage=Usage())
        [layer] = describe_build(report, tome.store).write()["layers"]
    assert passage.position == 1
    source = {"document": "letter.txt", "passage": passage.id, "position": 1}
    assert layer["failed"] == [
        {
            "node": key,
            "reason": "no reply",
            "sources": [source],
        },
        {"node": gone, "reason": "refused", "sources": []},
    ]
