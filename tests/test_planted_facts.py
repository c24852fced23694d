"""The facts of `bench/planted_facts.py` stand in their texts, each once, and `bench/collect.py` counts rows of them."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.texts import REPOSITORY, SHARED

pytestmark = pytest.mark.skipif(not (SHARED / "reported" / "qmsum_val").exists(), reason="needs ../shared/data")


@pytest.fixture(scope="module")
def bench() -> Any:
    sys.path.insert(0, str(REPOSITORY / "bench"))
    try:
        yield importlib.import_module("collect")
    finally:
        sys.path.remove(str(REPOSITORY / "bench"))


def test_every_fact_stands_in_its_text_and_no_two_are_one(bench: Any) -> None:
    sizes = []
    for number in range(20):
        planted = bench.make_text("report", number)
        sizes.append(len(planted.facts))
        assert len({fact.values for fact in planted.facts}) == len(planted.facts)
        for sentence in (*planted.others, *(each for fact in planted.facts for each in fact.sentences)):
            assert planted.text.count(sentence) == 1, sentence
    assert sorted(sizes)[-3:] == [150, 150, 300]
    assert all(20 <= size <= 60 for size in sorted(sizes)[:-3])


def test_a_reader_who_misses_nothing_has_all_rows_and_each_that_is_wrong_counts(bench: Any) -> None:
    planted = bench.make_text("choose", 6, small=True)
    result = bench.Result(planted.name, len(planted.facts))
    table, _ = bench.collect(planted, bench.make_perfect(planted))
    bench.score(planted, table, result)
    assert (result.f1, result.missed, result.wrong) == (1.0, (), ())
    bench.score(planted, replace(table, rows=(*table.rows[1:], *table.rows[1:])), result)
    assert (result.right, result.rows, result.twice, len(result.missed)) == (7, 14, 7, 1)
    assert bench.has_value("twelve hundred and one pounds a year", "money", "1201")
    assert not bench.has_value("£1,200", "money", "1201")
