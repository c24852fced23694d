import json
import os
import subprocess
import sys
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.evaluate.metrics.passage_ranks import all_at, ndcg_at, recall_at, reciprocal_rank

RANKED = ["a", "b", "c", "d"]


def test_recall_by_hand() -> None:
    assert recall_at(RANKED, ["b", "d", "x"], 2) == pytest.approx(1 / 3)
    assert recall_at(RANKED, ["b", "d", "x"], 4) == pytest.approx(2 / 3)
    assert recall_at(RANKED, ["b", "d"]) == 1.0
    assert recall_at(RANKED, []) == recall_at([], ["b"], 3) == 0.0


def test_all_by_hand() -> None:
    assert all_at(RANKED, ["a", "c"], 3) == 1.0
    assert all_at(RANKED, ["a", "c"], 2) == 0.0
    assert all_at(RANKED, [], 2) == 0.0


def test_reciprocal_rank_by_hand() -> None:
    assert reciprocal_rank(RANKED, ["c", "d"]) == pytest.approx(1 / 3)
    assert reciprocal_rank(RANKED, ["c"], 2) == 0.0


def test_ndcg_by_hand() -> None:
    gain, ideal = 1 / log2(3) + 1 / log2(5), 1 + 1 / log2(3) + 1 / log2(4)
    assert ndcg_at(RANKED, ["b", "d", "x"], 4) == pytest.approx(gain / ideal)
    # only two places: the ideal holds two
    assert ndcg_at(RANKED, ["a", "b", "x"], 2) == 1.0
    assert ndcg_at(RANKED, []) == 0.0


def test_a_repeated_id_counts_once_at_its_first_place() -> None:
    assert recall_at(["a", "a", "b"], ["b"], 2) == 1.0
    assert ndcg_at(["a", "a", "b"], ["a", "b"], 2) == 1.0


ids = st.sampled_from([f"d{number}" for number in range(9)])


RANX = """
import json, sys
from ranx import Qrels, Run, evaluate
qrels, run, names = json.load(sys.stdin)
print(json.dumps({name: float(evaluate(Qrels(qrels), Run(run), name, make_comparable=True)) for name in names}))
"""


def test_against_ranx() -> None:
    runs = [(RANKED, ["b", "d"]), (["d", "a"], ["c"]), (["c", "a", "b", "e", "f"], ["f", "c", "x"]), (["a"], ["a"])]
    ours = {
        "recall@2": [recall_at(*pair, 2) for pair in runs],
        "recall@5": [recall_at(*pair, 5) for pair in runs],
        "mrr": [reciprocal_rank(*pair) for pair in runs],
        "mrr@2": [reciprocal_rank(*pair, 2) for pair in runs],
        "ndcg@3": [ndcg_at(*pair, 3) for pair in runs],
        "ndcg@10": [ndcg_at(*pair, 10) for pair in runs],
    }
    qrels = {str(at): dict.fromkeys(gold, 1) for at, (_, gold) in enumerate(runs)}
    scored = {str(at): {id: 1 / place for place, id in enumerate(ranked, 1)} for at, (ranked, _) in enumerate(runs)}
    # In another process, where Numba does not compile: for four rankings that would take half a minute.
    done = subprocess.run(
        [sys.executable, "-c", RANX],
        input=json.dumps([qrels, scored, list(ours)]),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(done.stdout)
    assert {name: sum(scores) / len(scores) for name, scores in ours.items()} == pytest.approx(theirs)


@given(st.lists(ids, max_size=8), st.lists(ids, max_size=5), st.integers(1, 6))
def test_bounds_and_growth_with_depth(ranked: list[str], gold: list[str], k: int) -> None:
    for metric in (recall_at, all_at, reciprocal_rank, ndcg_at):
        assert 0.0 <= metric(ranked, gold, k) <= 1.0
    assert recall_at(ranked, gold, k) <= recall_at(ranked, gold, k + 1)
    assert (all_at(ranked, gold, k) == 1.0) == (recall_at(ranked, gold, k) == 1.0)
