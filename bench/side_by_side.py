"""64 questions side by side through `Tome.ask_many`: a model server with 0.5 s latency, 16 calls in flight.

The server (the one of the tests) runs in its own process. The ideal is 64 / 16 x 0.5 = 2 s. The best round counts; the
first round also opens the connections.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.language.openai_server import OpenAIServer, reply_with  # noqa: E402

from tomewise.sample import STORY  # noqa: E402
from tomewise.tome.tome import Tome  # noqa: E402

QUESTIONS, LIMIT, LATENCY, ROUNDS = 64, 16, 0.5, 4


def serve() -> None:
    """Run the server: print its address, wait for the end of standard input, then print what it counted."""
    reply = reply_with(json.dumps({"answer": "Ada", "choice": None, "quotes": []}), delay=LATENCY)
    with OpenAIServer(lambda _: reply) as server:
        print(server.url, flush=True)
        sys.stdin.read()
        print(json.dumps([server.connections, server.most_at_once, len(server.requests)]), flush=True)


def main() -> None:
    server = subprocess.Popen(
        [sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin
    assert server.stdout
    url = server.stdout.readline().strip()
    ideal = QUESTIONS / LIMIT * LATENCY
    ratios = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Tome.open(
            Path(folder) / "a.tome", model="openai:test", base_url=url, embedder="bundled", settings={"limit": LIMIT}
        ) as tome,
    ):
        tome.add(STORY)
        for number in range(ROUNDS):
            questions = [f"Who kept the book in round {number}, question {each}?" for each in range(QUESTIONS)]
            start, busy = time.perf_counter(), time.process_time()
            answers = tome.ask_many(questions)
            wall, busy = time.perf_counter() - start, time.process_time() - busy
            assert len(answers) == QUESTIONS
            ratios.append(wall / ideal)
            print(f"round {number}: {wall:.2f} s, {wall / ideal:.3f} of the ideal; {busy:.2f} s of processor time")
    out, _ = server.communicate()
    connections, most, requests = json.loads(out)
    print(f"server: {requests} requests over {connections} connections, {most} at once")
    print(f"ratio {min(ratios):.3f} of the best round (wanted: at most 1.15)")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
