"""Systems without one retriever of their own: tables measure what the answering call was shown, and say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tomewise.errors import UsageError
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.report import write_csv, write_latex, write_markdown
from tomewise.evaluate.results import tabulate
from tomewise.evaluate.running import run
from tomewise.recall.flat import Everything
from tomewise.systems.kit import Kit, System, answer_once
from tomewise.systems.registry import assemble
from tomewise.tome.tome import Tome
from tomewise.types import Document

RANKED = (find_metric("recall@2"),)


def several(kit: Kit) -> System:
    """A loop that shows the first two passages, and says nothing of a retriever."""
    return System(loop=answer_once(kit, Everything(kit.store), 2, 500, selection="as found").loop)


async def test_without_a_retriever_tables_measure_what_the_answer_saw(experiment, tmp_path):
    results = await run(experiment((), variants=("naive", several), metrics=RANKED), tmp_path)
    rows = {(row.system, row.item.id): row for row in results.rows}
    assert {row.ranked_by for row in results.rows if row.system == "several"} == {"shown"}
    assert {row.ranked_by for row in results.rows if row.system == "naive"} == {"retriever"}
    # It is shown d0 and d1 for every question over all documents; the nearer one ranks first.
    assert [place.document for place in rows["several", "q1"].prediction.ranked] == ["d1", "d0"]
    assert [place.document for place in rows["several", "q0"].prediction.ranked] == ["d0", "d1"]
    table = tabulate(results, baseline="naive")
    naive, shown = table.lines
    assert (naive.cells["recall@2"].value, shown.cells["recall@2"].value) == (1.0, 0.75)
    assert write_csv(table).splitlines()[2].split(",")[5] == "shown"
    for text in (write_markdown(table), write_latex(table)):
        assert "several: without one retriever of its own" in text
    assert "75.0§" in write_markdown(table)
    assert "100.0§" not in write_markdown(table)


async def test_rankings_of_two_kinds_are_not_tested_against_each_other(experiment, tmp_path, dataset):
    metrics = (*RANKED, find_metric("f1"))
    items = tuple(replace(dataset.items[n % 3], id=f"q{n:02}") for n in range(12))
    made = experiment(
        (), variants=("naive", "naive limit=1", several), dataset=replace(dataset, items=items), metrics=metrics
    )
    _, limited, shown = tabulate(await run(made, tmp_path), baseline="naive").lines
    assert limited.cells["recall@2"].p is not None
    assert shown.cells["recall@2"].p is None
    assert shown.cells["f1"].p is not None


async def test_retrieval_alone_leaves_out_a_system_without_a_retriever(experiment, tmp_path):
    made = experiment((), variants=("naive", several), retrieval_only=True, metrics=RANKED)
    results = await run(made, tmp_path)
    assert results.systems == ("naive",)
    assert "no retriever of its own" in results.refused["several"]


def test_comorag_has_a_retriever_only_where_one_layer_is_left(here):
    with Tome.open(here / "m.tome", embedder="hash") as tome:
        tome.add(Document(id="d", text="Ada kept the light."))
        assert assemble("comorag", tome.kit).retriever is None
        assert assemble("comorag", tome.kit, semantic=0, episodic=0).retriever is not None
        assert assemble("raptor+probe", tome.kit).retriever is not None
        with pytest.raises(UsageError, match="several has no retriever of its own"):
            tome.search("light", system=several)
