"""How many questions the rule of `auto` tells apart: those that need the whole text, and those that a search answers.

    .venv/bin/python bench/whole_form.py [--write]

`bench/auto_questions.jsonl` holds 200 questions on many kinds of texts, written and labelled before the rule by
somebody who has not seen it. The rule is fitted on those of odd place and on `bench/whole_examples.jsonl`, 857 of the
rule's author and 480 of somebody else who saw only those of odd place; the share that it gets right is printed for
those of even place. `--write` writes the weights.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.loops import whole_form
from tomewise.loops.whole_form import FORMS, find_forms, find_words

HERE = Path(__file__).parent
WEIGHTS = Path(whole_form.__file__).with_suffix(".json")
_INVERSE_PENALTY = 1.0  # the best of 0.3 to 10 in 10 folds of what is fitted
_LEAST = 4  # of the fitted questions have a word, or two that follow one another, that is weighed


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    options = parser.parse_args()
    questions = read("auto_questions.jsonl")
    fitted, kept_apart = questions[::2] + read("whole_examples.jsonl"), questions[1::2]
    embedder = choose_embedder("bundled")

    counts = Counter(words for row in fitted for words in find_words(row["question"]))
    weighed = sorted(words for words, count in counts.items() if count >= _LEAST)

    def describe(rows: list[dict[str, Any]]) -> Any:
        forms = np.array([[name in find_forms(row["question"]) for name in FORMS] for row in rows], float)
        words = np.array([[each in find_words(row["question"]) for each in weighed] for row in rows], float)
        return np.hstack([embedder.embed([row["question"] for row in rows]), forms, words])

    model = LogisticRegression(C=_INVERSE_PENALTY, max_iter=3_000)
    model.fit(describe(fitted), [row["needs_whole"] for row in fitted])
    dimensions = embedder.dimensions
    meaning, forms, words = np.split(model.coef_[0].round(3), [dimensions, dimensions + len(FORMS)])
    for name, rows in (("fitted", fitted), ("kept apart", kept_apart)):
        outcomes = Counter(zip(model.predict(describe(rows)), (row["needs_whole"] for row in rows), strict=True))
        right = sum(count for (guess, label), count in outcomes.items() if guess == label)
        print(
            f"{name}: {right} of {len(rows)} right ({100 * right / len(rows):.1f} %), "
            f"{outcomes[True, False]} sent to the whole text wrongly, {outcomes[False, True]} missed"
        )
    if options.write:
        weights = {
            "bias": round(float(model.intercept_[0]), 3),
            "forms": dict(zip(FORMS, forms.tolist(), strict=True)),
            "meaning": meaning.tolist(),
            "words": dict(zip(weighed, words.tolist(), strict=True)),
        }
        WEIGHTS.write_text(json.dumps(weights, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()
