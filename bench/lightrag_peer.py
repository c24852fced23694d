"""Our `lightrag` beside the package lightrag-hku: the ordered entities, relations and passages of each mode.

    python -m venv /tmp/peer && /tmp/peer/bin/pip install lightrag-hku==1.5.7      # once; all else is offline
    python bench/lightrag_peer.py ours FOLDER && /tmp/peer/bin/python bench/lightrag_peer.py peer FOLDER
    python bench/lightrag_peer.py compare FOLDER

Both search one made-up graph of 60 entities over 80 passages with the keywords of 10 questions and equal random
vectors, before any cut: orders are compared, not answers. Entities have no descriptions, so their vectors are those of
their names. Relations of entities have ties, which the package orders by its storage and we by ids: beside their order
stands that of their ranks (the neighbours of both ends, then passages).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODES = ("local", "global", "hybrid", "mix")
KINDS = ("entities", "relations", "passages")
SEPARATOR = "<SEP>"
EVERYTHING = 10**6  # tokens

Relation = dict[str, Any]


def make_graph() -> dict[str, Any]:
    """Passages of two to four entities each, with relations between them; questions with keywords."""
    dice = random.Random(42)
    words = [
        f"{first}{second}"
        for first in ("bar", "cal", "dor", "fen", "gil", "hol", "mar")
        for second in ("an", "et", "ic", "os", "um", "ey")
    ]
    names = list(dict.fromkeys(" ".join(dice.sample(words, 3)) for _ in range(60)))
    relations: dict[tuple[str, str], Relation] = {}
    passages = []
    for number in range(80):
        chosen = sorted(dice.sample(names, dice.choice((2, 3, 3, 4))))
        text = f"passage {number}: " + " ".join(dice.choice(words) for _ in range(30))
        pairs = [pair for pair in combinations(chosen, 2) if dice.random() < 0.7] or [(chosen[0], chosen[1])]
        for pair in pairs:
            made = {"keywords": dice.choice(words), "description": " ".join(dice.sample(words, 5)), "passages": []}
            relations.setdefault(pair, made)["passages"].append(number)
        passages.append({"text": text, "entities": chosen, "pairs": pairs})
    questions = [
        {
            "question": " ".join(dice.sample(words, 6)),
            "details": [" ".join(dice.sample(words, 2)) for _ in range(2)],
            "themes": [" ".join(dice.sample(words, 2)) for _ in range(2)],
        }
        for _ in range(10)
    ]
    rows = [{"ends": list(pair), **relation} for pair, relation in relations.items()]
    return {"passages": passages, "relations": rows, "questions": questions}


def name_texts(graph: dict[str, Any]) -> dict[str, str]:
    """The texts that the package embeds, each with the text that we embed for the same thing."""
    texts = {f"{name}\n": name for passage in graph["passages"] for name in passage["entities"]}
    for each in graph["relations"]:
        (a, b), keywords, description = each["ends"], each["keywords"], each["description"]
        texts[f"{keywords}\t{a}\n{b}\n{description}"] = f"{keywords}: {a}, {b}. {description}"
    own = [passage["text"] for passage in graph["passages"]]
    for each in graph["questions"]:
        own += [each["question"], ", ".join(each["details"]), ", ".join(each["themes"])]
    return texts | {text: text for text in own}


async def search_ours(graph: dict[str, Any], folder: Path) -> dict[str, Any]:
    from tomewise.memory.building import build
    from tomewise.memory.graph.graph_layer import GraphLayer
    from tomewise.recall.keyword_graph import KeywordGraph
    from tomewise.store.sql.sql_store import SqlStore
    from tomewise.testing import HashEmbedder, ScriptedModel, put_document
    from tomewise.types import Document

    class RandomVectors(HashEmbedder):
        """A vector of its own for each text: no ties."""

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            seeds = [int.from_bytes(sha256(text.encode()).digest()[:8], "big") for text in texts]
            rows = np.array([np.random.default_rng(seed).normal(size=self.dimensions) for seed in seeds])
            rows = rows.reshape(len(texts), self.dimensions)
            return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    embedder = RandomVectors(256)
    relations = {tuple(each["ends"]): each for each in graph["relations"]}
    passages = {passage["text"]: passage for passage in graph["passages"]}
    keywords = {each["question"]: each for each in graph["questions"]}

    def extract(given: Any) -> dict[str, Any]:
        passage = passages[given.text]
        rows = [(pair, relations[tuple(pair)]) for pair in passage["pairs"]]
        return {
            "entities": [{"name": name, "type": "thing", "description": ""} for name in passage["entities"]],
            "relationships": [
                {"source": a, "target": b, "description": each["description"], "keywords": [each["keywords"]]}
                for (a, b), each in rows
            ],
        }

    model = ScriptedModel({"extract_relations": extract, "keywords": lambda given: keywords[given.question]})
    store = SqlStore.open(folder / "a.tome")
    for number, passage in enumerate(graph["passages"]):
        put_document(store, embedder, Document(id=f"d{number}", text=passage["text"]))
    layer = GraphLayer(store, model, embedder, style="relations")
    await build([layer], store, lambda _: None)
    numbers = {passage.id: int(passage.document[1:]) for passage in store.passages().values()}
    found = {}
    for mode in MODES:
        recall = KeywordGraph(
            store, embedder, model, layer.names, lambda pieces: [1] * len(pieces), mode=mode, room=EVERYTHING
        )
        for number, each in enumerate(graph["questions"]):
            pieces = await recall.retrieve(each["question"], EVERYTHING)
            found[f"{mode} {number}"] = {
                "entities": [piece.text for piece in pieces if piece.layer == "entities"],
                "relations": [piece.title.split(", ") for piece in pieces if piece.layer == "facts"],
                "passages": [numbers[piece.id] for piece in pieces if piece.layer == "passages"],
            }
    store.close()
    texts = name_texts(graph)
    rows = embedder.embed(list(texts.values()))
    vectors = dict(zip(texts, rows.tolist(), strict=True))
    return {"found": found, "vectors": vectors}


async def search_peer(graph: dict[str, Any], vectors: dict[str, list[float]], folder: Path) -> dict[str, Any]:
    from lightrag import LightRAG, QueryParam
    from lightrag.utils import EmbeddingFunc, Tokenizer, compute_mdhash_id

    class Words:
        def encode(self, content: str) -> list[int]:
            return [ord(letter) for letter in content]

        def decode(self, tokens: list[int]) -> str:
            return "".join(map(chr, tokens))

    async def embed(texts: list[str], **_: Any) -> Any:
        return np.array([vectors[text] for text in texts], np.float32)

    async def refuse(*_: Any, **__: Any) -> str:
        raise RuntimeError("no model is asked here")

    rag = LightRAG(
        working_dir=str(folder / "peer"),
        embedding_func=EmbeddingFunc(embedding_dim=256, max_token_size=8192, func=embed),
        llm_model_func=refuse,
        tokenizer=Tokenizer("words", Words()),
        vector_db_storage_cls_kwargs={"cosine_better_than_threshold": -1.0},
    )
    await rag.initialize_storages()
    texts = [passage["text"] for passage in graph["passages"]]
    seen: dict[str, list[int]] = {}
    for number, passage in enumerate(graph["passages"]):
        for name in passage["entities"]:
            seen.setdefault(name, []).append(number)
    await rag.ainsert_custom_kg(
        {
            "chunks": [{"content": text, "source_id": f"s{number}"} for number, text in enumerate(texts)],
            "entities": [
                {"entity_name": name, "entity_type": "thing", "description": "", "source_id": f"s{numbers[0]}"}
                for name, numbers in seen.items()
            ],
            "relationships": [
                {
                    "src_id": each["ends"][0], "tgt_id": each["ends"][1], "description": each["description"],
                    "keywords": each["keywords"], "source_id": f"s{each['passages'][0]}",
                }
                for each in graph["relations"]
            ],
        }
    )  # fmt: skip
    ids = [compute_mdhash_id(text, prefix="chunk-") for text in texts]
    knowledge = rag.chunk_entity_relation_graph
    for name, numbers in seen.items():  # this way of inserting knows one passage for each
        node = await knowledge.get_node(name)
        await knowledge.upsert_node(name, {**node, "source_id": SEPARATOR.join(ids[number] for number in numbers)})
    for each in graph["relations"]:
        a, b = each["ends"]
        edge = await knowledge.get_edge(a, b)
        sources = SEPARATOR.join(ids[number] for number in each["passages"])
        await knowledge.upsert_edge(a, b, {**edge, "source_id": sources, "weight": float(len(each["passages"]))})
    found = {}
    for mode in MODES:
        for number, each in enumerate(graph["questions"]):
            asked = QueryParam(
                mode=mode, ll_keywords=each["details"], hl_keywords=each["themes"], top_k=40, chunk_top_k=20,
                max_entity_tokens=EVERYTHING, max_relation_tokens=EVERYTHING, max_total_tokens=10 * EVERYTHING,
                enable_rerank=False,
            )  # fmt: skip
            data = (await rag.aquery_data(each["question"], asked))["data"]
            found[f"{mode} {number}"] = {
                "entities": [entity["entity_name"] for entity in data["entities"]],
                "relations": [[row["src_id"], row["tgt_id"]] for row in data["relationships"]],
                "passages": [ids.index(chunk["chunk_id"]) for chunk in data["chunks"]],
            }
    await rag.finalize_storages()
    return found


def compare(graph: dict[str, Any], ours: dict[str, Any], peer: dict[str, Any]) -> None:
    """Print, by mode and kind, of how many questions order, content, and ranks of relations are equal."""
    ranks = rank_relations(graph)
    for mode in MODES:
        keys = [key for key in ours if key.startswith(f"{mode} ")]
        for kind in KINDS:
            lists = [(read_list(ours[key], kind), read_list(peer[key], kind)) for key in keys]
            ordered = sum(own == theirs for own, theirs in lists)
            same = sum(set(own) == set(theirs) for own, theirs in lists)
            sizes = f"{min(len(own) for own, _ in lists):3} to {max(len(own) for own, _ in lists):3}"
            print(f"{mode:7} {kind:10} {sizes} each: equal order {ordered:2}, equal content {same:2}", end="")
            if kind == "relations":
                ranked = sum([ranks[each] for each in own] == [ranks[each] for each in theirs] for own, theirs in lists)
                print(f", equal ranks {ranked:2}", end="")
            print(f" of {len(keys)}")
            for own, theirs in lists:
                if kind != "relations" and own != theirs:
                    print(f"    {find_first_difference(own, theirs)}")


def rank_relations(graph: dict[str, Any]) -> dict[Any, tuple[int, int]]:
    """How many neighbours the ends of each relation have together, and how many passages state it."""
    degrees = Counter(end for each in graph["relations"] for end in each["ends"])
    return {
        tuple(sorted(each["ends"])): (sum(degrees[end] for end in each["ends"]), len(each["passages"]))
        for each in graph["relations"]
    }


def read_list(found: dict[str, Any], kind: str) -> list[Any]:
    return [tuple(sorted(each)) if kind == "relations" else each for each in found[kind]]


def find_first_difference(own: list[Any], theirs: list[Any]) -> str:
    at = next((at for at, (a, b) in enumerate(zip(own, theirs, strict=False)) if a != b), min(len(own), len(theirs)))
    return f"{at}: {own[at : at + 2]} {theirs[at : at + 2]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ours", "peer", "compare"], nargs="?")
    parser.add_argument("folder", type=Path, nargs="?")
    arguments = parser.parse_args()
    if not arguments.folder:
        raise SystemExit(print("skipped: it needs an environment of its own; --help says how"))
    folder = arguments.folder
    graph = make_graph()
    if arguments.what == "ours":
        folder.mkdir(parents=True, exist_ok=True)
        result = asyncio.run(search_ours(graph, folder))
        (folder / "vectors.json").write_text(json.dumps(result["vectors"]))
        (folder / "ours.json").write_text(json.dumps(result["found"]))
    elif arguments.what == "peer":
        vectors = json.loads((folder / "vectors.json").read_text())
        (folder / "peer.json").write_text(json.dumps(asyncio.run(search_peer(graph, vectors, folder))))
    else:
        compare(graph, *(json.loads((folder / f"{side}.json").read_text()) for side in ("ours", "peer")))
