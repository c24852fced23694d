"""How `tome find` counts, beside slow readings of our own and ripgrep, and how long it takes.

    python bench/find.py

Texts: the novels and meetings of `../shared/data`, MuSiQue's passages. Prints

- 200 words and phrases, drawn by hash: equal counts by a regular expression that knows only letters and figures;
- 60 names with another name that a script wrote into a text ("NAME (ALIAS)", "NAME, known as ALIAS"): all places;
- 50 patterns beside ripgrep (if it is installed) on the same files: counts of places, and the ratio of processor time;
- processor time of words over 1,000,000 characters, the best of five.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from tomewise import Document, Tome
from tomewise.evaluate.datasets import read_dataset
from tomewise.text.finding import make_finder

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WORD = re.compile(r"[^\W_]+")
PATTERNS = (
    r"\bSc\w+e\b", r"gh?ost", r"[A-Z][a-z]+ [A-Z][a-z]+", r"\d+", r"\d{4}", r"(?:Mr|Mrs)\. \w+", r"colou?r", r"ing\b",
    r"^The ", r"\?$", r"\bthe \w+ of the \w+", r"[aeiou]{3}", r"Christmas|Marley", r"\bM\w{4,6}\b", r"cried \w+",
    r"\w+ly\b", r"not \w+", r"[^\s]+-[^\s]+", r"\b[A-Z]{2,}\b", r"'\w+'", r"\(\w+\)", r"o{2}", r"th(?:is|at)",
    r"\bI\b", r"w.nd", r"qu", r"z", r"\bun\w+", r"(?:one|two|three) \w+s\b", r"never|ever", r"Dejah Thoris",
    r"\bred\b", r"green m[ae]n", r"[A-Z]\w+'s", r"shall", r"--", r"\.{3}", r"; ", r"\bof\b.*\bof\b", r"\bno\b",
    r"sh[aeiou]\w", r"\bx\w*", r"ee[dn]\b", r"[0-9]+[.,][0-9]+", r"M\.", r"and, ", r"Tars? T", r"water|air",
    r"^Chapter", r"king\b",
)  # fmt: skip


def measure(work: Callable[[], object]) -> float:
    """Processor seconds of this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


def draw(items: list[str], count: int) -> list[str]:
    """So many of them, by their hashes."""
    return sorted(set(items), key=lambda item: sha256(item.encode()).hexdigest())[:count]


def read_texts() -> dict[str, str]:
    """The novels, ten meetings, and MuSiQue's passages as one text."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((DATA / "novels").glob("*.txt"))}
    meetings = read_dataset("qmsum", DATA / "qmsum").documents
    texts |= {f"meeting {number}": each.text for number, each in enumerate(list(meetings)[:10])}
    texts["musique"] = (DATA / "musique" / "corpus.jsonl").read_text(encoding="utf-8")[:1_000_000]
    return texts


def count_words(texts: dict[str, str]) -> tuple[int, int]:
    """How many of 200 words and phrases have equal counts; the slow reading knows letters, figures and blanks alone."""
    plain = {name: text for name, text in texts.items() if text.isascii()}
    words = [word.lower() for text in plain.values() for word in WORD.findall(text) if word.isalpha()]
    pairs = [f"{first} {second}" for first, second in pairwise(words)]
    wanted = [*draw(words, 120), *draw(pairs, 80)]
    equal = 0
    for each in wanted:
        spelt = r"[^\w]+".join(map(re.escape, each.split()))
        slow = re.compile(rf"(?i)(?<![^\W_]){spelt}(?![^\W_])")
        find = make_finder(each)
        counts = [(len(slow.findall(text)), sum(1 for _ in find(text))) for text in plain.values()]
        equal += all(first == second for first, second in counts)
        if any(first != second for first, second in counts):
            print(f"  differs: {each!r} {[pair for pair in counts if pair[0] != pair[1]]}")
    return equal, len(wanted)


def count_names() -> tuple[int, int]:
    """How many of 60 names were found at each place where the script wrote them or their other name."""
    first, last = ("Ada", "Tom", "Ines", "Ole", "Zed"), ("Marsh", "Reed", "Quill", "Skov", "Thorle", "Vance")
    equal = total = 0
    with tempfile.TemporaryDirectory() as folder, Tome.open(Path(folder) / "a.tome", embedder="hash") as tome:
        for number in range(60):
            name = f"{first[number % 5]} {last[number % 6]}{'abcdefghij'[number // 6]}"
            alias = f"{'KLMNOP'[number % 6]}{'QRSTU'[number % 5]}X{'ABCDEFGHIJ'[number // 6]}"
            given = f"{name}, known as {alias}," if number % 2 else f"{name} ({name[0]}{name.split()[1][0]})"
            alias = alias if number % 2 else f"{name[0]}{name.split()[1][0]}"
            mentions = 3 + number % 7
            story = " ".join(f"On day {day} {alias if day % 2 else name} came." for day in range(mentions))
            tome.add(Document(id=f"d{number}", text=f"{given} lived at Skerry. {story}"))
            hits = tome.within(f"d{number}").find(name, kind="name")
            total += 1
            equal += hits.total == mentions + 2
            if hits.total != mentions + 2:
                print(f"  differs: {given!r} {hits.total} of {mentions + 2}, {hits.wanted}")
    return equal, total


def compare_with_ripgrep(texts: dict[str, str]) -> None:
    """Counts of places, line by line, and processor time."""
    program = shutil.which("rg")
    if program is None:
        print("ripgrep is not installed: not compared")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name.replace(" ", "-")).write_text(text, encoding="utf-8")
        files = sorted(Path(folder).iterdir())
        equal, ours, theirs = 0, 0.0, 0.0
        for pattern in PATTERNS:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            ran = subprocess.run(
                [program, "-o", "-I", "-N", "-a", "-j1", "--no-ignore", pattern, folder],
                capture_output=True,
                check=False,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            theirs += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            find = make_finder(pattern, "pattern", case=True)
            counts: list[int] = []
            ours += measure(lambda find=find, counts=counts: counts.extend(
                sum(1 for _ in find(file.read_text(encoding="utf-8"))) for file in files
            ))  # fmt: skip
            lines = ran.stdout.count(b"\n")
            equal += lines == sum(counts)
            if lines != sum(counts):
                print(f"  differs: {pattern!r} {lines} lines of ripgrep, {sum(counts)} places")
        print(
            f"patterns with equal counts: {equal} of {len(PATTERNS)}; processor time {ours / theirs:.2f} of ripgrep's"
        )


def main() -> int:
    """Print all of it."""
    if not DATA.exists():
        print(f"{DATA} does not exist: nothing to read")
        return 1
    texts = read_texts()
    print(f"texts: {len(texts)}, {sum(map(len, texts.values())):,} characters")
    print("words and phrases with equal counts: {} of {}".format(*count_words(texts)))
    print("names with another name, all places found: {} of {}".format(*count_names()))
    compare_with_ripgrep(texts)
    text = " ".join(texts.values())[:1_000_000]
    for words in ("ghost", "the", "of the"):
        find = make_finder(words)
        best = min(measure(lambda find=find: list(find(text))) for _ in range(5))
        print(f"{words!r} in 1,000,000 characters: {1000 * best:.0f} ms, {len(list(find(text))):,} places")
    return 0


if __name__ == "__main__":
    sys.exit(main())
