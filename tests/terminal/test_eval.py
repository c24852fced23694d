from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def tome_eval(command, monkeypatch):
    """Run `tome eval`, and give what it prints."""
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "hash")

    def call(*words: object) -> str:
        ran = command("eval", *words)
        assert ran.code == 0, ran.err
        quiet = not ran.err or "--plots" in words or ran.err.startswith("warning: Different rules")
        assert quiet, "progress is shown on terminals alone"
        return ran.out

    return call


@pytest.fixture
def folder(tmp_path) -> Path:
    """A dataset in the plain layout."""
    data = tmp_path / "data"
    data.mkdir()
    corpus = [{"id": 1, "title": "Skerry", "text": "Ada Marsh kept the light."}, {"id": 2, "text": "Tom Hale sailed."}]
    questions = [
        {"id": "a", "question": "Who kept the light?", "answers": ["Ada Marsh"], "supporting": [1], "hops": 1},
        {"id": "b", "question": "Who sailed?", "answers": ["Tom Hale"], "supporting": [2], "hops": 1},
    ]
    for name, rows in (("corpus", corpus), ("questions", questions)):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


def test_one_command_makes_the_table_and_the_same_again_asks_nothing(tome_eval, folder):
    words = ["run", "naive", "hybrid limit=1", "--data", folder, "--judge", "acc-l", "--baseline", "naive", "--json"]
    record = json.loads(tome_eval(*words))
    assert [line["system"] for line in record["rows"]] == ["naive", "hybrid limit=1"]
    assert (record["dataset"], record["judge"], record["model"]) == ("data", "extractive", "extractive")
    assert record["metrics"][-1] == "acc-l"
    assert all(line["n"] == 2 and line["failed"] == 0 and line["recall@2"] == 1.0 for line in record["rows"])
    rows = next(Path("tome-eval").glob("*/rows.jsonl"))
    before = rows.read_bytes()
    assert json.loads(tome_eval(*words)) == record
    assert rows.read_bytes() == before
    shown = tome_eval("run", "naive", "hybrid limit=1", "--data", str(folder), "--questions", "1")
    assert "tome eval report" in shown
    assert rows.read_bytes() == before


def test_list_report_compare_and_export(tome_eval, folder):
    tome_eval("run", "naive", "hybrid", "--data", folder, "--by", "hops")
    (record,) = json.loads(tome_eval("list", "--json"))["experiments"]
    assert (record["systems"], record["rows"], record["failed"]) == (["naive", "hybrid"], 4, 0)
    assert record["name"] in tome_eval("list")
    report = json.loads(tome_eval("report", "tome-eval", "--json", "--by", "hops", "--metric", "f1"))
    assert report["metrics"] == ["f1"]
    assert list(report["slices"]["hops"]) == ["1"]
    assert "| naive | 2 |" in tome_eval("report", "--format", "markdown")
    tome_eval("report", "--plots", "plots")
    assert len(list(Path("plots").iterdir())) == 6
    compared = json.loads(tome_eval("compare", "naive", "hybrid", "--question", "b", "--json"))
    assert [side["system"] for side in compared["systems"]] == ["naive", "hybrid"]
    assert "Tom Hale sailed." in tome_eval("compare", "naive", "hybrid", "--question", "b")
    assert "4 rows" in tome_eval("export", "rows.parquet")
    assert Path("rows.parquet").read_bytes()[:4] == b"PAR1"


def test_a_used_up_budget_fails_the_rest_and_a_retry_asks_it(tome_eval, folder):
    words = ["run", "naive", "--data", str(folder), "--json", "--limit", "1"]
    assert json.loads(tome_eval(*words, "--budget", "1 calls"))["rows"][0]["failed"] == 1
    assert json.loads(tome_eval(*words))["rows"][0]["failed"] == 1
    assert json.loads(tome_eval(*words, "--retry-failed"))["rows"][0]["failed"] == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["run", "hybrid", "--data", "sample", "--metric", "acuracy"], 2, "did you mean 'accuracy'"),
        (["run", "hybrid", "--data", ".", "--layout", "qmsun"], 2, "did you mean 'qmsum'"),
        (["run", "paper:cam-table2", "--data", ".", "--layout", "qmsum"], 2, "leave --layout out"),
        (["run", "paper:cam-table2", "--data", "."], 3, "novelqa does not exist"),
        (["run", "hybrid", "--data", "sample", "--retrieval-only", "--metric", "em"], 2, "need answers"),
        (["report"], 4, "holds no experiment"),
    ],
)
def test_mistakes_are_named(command, words, code, says):
    ran = command("eval", *words)
    assert (ran.code, says in ran.err) == (code, True)
