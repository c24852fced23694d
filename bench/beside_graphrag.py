"""Contexts of our `graphrag` and of the released GraphRAG 3.3.0 side by side: equal input, ordered ids before cuts.

The novel with its given graph, our partition and our reports for both. The peer's context builders are called directly,
in an environment of its own (1.2 GB, made once with pip), with the entities that our search finds: what is compared is
the order of reports, relations and passages of local search, and of reports in global search.

    python bench/beside_graphrag.py --install            # makes the environment first
    python bench/beside_graphrag.py [--environment FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tomewise.store.lookups import read_sources

PEER = "graphrag==3.3.0"
LEVEL = 2
PARTS = ("reports", "relations", "ranks", "passages", "global")
TIE = 1e-6  # for each place in the order of ids: the peer leaves ties as they come
Contexts = dict[str, list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=Path(tempfile.gettempdir()) / "graphrag-peer")
    parser.add_argument("--install", action="store_true", help="make the environment: 1.2 GB from the package index")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        json.dump(asyncio.run(run_peer(json.load(sys.stdin))), sys.stdout)
        return
    python = given.environment / "bin" / "python"
    if not python.exists() and not given.install:
        print(f"skipped: {given.environment} is absent, where the released package would be; --install makes it")
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", given.environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PEER], check=True)
    tables, ours = run_ours()
    command = [str(python), __file__, "--inside"]
    ran = subprocess.run(command, input=json.dumps(tables), capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(ran.stderr)
    peers = json.loads(ran.stdout)
    for each in (ours, *peers.values()):
        for place, contexts in enumerate(each):
            contexts["ranks"] = rank_relations(tables, place, contexts["relations"])
    report(ours, peers)


# ---------------------------------------------------------------- ours


def run_ours() -> tuple[dict[str, Any], list[Contexts]]:
    """The tables for the peer, and our contexts for each question."""
    from communities import GRAPH, NAMES, TEXT, open_tome
    from sessions import NOVEL
    from tomewise.loops.local_search import rank_reports
    from tomewise.recall.community_reports import CommunityReports
    from tomewise.recall.local_relations import LocalGraph
    from tomewise.types import Document

    with tempfile.TemporaryDirectory() as folder:
        tome, _ = open_tome(folder)
        with tome:
            tome.add(Document(id="novel", text=TEXT))
            tome.build("hgmem", extractions=GRAPH)
            tome.build("graphrag gleanings=0")
            store, embedder = tome.store, tome.kit.embedder
            reports = CommunityReports(store, embedder, NAMES)
            shelf = reports.load(None)
            graph = LocalGraph(store, embedder, NAMES.graph)
            level = shelf.sort_by_weight(shelf.list_level(LEVEL))
            contexts, found_entities = [], []
            for question in NOVEL:
                found = graph.find(question, None)
                found_entities.append([str(key) for key in found.keys])
                contexts.append(
                    {
                        "reports": [each.report.id for each in rank_reports(found.keys, shelf, LEVEL)],
                        "relations": [piece.title for piece in found.relations[-1]],
                        "passages": [piece.id for piece in found.passages],
                        "global": [each.report.id for each in level],
                    }
                )
            return make_tables(tome, shelf, found_entities, list(NOVEL)), contexts


def make_tables(tome: Any, shelf: Any, found: Sequence[Sequence[str]], questions: Sequence[str]) -> dict[str, Any]:
    """Our graph, partition and reports as the rows of GraphRAG's tables. Ties are broken as we break them."""
    from communities import NAMES
    from tomewise.memory.communities.community_state import load_state

    store = tome.store
    state = load_state(store, NAMES)
    passages = store.passages()
    seen = read_sources(store, state.keys, NAMES.graph.entities)
    stated = read_sources(store, list(state.fact_nodes), NAMES.graph.facts)
    degrees = {vertex: len(edges) for vertex, edges in state.graph.neighbours.items()}
    homes, all_homes = shelf.find_homes(LEVEL), {}
    for each in shelf.communities.values():
        if each.level <= LEVEL:
            for member in each.members:
                all_homes.setdefault(member, []).append(each.report.id)

    def rank_pair(pair: tuple[int, int]) -> tuple[str, ...]:
        return tuple(sorted(state.entities[vertex].id for vertex in pair))

    relations = []
    for a, b in sorted(state.facts, key=rank_pair):
        where = dict.fromkeys(passage for key in state.facts[a, b] for passage in stated[key])
        relations.append(
            {
                "id": f"{state.entities[a].text}, {state.entities[b].text}",
                "source": state.entities[a].text,
                "target": state.entities[b].text,
                "rank": degrees[a] + degrees[b],
                "text_unit_ids": [passages[key].id for key in where],
            }
        )
    by_id = sorted(shelf.communities.values(), key=lambda each: each.report.id, reverse=True)
    return {
        "questions": list(questions),
        "found": list(found),
        "entities": [
            {
                "id": str(key),
                "title": state.entities[vertex].text,
                "rank": degrees.get(vertex, 0),
                "text_unit_ids": [passages[each].id for each in seen[key]],
                "community_ids": [shelf.communities[homes[key]].report.id] if key in homes else [],
                "all_community_ids": all_homes.get(key, []),
            }
            for vertex, key in enumerate(state.keys)
        ],
        "relations": relations,
        "passages": [{"id": passage.id, "text": passage.text} for passage in passages.values()],
        "reports": [
            {"id": each.report.id, "title": each.title, "level": each.level, "rank": 1 + each.importance + TIE * place}
            for place, each in enumerate(by_id)
        ],
        "level": [each.report.id for each in shelf.list_level(LEVEL)],
    }


def rank_relations(tables: Mapping[str, Any], place: int, shown: Sequence[str]) -> list[str]:
    """What orders relations, ties apart: inside of the found entities, or the links of the outer end; the rank."""
    names = {row["id"]: row["title"] for row in tables["entities"]}
    found = {names[entity] for entity in tables["found"][place]}
    rows = {row["id"]: row for row in tables["relations"]}
    links: dict[str, int] = {}
    for row in rows.values():
        for outer, inner in ((row["source"], row["target"]), (row["target"], row["source"])):
            if inner in found and outer not in found:
                links[outer] = links.get(outer, 0) + 1
    ends = [(rows[each], {rows[each]["source"], rows[each]["target"]} - found) for each in shown]
    return [f"{links[next(iter(outer))] if outer else 'inside'} {row['rank']}" for row, outer in ends]


# ---------------------------------------------------------------- the peer, in its own environment


class Tokens:
    """One token a text, so that nothing is cut."""

    def encode(self, text: str) -> list[int]:
        return [1] if text else []

    def num_tokens(self, text: str) -> int:
        return 1


async def run_peer(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The contexts of each question: with each entity in the deepest of its communities, and as released."""
    return {
        "deepest": [await build_contexts(tables, place, "community_ids") for place in range(len(tables["questions"]))],
        "released": [
            await build_contexts(tables, place, "all_community_ids") for place in range(len(tables["questions"]))
        ],
    }


async def build_contexts(tables: Mapping[str, Any], place: int, homes: str) -> dict[str, list[str]]:
    from graphrag.data_model.community_report import CommunityReport
    from graphrag.data_model.entity import Entity
    from graphrag.data_model.relationship import Relationship
    from graphrag.data_model.text_unit import TextUnit
    from graphrag.query.structured_search.global_search.community_context import GlobalCommunityContext
    from graphrag.query.structured_search.local_search.mixed_context import LocalSearchMixedContext

    found = tables["found"][place]
    results = [SimpleNamespace(document=SimpleNamespace(id=entity)) for entity in found]
    vectors = SimpleNamespace(similarity_search_by_text=lambda text, text_embedder, k: results[:k])
    entities = [
        Entity(
            id=row["id"],
            short_id=row["id"],
            title=row["title"],
            description=row["title"],
            rank=row["rank"],
            text_unit_ids=row["text_unit_ids"],
            community_ids=row[homes],
        )
        for row in tables["entities"]
    ]
    stated: dict[str, list[str]] = {}
    for row in tables["relations"]:
        for unit in row["text_unit_ids"]:
            stated.setdefault(unit, []).append(row["id"])
    released = homes != "community_ids"
    wanted = {each for row in tables["entities"] for each in row[homes]} if released else set(tables["level"])
    reports = [
        CommunityReport(
            id=row["id"],
            short_id=row["id"],
            title=row["title"],
            community_id=row["id"],
            summary=row["title"],
            full_content=row["title"],
            rank=row["rank"],
        )
        for row in tables["reports"]
        if row["id"] in wanted
    ]
    local = LocalSearchMixedContext(
        entities=entities,
        entity_text_embeddings=vectors,
        text_embedder=SimpleNamespace(),
        text_units=[
            TextUnit(id=row["id"], short_id=row["id"], text=row["text"], relationship_ids=stated.get(row["id"], []))
            for row in tables["passages"]
        ],
        community_reports=reports,
        relationships=[
            Relationship(
                id=row["id"],
                short_id=row["id"],
                source=row["source"],
                target=row["target"],
                description=row["id"],
                rank=row["rank"],
                text_unit_ids=row["text_unit_ids"],
            )
            for row in tables["relations"]
        ],
        tokenizer=Tokens(),
    )
    built = local.build_context(tables["questions"][place], max_context_tokens=10**9, top_k_mapped_entities=10)
    whole = GlobalCommunityContext(community_reports=reports, communities=[], entities=entities, tokenizer=Tokens())
    ranked = await whole.build_context(
        tables["questions"][place],
        shuffle_data=False,
        include_community_rank=True,
        use_community_summary=False,
        max_context_tokens=10**9,
    )
    records = built.context_records
    return {
        "reports": list(records["reports"]["id"]),
        "relations": list(records["relationships"]["id"]),
        "passages": list(records["sources"]["id"]),
        "global": list(ranked.context_records["reports"]["id"]),
    }


# ---------------------------------------------------------------- both


def report(ours: Sequence[Contexts], peers: Mapping[str, Sequence[Contexts]]) -> None:
    """For each part, how many questions have equal ordered ids, and the first difference of others."""
    for name, theirs in peers.items():
        for part in PARTS:
            pairs = [(list(own[part]), list(peer[part])) for own, peer in zip(ours, theirs, strict=True)]
            equal = sum(own == peer for own, peer in pairs)
            sets = sum(set(own) == set(peer) for own, peer in pairs)
            sizes = sum(len(own) for own, _ in pairs), sum(len(peer) for _, peer in pairs)
            counts = f"{sizes[0]} ours, {sizes[1]} theirs"
            print(f"{name:>9} {part:>9}: equal order {equal} of {len(pairs)}, equal sets {sets}; {counts}")
            for own, peer in pairs:
                if own != peer:
                    at = next((i for i, (a, b) in enumerate(zip(own, peer, strict=False)) if a != b), len(own))
                    print(f"           first difference at {at}: {own[at : at + 1]} / {peer[at : at + 1]}")
                    break


if __name__ == "__main__":
    main()
