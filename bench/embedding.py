"""The bundled embedder, in int8 and float32, beside Sentence Transformers: the same weights, passages and run.

`python bench/embedding.py` prints passages and tokens a second, of 256 passages; `--recall SET ...` the recall of both
by cosines alone, in percent, over sets of ../shared/data such as `2wiki` and `reported/xquad`; `--add MB` what `tome
add` of Markdown takes. The peer takes part if torch and sentence_transformers can be imported here, or in another
interpreter: `--peer-python PATH`. Rounds alternate, so that other work on the machine slows all equally. A ratio is
the median over the rounds; that of the best rounds follows in brackets.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
CORPUS = DATA / "wiki" / "corpus.jsonl"
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


def print_rate(name: str, times: list[float], tokens: int) -> None:
    passages, rate = PASSAGES / median(times), tokens / median(times)
    print(f"{name:24} {passages:7.1f} passages/s, {rate:7,.0f} tokens/s (best round {tokens / min(times):,.0f})")


def measure_recall(name: str) -> None:
    """Print the recall at 1 to 20 of both graphs, and how near their vectors are."""
    import numpy as np

    from tomewise.embedding.bundled import BundledMiniLM, Int8MiniLM

    rows, asked = (
        [json.loads(line) for line in (DATA / name / file).read_text(encoding="utf-8").splitlines()]
        for file in ("corpus.jsonl", "questions.jsonl")
    )
    places = {str(row["id"]): place for place, row in enumerate(rows)}
    made = []
    for embedder in (BundledMiniLM(), Int8MiniLM()):
        texts = embedder.embed([f"{row['title']}\n{row['text']}" for row in rows])
        made.append(texts)
        order = np.argsort(-embedder.embed([row["question"] for row in asked]) @ texts.T, axis=1, kind="stable")
        shares = []
        for depth in (1, 2, 5, 10, 20):
            found = [
                np.isin([places[str(each)] for each in row["supporting"]], order[number, :depth]).mean()
                for number, row in enumerate(asked)
            ]
            shares.append(f"{100 * np.mean(found):.1f}")
        print(f"| {name}, {len(asked)} | {embedder.name} | {' / '.join(shares)} |", flush=True)
    cosines = (made[0] * made[1]).sum(axis=1)
    print(f"cosines of the two: {cosines.mean():.4f}, lowest {cosines.min():.4f}")


def measure_adding(megabytes: float) -> None:
    """Print what `tome add` of a folder of Markdown costs with each graph, in a process of its own."""
    from tomewise.embedding.bundled import BundledMiniLM, Int8MiniLM

    rows = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    parts = [f"## {row['title']}\n\n{row['text']}\n\n" for row in rows]
    most, tokens, size = int(1e6 * megabytes), 0, 0
    tokenizer = BundledMiniLM().tokenizer
    with TemporaryDirectory() as made:
        (folder := Path(made, "notes")).mkdir()
        for start in itertools.count(step=60):
            page = "".join(parts[(start + each) % len(parts)] for each in range(60))[: most - size]
            if not page:
                break
            (folder / f"{start}.md").write_text(page, encoding="utf-8")
            size += len(page)
            tokens += len(tokenizer.encode(page).ids)
        for number, name in enumerate([Int8MiniLM.name, BundledMiniLM.name] * 2):
            words = ["-m", str(Path(made, f"{number}.tome")), "add", str(folder), "--embedder", name]
            start_time = time.perf_counter()
            process = subprocess.Popen([sys.executable, "-m", "tomewise", *words], stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            assert status == 0
            seconds, clock = used.ru_utime + used.ru_stime, time.perf_counter() - start_time
            print(
                f"{name}: {tokens:,} tokens, {tokens / seconds:,.0f} a second of a core ({seconds:.1f} s), "
                f"{tokens / clock:,.0f} by the clock, {used.ru_maxrss / 1024:.0f} MB",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", help="an interpreter that has torch and sentence-transformers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--add", type=float, metavar="MB", help="add so much Markdown in its place")
    parser.add_argument("--recall", nargs="+", metavar="SET", default=(), help="measure recall over these in its place")
    parser.add_argument("--serve-peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_peer:
        return serve_peer()
    if not CORPUS.exists():
        return print(f"the corpus {CORPUS} is absent: nothing to measure")
    if options.add:
        return measure_adding(options.add)
    if options.recall:
        return [measure_recall(name) for name in options.recall] and None
    return compare(read_passages(CORPUS), options.peer_python, options.rounds)


def compare(texts: list[str], peer_python: str | None, rounds: int) -> None:
    import numpy as np

    from tomewise.embedding.bundled import BundledMiniLM, Int8MiniLM

    embedder, exact = Int8MiniLM(), BundledMiniLM()
    start = time.perf_counter()
    embedder.embed(["a first text"])
    print(f"first vector after {time.perf_counter() - start:.2f} s (imports, session, tokenizer)")
    tokens = sum(min(embedder.max_tokens, len(each.ids)) for each in embedder.tokenizer.encode_batch(texts))
    peer = None
    if peer_python or (find_spec("torch") and find_spec("sentence_transformers")):
        peer = Peer(peer_python or sys.executable, texts)
    else:
        print("torch and sentence_transformers are not installed here: no peer (see --peer-python)")
    rows = {each.name: each.embed(texts) for each in (embedder, exact)}
    works = {each.name: partial(time_once, partial(each.embed, texts)) for each in (embedder, exact)}
    if peer:
        rows["Sentence Transformers"] = np.array(peer.rows, np.float32)
        works["Sentence Transformers"] = peer.run_round
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(work())
    if peer:
        peer.close()
    own, first = times[embedder.name], rows[embedder.name]
    for name, seconds in times.items():
        print_rate(name, seconds, tokens)
        ratio = median(theirs / ours for ours, theirs in zip(own, seconds, strict=True))
        cosine = (rows[name] * first).sum(axis=1).min()
        best = min(seconds) / min(own)
        print(f"    seconds ÷ those of int8 {ratio:.2f} (best rounds {best:.2f}); lowest cosine {cosine:.5f}")


if __name__ == "__main__":
    main()
