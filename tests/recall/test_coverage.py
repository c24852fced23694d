from __future__ import annotations

from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.embedding.hash import HashEmbedder
from tomewise.recall.coverage import Coverage, choose_covering, list_distinct_words, weigh_words
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import document_of, put_document

EMBEDDER = HashEmbedder(32)


def test_words_of_one_stem_count_once_and_rare_words_weigh_more() -> None:
    assert list_distinct_words("Which state is in the states of Skerry?") == ["states", "skerry"]
    weights = weigh_words([9, 0], 10)
    assert weights.tolist() == pytest.approx(np.array([log(2), log(11)]) / (log(2) + log(11)))
    assert weigh_words([], 10).tolist() == []


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.integers(0, 255), st.integers(0, 255))
def test_each_choice_is_the_best_of_what_is_left(scores: list[float], first: int, second: int) -> None:
    holds = np.array([[bool(word >> place & 1) for place in range(len(scores))] for word in (first, second)])
    weights = np.array([0.75, 0.25])
    order, values = choose_covering(np.log(scores), holds, weights)
    left, covered = list(range(len(scores))), set[int]()
    for place, value in zip(order.tolist(), values.tolist(), strict=True):
        worth = [
            log(scores[each]) + sum(weights[word] for word in (0, 1) if holds[word, each] and word not in covered)
            for each in left
        ]
        assert value == pytest.approx(max(worth))
        assert worth[left.index(place)] == pytest.approx(max(worth))
        left.remove(place)
        covered |= {word for word in (0, 1) if holds[word, place]}
    assert (np.diff(values) <= 1e-9).all(), "values never rise"


def test_a_passage_with_new_words_comes_before_one_with_the_same(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "a.tome")
    texts = ("The keeper burned it.", "A keeper burns.", "A letter was here.", "Nothing.")
    keys = np.array([put_document(store, EMBEDDER, document_of(f"d{i}", text))[0] for i, text in enumerate(texts)])
    ranking = keys, np.array([1.0, 0.9, 0.8, 0.1])
    (covered, plain) = Coverage(store).reorder("Which keeper burned a letter?", [ranking, (keys[:1], np.ones(1))])
    assert covered[0].tolist() == keys[[0, 2, 1, 3]].tolist()
    assert covered[1][0] == 1
    idf = [log(1 + 4 / 3), log(1 + 4 / 3), log(1 + 4 / 2)]
    assert covered[1][1] == pytest.approx(0.8 * exp(idf[2] / sum(idf)) / exp((idf[0] + idf[1]) / sum(idf)))
    assert plain[0].tolist() == keys[:1].tolist()
    (near,) = Coverage(store, reach=2).reorder("Which keeper burned a letter?", [ranking])
    assert near[0].tolist() == keys.tolist(), "what is out of reach stays"
    (unscored,) = Coverage(store).reorder("Which letter?", [(keys, np.array([1.0, 0.5, 0.0, 0.0]))])
    assert unscored[0].tolist() == keys.tolist(), "scores of 0 keep their places"
    (none,) = Coverage(store, weight=0).reorder("Which keeper burned a letter?", [ranking])
    assert none[1].tolist() == pytest.approx(ranking[1].tolist())
    store.close()
