"""Experiments of papers: each row names a system, each data set is read and scored, and what is missing is named."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tomewise.errors import ReadingError, UnknownName, UsageError
from tomewise.evaluate.datasets import list_layouts
from tomewise.evaluate.judges import find_judge
from tomewise.evaluate.metrics import find_metric
from tomewise.evaluate.papers import PAPERS, find_paper, split_papers
from tomewise.evaluate.results import tabulate
from tomewise.evaluate.table import describe_rules
from tomewise.language.extractive import ExtractiveModel
from tomewise.loops.desk import FusingDesk
from tomewise.systems.kit import Kit
from tomewise.systems.registry import SYSTEMS, parse_variant
from tomewise.tome.tome import Tome

LAYOUTS = Path(__file__).parent / "datasets" / "layouts"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a tiny data set of every experiment, as it is published."""
    for each in (each for paper in PAPERS.values() for each in paper.data):
        shutil.copytree(LAYOUTS / each.layout, tmp_path / "data" / each.folder, dirs_exist_ok=True)
    return tmp_path / "data"


@pytest.mark.parametrize("name", PAPERS)
def test_every_row_metric_judge_and_layout_has_a_part(name: str) -> None:
    paper = find_paper(f"paper:{name}")
    assert paper.name == name
    assert "arXiv" in paper.paper
    assert len({parse_variant(system).name for system in paper.rows.values()}) == len(paper.rows)
    assert not paper.rows.keys() & paper.left_out.keys()
    for each in paper.data:
        assert [find_metric(metric).of_answer for metric in each.metrics] == [True] * len(each.metrics)
        assert [find_judge(judge).name for judge in each.judges] == list(each.judges)
        assert each.layout in list_layouts()
    assert bool(paper.judge) or not paper.needs_judge


@pytest.mark.parametrize("name", PAPERS)
def test_every_data_set_is_asked_and_scored_without_a_model(data: Path, tmp_path: Path, name: str) -> None:
    row, system = next(iter(PAPERS[name].rows.items()))
    paper = replace(PAPERS[name], rows={row: system})
    experiments = paper.make_experiments(data, embedder="hash", out=tmp_path / "out")
    assert list(experiments) == [each.name for each in paper.data]
    for each in paper.data:
        experiment = experiments[each.name]
        experiment.run()
        table = paper.make_table(each.name, experiment)
        (line,) = table.lines
        assert (line.system, line.failed, line.n > 0) == (parse_variant(system).name, 0, True)
        assert table.columns == (*each.metrics, *each.judges)
        assert all(cell.value is not None for cell in line.cells.values())
        assert set(table.slices) <= set(each.slices)
        assert paper.left_out.items() <= table.refused.items()
        if each.free_form:
            assert not any(item.question.options for item in experiment.design.dataset.items)
        assert not any(each.leaves_out.items() & item.slices.items() for item in experiment.design.dataset.items)


def test_what_this_machine_lacks_is_listed(
    command: Callable[..., Any], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_missing(*words: object) -> dict[str, dict[str, str]]:
        ran = command("eval", "papers", *words, "--json")
        assert ran.code == 0, ran.err
        return {paper["name"]: paper["missing"] for paper in json.loads(ran.out)["papers"]}

    (data / "infinitebench" / "longbook_qa_eng.jsonl").unlink()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    missing = list_missing("--data", data)
    assert list(missing) == list(PAPERS)
    assert set(missing["comorag-table2"]) == {"EN.QA", "model", "weights"}
    assert "longbook_qa_eng" in missing["comorag-table2"]["EN.QA"]
    assert set(missing["hgmem-table2"]) == {"model", "judge", "weights"}
    assert "--base-url" in missing["hgmem-table2"]["model"]
    assert set(list_missing("cam-table2", "--embedder", "hash")["cam-table2"]) == {"data", "model", "judge"}
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-for-this-test")
    assert list_missing("cam-table2", "--data", data)["cam-table2"] == {}
    own = ("--data", data, "--embedder", "hash", "--model", "extractive", "--judge-model", "extractive")
    assert {name for name, faults in list_missing(*own).items() if faults} == {"comorag-table2", "comorag-table3"}
    shown = command("eval", "papers", "comorag-table3", "--data", data, "--base-url", "http://127.0.0.1:1/v1").out
    assert "--base-url http://127.0.0.1:1/v1" in " ".join(shown.split())
    assert "RAPTOR + Our Loop: raptor+probe" in shown
    assert "missing EN.QA:" in shown
    assert f"tome eval run paper:comorag-table3 --data {data} --model openai:gpt-4o-mini" in shown


def test_the_command_runs_one_and_says_what_differs(
    command: Callable[..., Any], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "hash")
    shutil.rmtree(data / "detectiveqa")
    ran = command("eval", "run", "paper:comorag-figure3", "hybrid", "--data", data, "--json")
    (table,) = json.loads(ran.out)["tables"]
    assert (table["dataset"], table["metrics"]) == ("EN.MC", ["accuracy"])
    assert [row["system"] for row in table["rows"]] == ["comorag", "hipporag2 limit=60 context=6000", "hybrid"]
    assert "length" in table["slices"]
    assert [line.split(":")[0] for line in ran.err.splitlines()] == [
        "not run, since the folder of data lacks it",
        "warning",
    ]
    (note,) = (note for note in table["notes"] if note.startswith("Different rules"))
    assert ran.err.count(note) == 1
    with pytest.raises(ReadingError, match="infinitebench"):
        find_paper("comorag-table2").make_experiments(data / "nowhere")
    plain = data / "infinitebench"
    shutil.rmtree(plain)
    (plain / "corpus.jsonl").parent.mkdir()
    (plain / "corpus.jsonl").write_text('{"id": "d", "text": "The lamp is blue."}\n')
    (plain / "questions.jsonl").write_text('{"id": "q", "question": "Which colour?", "answers": ["blue"]}\n')
    both = find_paper("comorag-table2")
    assert list(both.make_experiments(data, embedder="hash", passage_tokens=100)) == ["EN.QA"]
    assert "lacks the gold (correct)" in both.find_missing(data)["EN.MC"]
    with pytest.raises(ReadingError, match="no evidence to rank by"):
        both.make_experiments(data, embedder="hash", retrieval_only=True)
    with pytest.raises(UnknownName, match="did you mean 'comorag-figure3'"):
        split_papers(["paper:comorag-figur3"])
    with pytest.raises(UsageError, match="one at a time"):
        split_papers(["paper:comorag-table2", "paper:cam-table2"])


async def test_a_table_names_the_systems_that_fuse(evaluate: Callable[..., Any], tmp_path: Path) -> None:
    """Those whose recipe takes the desk that fuses; `hybrid` has the search itself."""
    fusing = {"hybrid", "auto"}
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        for name in SYSTEMS:

            class Watched(Kit):
                @property
                def fusing_desk(self, name: str = name) -> FusingDesk:
                    fusing.add(name)
                    return super().fusing_desk

            parse_variant(name).wire(Watched(tome.store, ExtractiveModel(tome.kit.embedder), tome.kit.embedder))
    table = tabulate(await evaluate("naive"))
    (line,) = table.lines
    lines = tuple(replace(line, system=name) for name in (*SYSTEMS, "hybrid+probe", "a recipe of one's own"))
    named = re.search(r"hybrid: ([\w, ]+)\.", describe_rules(replace(table, lines=lines)))
    assert named
    assert set(named[1].split(", ")) == fusing - {"grep_agent"}  # which shows what it kept
    assert not describe_rules(replace(table, lines=lines[:1]))
    about = replace(table.about, retrieval_only=True)
    assert not describe_rules(replace(table, lines=lines, about=about))
