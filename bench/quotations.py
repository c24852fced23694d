"""What Tomewise quotes without a model: whether one of its three sentences holds the answer, and what it declines.

    .venv/bin/python bench/quotations.py [SET ...] [--misses]

The sets, asked through `Tome.ask` with `hybrid`: `mixed` has plain questions over small files, half of which were not
made for this; `messy` is asked of the thirty files of `messy.py`; `novel` has reworded ones about a novel; `musique`
questions of two to four steps, where a sentence counts that has the answer's words; `unanswerable` are asked of these
but `messy`, which has its own. `quotations.jsonl` names the sentences that answer.
The weights are of a prototype that was tuned on other questions; the threshold for declining was chosen on these.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from messy import make_folder
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.sample import STORY
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Document, Embedder

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data"
NOVEL = DATA / "novels" / "christmas_carol.txt"
MUSIQUE = DATA / "musique"
SETS = ("mixed", "messy", "novel", "musique", "unanswerable", "messy, unanswerable")
PACKAGES = ("h11", "anyio", "idna", "certifi", "click", "pluggy", "python-dateutil", "uvicorn", "tqdm")


class CountingEmbedder:
    """Passes texts on, and counts the longest list of them."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Any:
        self.most = max(self.most, len(texts))
        return self._embedder.embed(texts)


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_questions() -> list[dict[str, Any]]:
    """The questions of all sets, each with its place in its set, from 1."""
    rows = read_rows(HERE / "quotations.jsonl")
    if MUSIQUE.is_dir():
        for row in read_rows(MUSIQUE / "questions.jsonl"):
            rows.append({"set": "musique", "question": row["question"], "sentences": row["answers"]})
    for name in SETS:
        for place, row in enumerate((row for row in rows if row["set"] == name), 1):
            row["place"] = place
    return rows


def add_texts(name: str, tome: Tome, folder: Path) -> None:
    """Fill a tome with the texts of a set."""
    if name == "novel":
        tome.add(NOVEL)
    elif name == "messy":
        make_folder(folder / "files")
        assert len(tome.add(folder / "files").skipped) == 0
    elif name == "musique":
        rows = read_rows(MUSIQUE / "corpus.jsonl")
        tome.add(*(Document(id=str(row["id"]), text=row["text"], title=row["title"]) for row in rows))
    else:
        pages = folder / "pages"
        pages.mkdir()
        for package in PACKAGES:
            about = metadata(package)
            suffix = ".md" if "markdown" in (about["Description-Content-Type"] or "") else ".txt"
            text = about.get_payload() or about["Description"]
            (pages / f"{package}{suffix}").write_text(str(text), encoding="utf-8")
        tome.add(pages, HERE / "quotations", *(HERE.parent / file for file in ("LICENSE", "SECURITY.md")), STORY)


def fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def check(answer: Answer, tome: Tome) -> None:
    """Every quotation is whole, and none is more than partly supported."""
    assert answer.claimed != "full"
    for quote in answer.quotes:
        assert tome.store.text_between(quote.document, quote.start, quote.end) == quote.text


def find_hits(row: dict[str, Any], answer: Answer) -> list[bool]:
    """For each sentence that is shown, whether it answers."""
    wanted = list(map(fold, row.get("sentences", ())))
    shown = [fold(statement.text) for statement in answer.statements]
    return [any(words in text for words in wanted) for text in shown]


def ask_all(rows: Sequence[dict[str, Any]], *, print_misses: bool) -> None:
    counting = CountingEmbedder(choose_embedder("bundled"))
    with tempfile.TemporaryDirectory() as made:
        for name in dict.fromkeys(row.get("within", row["set"]) for row in rows):
            folder = Path(made) / name
            folder.mkdir()
            with Tome.open(folder / "it.tome", model="extractive", embedder=counting) as tome:  # type: ignore[arg-type]
                add_texts(name, tome, folder)
                counting.most = 0
                texts = [fold(tome.documents[record.id].text) for record in tome.documents]
                for row in rows:
                    if row.get("within", row["set"]) != name:
                        continue
                    if name == row["set"] != "musique":
                        absent = [each for each in row["sentences"] if not any(fold(each) in text for text in texts)]
                        assert not absent, f"in no text: {absent}"
                    answer = tome.ask(row["question"], system="hybrid")
                    check(answer, tome)
                    row["hits"], row["declined"] = find_hits(row, answer), not answer.resolved
                    if print_misses and not any(row["hits"]) and "unanswerable" not in row["set"]:
                        print(f"{row['question']} ({answer.missing})", file=sys.stderr)
                        for statement in answer.statements:
                            print(f"    {fold(statement.text)[:160]}", file=sys.stderr)
            print(f"{name}: at most {counting.most} texts embedded at once, the question and its rewrites among them")


def write_share(flags: Sequence[bool]) -> str:
    return f"{100 * sum(flags) / len(flags):.0f} ({sum(flags)} of {len(flags)})" if flags else "–"


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    print("| set | first sentence | three: odd | even | all | declined: odd | even | all |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    groups = {name: [row for row in rows if row["set"] == name] for name in SETS}
    groups["mixed, not made for this"] = [row for row in rows if row.get("made") is False]
    groups["all answerable"] = [row for row in rows if "unanswerable" not in row["set"]]
    for name, group in groups.items():
        halves = [[row for row in group if row["place"] % 2 == odd] for odd in (1, 0)]
        cells = [write_share([row["hits"][:1] == [True] for row in group])]
        cells += [write_share([any(row["hits"]) for row in part]) for part in (*halves, group)]
        cells = ["–"] * 4 if "unanswerable" in name else cells
        cells += [write_share([row["declined"] for row in part]) for part in (*halves, group)]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"any of {', '.join(SETS)}; all by default")
    parser.add_argument("--misses", action="store_true", help="print what is shown where no sentence answers")
    options = parser.parse_args()
    rows = [row for row in read_questions() if row["set"] in (options.sets or SETS)]
    for name, path in (("novel", NOVEL), ("musique", MUSIQUE)):
        if not path.exists():
            print(f"skipped: {name}, since {path} is absent")
            rows = [row for row in rows if row.get("within", row["set"]) != name]
    ask_all(rows, print_misses=options.misses)
    print_table(rows)


if __name__ == "__main__":
    main()
