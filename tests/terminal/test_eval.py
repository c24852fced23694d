from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tomewise.errors import StoreError, TomewiseError, UnknownName, UsageError
from tomewise.terminal.eval import app


@pytest.fixture
def tome_eval(tmp_path, monkeypatch):
    """A function that runs `tome eval` in an empty folder and raises our errors, which the command `tome` catches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "hash")
    monkeypatch.delenv("TOMEWISE_MODEL", raising=False)

    def call(*words: str) -> str:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if isinstance(result.exception, TomewiseError):
            raise result.exception
        assert result.exit_code == 0, result.output
        assert result.stderr == "" or "--plots" in words, "progress is shown on terminals alone"
        return result.stdout

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
    assert json.loads(tome_eval(*words, "--max-calls", "1"))["rows"][0]["failed"] == 1
    assert json.loads(tome_eval(*words))["rows"][0]["failed"] == 1
    assert json.loads(tome_eval(*words, "--retry-failed"))["rows"][0]["failed"] == 0


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["run", "hybird", "--data", "sample"], UnknownName, "did you mean 'hybrid'"),
        (["run", "hybrid", "--data", "sample", "--metric", "acuracy"], UnknownName, "did you mean 'accuracy'"),
        (["run", "hybrid", "--data", ".", "--layout", "qmsun"], UnknownName, "did you mean 'qmsum'"),
        (["run", "hybrid", "--data", "sample", "--retrieval-only", "--metric", "em"], UsageError, "need answers"),
        (["report"], StoreError, "holds no experiment"),
    ],
)
def test_mistakes_are_named(tome_eval, words, error, says):
    with pytest.raises(error, match=says):
        tome_eval(*words)
