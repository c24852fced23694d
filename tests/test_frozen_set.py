"""The frozen set of questions in `bench/frozen` is whole, and drawn as its README says."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.texts import SHARED

FOLDER = Path(__file__).resolve().parents[1] / "bench" / "frozen"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "questions.jsonl").read_text("utf-8").splitlines()]
TEXTS = {name: (FOLDER / name).read_text("utf-8") for name in ("mystery.md", "reports.md")}
OWN = [row for row in ROWS if "text" in row]


def rank(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def find_drawn(name: str) -> list[tuple[str, list[Any]]]:
    return [(row["source"], row["passages"]) for row in ROWS if row["set"] == name]


def test_ids_count_the_places_of_a_set_and_halves_take_turns() -> None:
    sizes = Counter(row["set"] for row in ROWS)
    assert sizes == {"mystery": 8, "reports": 8, "musique": 12, "locomo": 10}
    places = [(name, place) for name, size in sizes.items() for place in range(1, size + 1)]
    expected = [(f"{name}-{place}", "odd" if place % 2 else "even") for name, place in places]
    assert [(row["id"], row["half"]) for row in ROWS] == expected


def test_published_questions_are_named_and_not_copied() -> None:
    for row in ROWS:
        if row not in OWN:
            assert row.keys() == {"id", "set", "source", "passages", "kind", "half"}


@pytest.mark.parametrize("row", OWN, ids=[row["id"] for row in OWN])
def test_each_gold_sentence_stands_once_in_its_text(row: dict[str, Any]) -> None:
    assert row["question"].endswith("?")
    assert row["answer"]
    assert row["answers"]
    assert [TEXTS[row["text"]].count(sentence) for sentence in row["gold"]] == [1] * len(row["gold"])
    assert (row["kind"] == "absent") == (not row["gold"]) == (row["answer"] == "not stated")


@pytest.mark.parametrize("name", TEXTS)
def test_texts_have_the_length_of_a_long_document(name: str) -> None:
    assert 8_000 <= len(TEXTS[name].split()) <= 15_000


def test_musique_questions_are_those_that_the_rule_draws() -> None:
    if not (SHARED / "musique").is_dir():
        pytest.skip("needs ../shared/data/musique")
    lines = (SHARED / "musique" / "questions.jsonl").read_text("utf-8").splitlines()
    questions = sorted(map(json.loads, lines), key=lambda question: rank(question["id"]))
    drawn = [
        row for hops, count in ((2, 6), (3, 4), (4, 2)) for row in [q for q in questions if q["hops"] == hops][:count]
    ]
    assert find_drawn("musique") == [(row["id"], row["supporting"]) for row in drawn]


def test_locomo_questions_are_those_that_the_rule_draws() -> None:
    if not (SHARED / "locomo").is_dir():
        pytest.skip("needs ../shared/data/locomo")
    talk = json.loads((SHARED / "locomo" / "locomo10.json").read_text("utf-8"))[0]
    parts = [part for part in talk["conversation"].values() if isinstance(part, list)]
    turns = {turn["dia_id"] for part in parts for turn in part}
    whole = [
        (f"conv-26:{place}", row)
        for place, row in enumerate(talk["qa"])
        if row["evidence"] and turns >= set(row["evidence"])
    ]
    ranked = sorted(whole, key=lambda pair: rank(pair[0]))
    drawn = [pair for category in range(1, 6) for pair in [p for p in ranked if p[1]["category"] == category][:2]]
    assert find_drawn("locomo") == [(source, row["evidence"]) for source, row in drawn]
