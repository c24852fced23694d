"""The bundled embedder beside Sentence Transformers on torch: the same weights, the same 256 passages, the same run.

`python bench/embedding.py` prints passages a second. The peer takes part if torch and sentence_transformers can be
imported here, or in another interpreter: `--peer-python PATH`. Rounds alternate, so that other work on the machine
slows both equally. The ratio is the median over the rounds; the ratio of the best rounds follows in brackets.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

CORPUS = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "wiki" / "corpus.jsonl"
PASSAGES = 256


def read_passages(path: Path) -> list[str]:
    """256 passages, title and text, spread evenly over the corpus."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines[:: max(1, len(lines) // PASSAGES)][:PASSAGES]]
    return [f"{row['title']}\n{row['text']}" for row in rows]


def serve_peer() -> None:
    """The peer's process: read a folder and the texts, then run a round for every line and print its seconds."""
    from sentence_transformers import SentenceTransformer

    folder, texts = json.loads(sys.stdin.readline())
    model = SentenceTransformer(folder, device="cpu")
    rows = model.encode(texts, normalize_embeddings=True)
    print(json.dumps(rows.tolist()), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        model.encode(texts, normalize_embeddings=True)
        print(time.perf_counter() - start, flush=True)


class Peer:
    """Sentence Transformers in its own process."""

    def __init__(self, python: str, texts: list[str]) -> None:
        from tomewise.embedding.weights import find_weights

        command = [python, "-P", __file__, "--serve-peer"]
        self._process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rows = self._ask([str(find_weights()), texts])

    def run_round(self) -> float:
        """Seconds of one round."""
        return float(self._ask("again"))

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, message: Any) -> Any:
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def time_once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def print_rate(name: str, times: list[float]) -> None:
    print(f"{name:24} {PASSAGES / median(times):7.1f} passages/s (best round {PASSAGES / min(times):.1f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", help="an interpreter that has torch and sentence-transformers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve-peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_peer:
        return serve_peer()
    if not CORPUS.exists():
        return print(f"the corpus {CORPUS} is absent: nothing to measure")
    return compare(read_passages(CORPUS), options.peer_python, options.rounds)


def compare(texts: list[str], peer_python: str | None, rounds: int) -> None:
    import numpy as np

    from tomewise.embedding.bundled import BundledMiniLM

    embedder = BundledMiniLM()
    start = time.perf_counter()
    embedder.embed(["a first text"])
    print(f"first vector after {time.perf_counter() - start:.2f} s (imports, session, tokenizer)")
    rows = embedder.embed(texts)
    if peer_python is None and (find_spec("torch") is None or find_spec("sentence_transformers") is None):
        print("torch and sentence_transformers are not installed here: no peer (see --peer-python)")
        return print_rate("bundled", [time_once(lambda: embedder.embed(texts)) for _ in range(rounds)])
    peer = Peer(peer_python or sys.executable, texts)
    cosine = (rows * np.array(peer.rows, np.float32)).sum(axis=1).min()
    pairs = [(time_once(lambda: embedder.embed(texts)), peer.run_round()) for _ in range(rounds)]
    peer.close()
    ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    print_rate("bundled", ours)
    print_rate("Sentence Transformers", theirs)
    ratios = [their / our for our, their in pairs]
    print(f"ratio {median(ratios):.2f} (best rounds {min(theirs) / min(ours):.2f}); lowest cosine {cosine:.7f}")
    return None


if __name__ == "__main__":
    main()
