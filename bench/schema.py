"""Whether every reply of a server is as its /openapi.json says: 3,000 requests of Schemathesis, with all checks.

PYTHONPATH=. python bench/schema.py [--examples 80] [--seed 1]. The two tomes have a graph, sessions and traces.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.server.schema_cases import check_operations, serve_filled


def main() -> None:
    """Send the requests, and print how many of each operation passed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=80, help="of each operation")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ["NO_PROXY"] = "127.0.0.1"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, serve_filled(Path(folder)) as served:
        counts = check_operations(served, options.examples, options.seed)
    for operation, count in sorted(counts.items()):
        print(f"| {operation} | {count} |")
    seconds = time.monotonic() - began
    print(f"{counts.total():,} requests of {len(counts)} operations in {seconds:.0f} s: all replies as the schema says")


if __name__ == "__main__":
    main()
