"""Random histories of a tome, a third of whose passages are equal: is the memory that of a fresh build?

`python bench/churn.py [--seeds 300] [--first 0]` takes seed after seed through `tests.test_churn`. It prints every
difference from the export of a fresh tome with the last files, and everything that the model was asked twice. Ends with
1 if it finds any.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the histories

from tests.test_churn import Churn

_SHOWN = 6  # differences that are printed for a seed
_WIDTH = 200  # characters of each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    started, steps, calls, differing = time.process_time(), Counter[str](), 0, []
    for seed in range(options.first, options.first + options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            churn = Churn(seed, Path(folder))
            churn.run()
            differences = churn.compare()
        steps.update(churn.steps)
        calls += churn.count_asked().total()
        if differences:
            differing.append(seed)
            print(f"seed {seed} ({', '.join(churn.systems)}): {len(differences)} differences after {churn.steps}")
            for line in differences[:_SHOWN]:
                print(f"  {line[:_WIDTH]}", flush=True)
    print(f"{options.seeds} histories: {', '.join(f'{count} {name}' for name, count in sorted(steps.items()))}")
    seconds = time.process_time() - started
    print(f"{len(differing)} differ {differing}; {calls} calls; {seconds:.0f} s of processor time")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
