"""How long a small local model takes: to the first words of quick answers, and to ask twice of a text read whole.

    python bench/minutes.py NAME --url http://127.0.0.1:9970/v1

NAME is a model of that address, such as `openai:qwen` (see `../shared/tools/local_model.py`). The first quick question
measures its speed, by which `context` is lowered for those that follow. The text that is read whole is as much of the
novel as half of the window holds. Run it on a quiet machine: other work makes such a model ten times slower.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tomewise import Answer, Document, Tome

NOVEL = Path(__file__).resolve().parents[2] / "shared" / "data" / "novels" / "christmas_carol.txt"
QUICK = ("Who was Jacob Marley?", "What does Scrooge say about Christmas to his nephew?", "Who is Tiny Tim?")
WHOLE = ("Who was Jacob Marley?", "What does the nephew ask of Scrooge?")
CHARACTERS = 11_500  # of the text that is read whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--url", required=True)
    given = parser.parse_args()
    text = NOVEL.read_text("utf-8")
    for effort, body, questions in (("quick", text, QUICK), ("whole", text[:CHARACTERS], WHOLE)):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"base_url": given.url, "timeout": 1_800}
            with Tome.open(Path(folder) / "a.tome", model=given.model, settings=settings) as tome:
                tome.add(Document(id="novel", text=body))
                for question in questions:
                    began, first = time.perf_counter(), 0.0
                    for item in tome.stream(question, effort=effort):
                        if isinstance(item, Answer):
                            cost = item.cost
                        elif item.name == "answer_part" and not first:
                            first = time.perf_counter() - began
                    share = cost.cached_tokens / cost.input_tokens
                    print(
                        f"{effort}: {question} first words after {first:.0f} s, all after "
                        f"{time.perf_counter() - began:.0f} s; {cost}; {share:.0%} of the prompt from a cache",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
