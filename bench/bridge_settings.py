"""How much the settings of rewriting matter: recall at 5 on MuSiQue with one of them changed at a time, and the figure.

    python bench/bridge_settings.py            # measures, prints the table
    python bench/bridge_settings.py --draw     # draws docs/drawings/associative-settings.svg from RESULTS.md

Each text is embedded once, so that a setting costs only the rest of 60 questions.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from musique import CUTS, DATA, OUT, MusiqueQuestion, measure, open_tome, read_rows
from tomewise.embedding.cached_embedder import ForwardingEmbedder
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble

if TYPE_CHECKING:
    from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
FIGURE = HERE.parent / "docs" / "drawings" / "associative-settings.svg"
START = "| system | setting | values | R@5 |"  # how the table begins
TRIED: Mapping[str, Mapping[str, Sequence[float]]] = {
    "associative": {
        "restart": (0.2, 0.3, 0.4, 0.5),
        "mention_weight": (0, 1, 4, 8, 16),
        "facts": (1, 2, 3, 5),
        "rewritten": (1, 2, 3, 4),
        "names": (2, 4, 8, 12),
        "rewriting": (0, 0.2, 0.7, 1.0, 2.0),
        "temperature": (0.03, 0.05, 0.07, 0.1),
        "drop": (0, 0.02, 0.05),
        "coverage": (0, 0.5, 1.0, 2.0),
    },
    "hybrid": {
        "words": (0, 0.1, 0.2, 0.4),
        "rewritten": (1, 2, 3, 4),
        "names": (2, 4, 8, 12),
        "rewriting": (0, 0.2, 0.4, 0.8, 1.6),
        "temperature": (0.03, 0.05, 0.07, 0.1),
        "drop": (0, 0.02, 0.05),
    },
}


def read_table(start: str) -> list[list[str]]:
    """The cells of the table of RESULTS.md that begins so, the heading first."""
    lines = iter((HERE / "RESULTS.md").read_text(encoding="utf-8").splitlines())
    rows = [next(line for line in lines if line.startswith(start))]
    next(lines)  # the rule below the heading
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(line)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


class EmbeddedOnce(ForwardingEmbedder):
    """The embedder, with a vector kept for each text."""

    def __init__(self, embedder: Any) -> None:
        super().__init__(embedder)
        self._rows: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if missing := [text for text in dict.fromkeys(texts) if text not in self._rows]:
            self._rows.update(zip(missing, self._embedder.embed(missing), strict=True))
        return np.stack([self._rows[text] for text in texts])


async def run() -> None:
    with open_tome(OUT / "musique.tome") as tome:
        kit = Kit(tome.store, tome.kit.model, EmbeddedOnce(tome.kit.embedder))
        document_of = {passage.id: passage.document for passage in tome.store.passages().values()}
        questions = [
            MusiqueQuestion(row["question"], frozenset(map(str, row["supporting"])))
            for row in read_rows("questions.jsonl")
        ]
        print(START)
        print("| --- | --- | --- | --- |")
        for system, settings in TRIED.items():
            for name, values in settings.items():
                found = []
                for value in values:
                    table = await measure(assemble(system, kit, **{name: value}).retriever, questions, document_of)
                    found.append(table[:, CUTS.index(5)].mean())
                tried, recalls = ", ".join(map(str, values)), ", ".join(f"{recall:.1f}" for recall in found)
                print(f"| `{system}` | `{name}` | {tried} | {recalls} |", flush=True)


def draw() -> str:
    """One curve for each setting, as SVG without colours of its own; its values stand in a row, the least first."""
    rows = [[cell.strip("`") for cell in row] for row in read_table(START)[1:]]
    described = (
        "One curve for each setting of associative and hybrid; only few names, no names, little weight cost much."
    )
    lines = [
        f'<svg viewBox="0 0 720 {120 * -(-len(rows) // 3)}" role="img" aria-labelledby="settings-title settings-desc"',
        '  xmlns="http://www.w3.org/2000/svg">',
        '<title id="settings-title">Recall at 5 with one setting changed at a time</title>',
        f'<desc id="settings-desc">{described}</desc>',
    ]
    for index, (system, name, values, recalls) in enumerate(rows):
        left, top = 240 * (index % 3) + 10, 120 * (index // 3) + 20
        lines.append(f'<text class="small strong" x="{left}" y="{top - 5}">{system}: {name}</text>')
        lines.append(f'<path d="M{left} {top + 70} h210"/>')
        tried, numbers = values.split(", "), [float(recall) for recall in recalls.split(", ")]
        places = [(left + 20 + 40 * place, top + 70 - 1.6 * (recall - 60)) for place, recall in enumerate(numbers)]
        points = " L".join(f"{x:g} {y:g}" for x, y in places)
        lines.append(f'<path class="chosen" d="M{points}"/>')
        for (x, y), value, recall in zip(places, tried, numbers, strict=True):
            lines.append(f'<text class="small middle" x="{x:g}" y="{y - 6:g}">{recall:g}</text>')
            lines.append(f'<text class="small middle" x="{x:g}" y="{top + 84}">{value}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="draw the figure from the table of RESULTS.md")
    if parser.parse_args().draw:
        FIGURE.write_text(draw(), encoding="utf-8")
    elif DATA.is_dir():
        asyncio.run(run())
    else:
        print("skipped: ../shared/data/musique is absent")


if __name__ == "__main__":
    main()
