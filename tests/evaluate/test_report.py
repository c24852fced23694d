"""Tables, their files and plots, and two systems side by side."""

from __future__ import annotations

import json
import re
from csv import DictReader
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tomewise.errors import ModelError
from tomewise.evaluate.compare import compare
from tomewise.evaluate.design import About
from tomewise.evaluate.items import Item, Judgement, Prediction
from tomewise.evaluate.plots import score_by_cycles
from tomewise.evaluate.report import make_json, make_rich_tables, write_csv, write_latex, write_markdown, write_parquet
from tomewise.evaluate.results import Results, Table, list_slices, split_results, tabulate
from tomewise.evaluate.rows import Row
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Cost, Question

ABOUT = About(
    name="made-up", dataset="made_up & more", model="m", embedder="e", judge_model="judge", retrieval_only=False,
    metrics=("em",), judges=("acc-l",), systems=("good", "bad", "few"), seed=0, run="2026-01-01T00:00:00+00:00",
)  # fmt: skip


def row(system: str, number: int, right: bool, **given: Any) -> Row:
    item = Item(
        id=f"q{number:02}",
        question=Question(text=f"What is {number}?"),
        answers=("yes",),
        slices={"type": "odd" if number % 2 else "even", "turns": number},
    )
    spent = {"calls": 2, "input_tokens": 100, "output_tokens": 10, "dollars": 0.01, "depth": 2}
    cost = Cost(**spent, model_seconds=1.5, own_seconds=0.5).to_dict()
    values = {
        "item": item,
        "prediction": Prediction(answer="yes" if right else "no"),
        "cost": cost | given.pop("cost", {}),
        "characters": 1000 * (number + 1),
        "judgements": {"acc-l": Judgement(score=0.5)},
        **given,
    }
    return Row(key=f"{system}{number}", system=system, **values)


def tabulate_rows(*rows: Row, **about: Any) -> Table:
    return tabulate(Results(replace(ABOUT, **about), rows, {}))


@pytest.fixture
def results() -> Results:
    """Three systems: one right on 18 of 20 questions, one on 4 and with a failure, one asked only 5 questions."""
    good = [row("good", number, number < 18) for number in range(20)]
    bad = [row("bad", number, number < 4) for number in range(19)]
    bad.append(row("bad", 19, True, error="ModelError: broken"))
    few = [row("few", number, True, judgements={}) for number in range(5)]
    build = {"calls": 7, "input_tokens": 1234, "output_tokens": 56, "dollars": 0.1}
    return Results(ABOUT, (*good, *bad, *few), {"good": build})


def test_a_table_holds_scores_intervals_significance_and_costs(results):
    table = tabulate(results, baseline="bad")
    good, bad, few = table.lines
    assert (good.n, good.failed, bad.failed, few.n) == (20, 0, 1, 5)
    cell = good.cells["em"]
    assert cell.value == 0.9
    assert 0.7 <= cell.low < 0.9 < cell.high <= 1.0
    assert cell.p < 0.01
    assert bad.cells["em"].value == 0.2  # a failed question is wrong, whatever its answer
    assert bad.cells["em"].p is None
    assert few.cells["em"].p is None  # too few questions in common
    assert bad.cells["acc-l"].value == pytest.approx(19 * 0.5 / 20)
    assert few.cells["acc-l"].value is None  # not judged
    assert (good.cost["calls"], good.cost["dollars"]) == (40, pytest.approx(0.2))
    assert good.per_question["input_tokens"] == 100
    assert good.per_question["depth"] == 2


def test_an_unknown_price_makes_an_unknown_cost_and_tokens_of_all_kinds_are_shown(results):
    table = tabulate_rows(row("good", 0, True, cost={"dollars": None}))
    assert table.lines[0].cost["dollars"] is table.lines[0].per_question["dollars"] is None
    assert "unknown" in write_markdown(table)
    counted = {"cached_tokens": 60, "reasoning_tokens": 7, "reused": 1}
    table = tabulate_rows(row("good", 0, True, cost=counted))
    assert "| 60 | 7 |" in write_markdown(table)
    (line,) = make_json(table)["rows"]
    assert {name: line["cost"][name] for name in counted} == counted
    assert "tokens cached" not in write_markdown(tabulate(results))


def test_scores_that_are_not_means_have_no_interval():
    question = Question(text="True?", options=("true", "false"))
    items = [Item(id=str(n), question=question, correct="A", slices={"pair": n // 2}) for n in range(4)]
    choices = [Prediction(choice="A" if n else "B") for n in range(4)]
    rows = [row("s", n, True, item=items[n], prediction=choices[n]) for n in range(4)]
    cell = tabulate_rows(*rows, metrics=("pair-accuracy",), judges=()).lines[0].cells["pair-accuracy"]
    assert (cell.value, cell.low, cell.p) == (0.5, None, None)


def test_slices_by_value_and_in_bins(results):
    assert list_slices(results.rows) == ("type", "turns", "length")
    assert {name: len(part.rows) for name, part in split_results(results, "type").items()} == {"even": 23, "odd": 22}
    bins = split_results(results.select(["good"]), "length")
    assert list(bins) == ["up to 5,000", "5,001 to 10,000", "10,001 to 15,000", "15,001 to 20,000"]
    assert [len(part.rows) for part in bins.values()] == [5, 5, 5, 5]
    table = tabulate(results, by=["type"])
    assert table.slices["type"]["even"].lines[0].n == 10


def test_the_table_as_json(results):
    table = json.loads(json.dumps(make_json(tabulate(results, baseline="bad", by=["type"]))))
    about = {"experiment", "dataset", "model", "embedder", "judge", "retrieval_only"}
    assert set(table) == about | {"baseline", "metrics", "risk_of", "refused", "notes", "rows", "slices"}
    assert table["judge"] == "judge"
    assert table["metrics"] == ["em", "acc-l"]
    first = table["rows"][0]
    measured = {"ci", "p", "p_holm", "cost", "per_question", "build", "fallbacks", "risks"}
    assert set(first) == {"system", "n", "failed", "ranked_by", "em", "acc-l"} | measured
    counted = {"calls", "reused", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "dollars"}
    assert set(first["cost"]) == counted | {"model_seconds", "own_seconds"}
    assert set(first["per_question"]) == {*first["cost"], "depth"}
    assert set(first["ci"]) == {"em", "acc-l"}
    assert set(first["p"]) <= {"em", "acc-l"}
    assert set(table["slices"]["type"]) == {"even", "odd"}


def test_markdown(results):
    text = write_markdown(tabulate(results, baseline="bad", by=["type"]))
    assert "**made\\_up & more · m**" in text
    assert re.search(r"^\| good \| 20 \| 0 \| 90.0‡ \([\d.]+–[\d.]+\) \| \*\*50.0\*\*", text, re.MULTILINE)
    assert "| good | 2.0 | 100 | 10 | 0.0100 | 1.50 | 0.50 | 2.0 |" in text
    assert "type: odd" in text
    assert all(note in text for note in ("Judged by judge: acc-l", "Failed questions", "7 calls, 1,234 tokens"))


def test_tables_of_many_systems_are_corrected_for_their_number():
    """Five systems, each a little better than the baseline: alone each would be marked, together none is."""
    scores = {"base": 6, **{f"s{number}": 14 for number in range(5)}}
    rows = [row(name, place, place < right) for name, right in scores.items() for place in range(20)]
    results = Results(replace(ABOUT, judges=(), systems=tuple(scores)), tuple(rows), {})
    alone = tabulate(results.select(["base", "s0"]), baseline="base").lines[1].cells["em"]
    many = tabulate(results, baseline="base")
    cells = [line.cells["em"] for line in many.lines[1:]]
    assert alone.p == alone.p_holm == cells[0].p
    assert [cell.p_holm for cell in cells] == pytest.approx([5 * alone.p] * 5)
    assert "corrected after Holm" in write_markdown(many)
    weak = replace(many.lines[1], cells={"em": replace(cells[0], p=0.004, p_holm=0.02)})
    assert "†" in write_markdown(replace(many, lines=(many.lines[0], weak)))


def test_rows_of_the_extractive_model_are_captioned(results):
    text = write_markdown(tabulate(replace(results, about=replace(ABOUT, model="extractive"))))
    assert "extractive · quotations, machinery, not accuracy**" in text


def test_a_table_for_spreadsheets(results):
    table = tabulate(results, columns=["em"], baseline="bad", by=["type"])
    lines = list(DictReader(StringIO(write_csv(table))))
    assert [(line["slice"], line["value"], line["system"]) for line in lines][:4] == [
        ("", "", "good"), ("", "", "bad"), ("", "", "few"), ("type", "even", "good")
    ]  # fmt: skip
    good = lines[0]
    assert (good["em"], good["per_question.calls"], good["build.calls"]) == ("0.9", "2.0", "7")
    assert float(good["low.em"]) < 0.9 < float(good["high.em"])
    assert float(good["p_holm.em"]) >= float(good["p.em"]) > 0
    assert float(good["coverage.forced, none"]) == 1.0


def test_latex(results):
    text = write_latex(tabulate(results, baseline="bad"))
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert r"made\_up \& more" in text
    assert r"good & 20 & 0 & 90.0$^{\ddagger}$ {\scriptsize (" in text
    assert not re.search("[·–†‡]", text)


@pytest.mark.parametrize("width", [40, 200])
def test_a_terminal_of_any_width_shows_every_number(results, width):
    console = Console(width=width, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        for part in make_rich_tables(tabulate(results, columns=["em", "f1", "substring-em", "acc-l"]), width):
            console.print(part)
    text = captured.get()
    assert all(len(line) <= width for line in text.splitlines())
    for word in ("em", "f1", "substring-em", "acc-l", "90.0", "47.5", "100.0", "0.0100"):
        assert word in text
    assert "…" not in text


def test_the_score_by_cycles_counts_what_was_answered_by_then():
    late = {"events": ({"name": "tried", "step": 2, "detail": {}},)}
    rows = (row("s", 0, True), row("s", 1, True, **late), row("s", 2, False), row("s", 3, True, **late))
    assert score_by_cycles(Results(ABOUT, rows, {}), "em", 2) == [0.25, 0.25, 0.75]


async def test_two_systems_side_by_side(evaluate):
    def reply(given):
        return ModelError("no") if "Hale" in given.question else {"answer": "[it]"}

    results = await evaluate(model=ScriptedModel({"answer": reply}))
    left, right = compare(results, "hybrid", "naive", "q0")["systems"]
    assert (left["system"], right["system"]) == ("hybrid", "naive")
    assert left["scores"]["em"] == 0.0
    assert ["Ada Marsh" in piece["text"] for piece in left["evidence"] if piece["gold"]] == [True]
    assert all(piece["shared"] for piece in left["evidence"])
    failed = json.loads(json.dumps(compare(results, "hybrid", "naive", "q1")))
    assert "ModelError: no" in str(failed["systems"])


def test_parquet_holds_all_rows(results, tmp_path):
    from pyarrow import parquet

    write_parquet(results, tmp_path / "deep" / "rows.parquet")
    table = parquet.read_table(tmp_path / "deep" / "rows.parquet").to_pylist()
    assert len(table) == 45
    assert table[0]["score:em"] == 1.0
    assert table[39]["error"] == "ModelError: broken"
    assert table[39]["score:em"] == 0.0
    assert table[44]["score:acc-l"] is None
    assert json.loads(table[0]["slices"]) == {"type": "even", "turns": 0}
