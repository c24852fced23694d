"""Damage a tome in 2,000 ways and use it: each use must end with an answer or one StoreError, and touch no other file.

`python bench/damage.py [--times 2000] [--seed 0]`. Rows of every table, bytes of the tome and of every file beside it,
caches with right checksums, links, pipes and folders in the place of files (see `tests/damages.py`).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.damages import damage_at_random, make_tome, use_damaged


def main() -> None:
    sys.modules["umap"] = None  # type: ignore[assignment]  # it takes seconds to import
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first damage")
    options = parser.parse_args()
    problems: Counter[str] = Counter()
    start = time.process_time()
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        whole.mkdir()
        make_tome(whole)
        for number in range(options.first, options.first + options.times):
            # Each has dice of its own, so that one number can be repeated alone.
            dice = random.Random(f"{options.seed} {number}")
            if problem := use_damaged(whole, Path(place) / "damaged", dice, damage_at_random):
                problems[problem] += 1
                print(f"{number}: {problem}", flush=True)
    seconds = time.process_time() - start
    print(f"{options.times} damages, {sum(problems.values())} problems, {seconds:.0f} s of processor time")
    raise SystemExit(bool(problems))


if __name__ == "__main__":
    main()
