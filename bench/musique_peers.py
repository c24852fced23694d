"""`graphrag`, `lightrag` and `memtree` on MuSiQue, beside dense and fused search: recall, and what an answer is shown.

`python bench/musique_peers.py` adds to the tome of `bench/musique.py` a graph of relations made of the published
triples (head, relation and tail are its description), communities with reports, and a MemTree; the extractive model
writes reports and summaries, and names keywords. Recall is over documents as in `musique.py`, by the
passages that each finds; for `graphrag` by those of its local search before any cut, and its global search ranks none.
`shown` is the share of the supporting documents of which a passage is in the answering call, at 6,000 tokens.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from musique import DATA, OUT, MusiqueQuestion, measure, open_tome, print_heading, print_progress, read_rows, show
from tomewise.evaluate.results import estimate_interval, resample_means
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.local_relations import LocalGraph
from tomewise.store.records import PASSAGES
from tomewise.systems.registry import assemble
from tomewise.tome.tome import Tome
from tomewise.types import Evidence, Question, Retriever, Scope

RANKED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "dense (`naive`)": ("naive", {}),
    "`hybrid`": ("hybrid", {}),
    "`memtree`": ("memtree", {}),
    "`memtree:without aggregation`": ("memtree", {"aggregation": False}),
    **{
        f"`lightrag mode={mode}`": ("lightrag", {"mode": mode, "gleanings": 0})
        for mode in ("local", "global", "hybrid", "mix")
    },
    "`lightrag:without keywords`": ("lightrag", {"keywords": False, "gleanings": 0}),
}
ASKED = (
    "naive",
    "hybrid",
    "memtree",
    "lightrag gleanings=0",
    "graphrag gleanings=0",
    "graphrag mode=global gleanings=0",
)


class Passages:
    """The passages that a retriever finds, in its order, without what stands for several."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        found = await self._retriever.retrieve(query, limit, within=within)
        return [piece for piece in found if piece.layer == PASSAGES]


class LocalPassages:
    """The passages of GraphRAG's local search, in its order, as a retriever."""

    def __init__(self, graph: LocalGraph) -> None:
        self._graph = graph

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]:
        return list(self._graph.find(query, within).passages[:limit])


def write_relations(path: Path) -> Path:
    """The published triples as rows of relations, which is what a graph of relations reads."""
    texts = {str(row["id"]): row["text"] for row in read_rows("corpus.jsonl")}
    names: dict[str, list[int]] = {}
    relations: dict[tuple[str, str, str], list[int]] = {}
    with path.open("w", encoding="utf-8") as lines:
        for index, row in enumerate(read_rows("openie.jsonl")):
            passage = {"kind": "passage", "index": index, "text": texts[str(row["id"])]}
            lines.write(json.dumps(passage) + "\n")
            triples = [[str(part) for part in each] for each in row["triples"] if len(each) == 3 and all(each)]
            for name in {*row["entities"], *(end for each in triples for end in (each[0], each[2]))}:
                names.setdefault(name, []).append(index)
            for head, relation, tail in triples:
                relations.setdefault((head, relation, tail), []).append(index)
        for name, passages in names.items():
            entity = {"kind": "entity", "name": name, "type": "", "description": "", "passages": passages}
            lines.write(json.dumps(entity) + "\n")
        for (head, relation, tail), passages in relations.items():
            found = {"kind": "relation", "head": head, "tail": tail, "keywords": relation, "passages": passages}
            lines.write(json.dumps({**found, "description": f"{head} {relation} {tail}."}) + "\n")
    return path


def build_all(tome: Tome) -> None:
    relations = write_relations(OUT / "musique_relations.jsonl")
    for system in ("graphrag gleanings=0", "memtree", "memtree:without aggregation"):
        given = {"extractions": relations} if system.startswith("graphrag") else {}
        report = tome.build(system, on_progress=print_progress, **given)
        print("\n".join(note for layer in report.layers for note in layer.notes), flush=True)


def show_asked(tome: Tome, questions: Sequence[MusiqueQuestion], document_of: Mapping[str, str]) -> None:
    print("\n| system | shown, all 60 |\n| --- | --- |")
    for system in ASKED:
        shares = []
        for question in questions:
            answer = tome.ask(Question(text=question.text, force=True), system=system)
            shown = {document_of[piece.id] for piece in answer.evidence if piece.layer == PASSAGES}
            shares.append(100 * len(question.documents & shown) / len(question.documents))
        low, high = estimate_interval(resample_means([shares])[0])
        print(f"| `{system}` | {fmean(shares):.1f} ({low:.0f} to {high:.0f}) |", flush=True)


async def show_ranked(tome: Tome, questions: Sequence[MusiqueQuestion], document_of: Mapping[str, str]) -> None:
    print_heading()
    for name, (system, options) in RANKED.items():
        show(name, await measure(Passages(assemble(system, tome.kit, **options).retriever), questions, document_of))
    local = LocalPassages(LocalGraph(tome.store, tome.kit.embedder, GraphNames("passages", "relations")))
    show("`graphrag`, passages of its local search", await measure(local, questions, document_of))


def main() -> None:
    if not DATA.is_dir():
        print("skipped: ../shared/data/musique is absent")
        return
    with open_tome(OUT / "musique.tome") as tome:
        build_all(tome)
        questions = [
            MusiqueQuestion(row["question"], frozenset(map(str, row["supporting"])))
            for row in read_rows("questions.jsonl")
        ]
        document_of = {passage.id: passage.document for passage in tome.store.passages().values()}
        asyncio.run(show_ranked(tome, questions, document_of))
        show_asked(tome, questions, document_of)


if __name__ == "__main__":
    main()
