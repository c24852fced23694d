"""How long `read_through` reads with waves, and how much of what was missed its recovery finds.

`python bench/waves.py waves` reads a text of 32 chunks with a model server of 0.5 s latency, chunk by chunk and in
waves of 8. The server (the one of the tests) runs in its own process. `model` is the time in which a call was under
way; the whole time depends on the machine as well.

`python bench/waves.py recovery` plants 20 sentences in a novella (`../shared/data/novels/christmas_carol.txt`), three
times. A scripted reader overlooks them when it reads a chunk first, and sees them when it reads them again. What counts
is how many of them reach the answering call, and the share of the text that was read again.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.language.openai_server import Behaviour, OpenAIServer, reply_with  # noqa: E402

from tomewise.testing.scripted import ScriptedModel  # noqa: E402
from tomewise.tome.tome import Tome  # noqa: E402
from tomewise.types import Answer, Document  # noqa: E402

NOVELLA = ROOT.parent / "shared" / "data" / "novels" / "christmas_carol.txt"
LATENCY, CHUNKS, WAVE = 0.5, 32, 8
REPLIES = {  # by a field that only this role's reply has
    '"nets"': {"questions": ["Who kept the light?"], "nets": ["Which keys occur?"]},
    '"facts"': {"facts": [{"label": "E1", "quote": "", "fact": "This part tells of Scrooge."}]},
    '"inferences"': {"inferences": []},
    '"answered"': {"answered": [1, 2]},
    '"supported"': {"answer": "Ada"},
}
PLACES = "the clock|the stair|the quay|the press|the organ|the well|the mill|the barn|the chapel|the pump".split("|")
PLANTED = [f"{who} hid a brass key behind {place}." for place in PLACES for who in ("The keeper", "His daughter")]
ASKED = "Where were brass keys hidden?"


def reply(request: dict[str, Any]) -> Behaviour:
    shape = request["messages"][-1]["content"].rpartition("Reply with JSON:")[2]
    return reply_with(json.dumps(next(out for field, out in REPLIES.items() if field in shape)), delay=LATENCY)


def serve() -> None:
    """Run the server: print its address, then wait for the end of standard input."""
    with OpenAIServer(reply) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def measure_waves(folder: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin
    assert server.stdout
    url = server.stdout.readline().strip()
    os.environ.setdefault("OPENAI_API_KEY", "none")  # the server asks for no key
    text = "\n\n".join(f"{n}. " + "Scrooge counted his money and went home. " * 20 for n in range(CHUNKS))
    with Tome.open(
        folder / "w.tome", model="openai:test", base_url=url, embedder="hash", settings={"passage_tokens": 250}
    ) as tome:
        tome.add(Document(id="text", text=text))
        seconds = {}
        for wave in (1, WAVE):
            start = time.perf_counter()
            answer = tome.ask(
                "Who kept the light?", system=f"read_through chunk=300 recovery=0 wave={wave}", fresh=True
            )
            whole, usage = time.perf_counter() - start, answer.cost
            seconds[wave] = usage.model_seconds
            chunks = find_detail(answer, "divided")["chunks"]
            print(
                f"waves of {wave}: {chunks} chunks, {usage.calls} calls, depth {usage.depth}, "
                f"{usage.model_seconds:.1f} s model, {whole:.1f} s in all"
            )
    print(f"waves of {WAVE} take {seconds[WAVE] / seconds[1]:.3f} of the sequential time")
    server.communicate()


def measure_recovery(folder: Path, seed: int) -> None:
    parts = NOVELLA.read_text(encoding="utf-8").split("\n\n")
    chosen = random.Random(seed).sample(range(len(parts)), len(PLANTED))
    for place, sentence in zip(chosen, PLANTED, strict=True):
        parts[place] += f" {sentence}"
    seen: set[str] = set()

    def overlook(given: Any) -> dict[str, object]:
        facts = []
        for piece in given.evidence:
            for sentence in PLANTED:
                if sentence in " ".join(piece.text.split()) and sentence in seen:
                    facts.append({"label": piece.label, "quote": sentence, "fact": sentence})
                elif sentence in " ".join(piece.text.split()):
                    seen.add(sentence)
        return {"facts": facts}

    plan = {"questions": [ASKED], "nets": []}
    empty: dict[str, object] = {}
    replies = {"plan_reading": lambda _: plan, "extract_notes": overlook, "answer": lambda _: {"answer": "there"}}
    model = ScriptedModel({**replies, "infer_notes": lambda _: empty, "refine_questions": lambda _: empty})
    with Tome.open(folder / f"{seed}.tome", model=model, embedder="bundled") as tome:
        tome.add(Document(id="carol", text="\n\n".join(parts)))
        answer = tome.ask(ASKED, system="read_through chunk=2000")
    shown = json.dumps([call.given.model_dump() for call in model.calls if call.role == "answer"], ensure_ascii=False)
    found = sum(sentence in shown for sentence in PLANTED)
    again, whole = (find_detail(answer, name)["tokens"] for name in ("recovered", "divided"))
    print(f"seed {seed}: {found} of {len(PLANTED)} found, {again / whole:.1%} of {whole:,} tokens read again")


def find_detail(answer: Answer, name: str) -> Mapping[str, Any]:
    return next(event.detail for event in answer.events if event.name == name)


def main() -> None:
    task = sys.argv[1] if len(sys.argv) > 1 else ""
    if task == "serve":
        serve()
        return
    with tempfile.TemporaryDirectory() as folder:
        if task in ("", "waves"):
            measure_waves(Path(folder))
        if task in ("", "recovery"):
            if not NOVELLA.is_file():
                print(f"skipped: {NOVELLA} is absent")
                return
            for seed in range(3):
                measure_recovery(Path(folder), seed)


if __name__ == "__main__":
    main()
