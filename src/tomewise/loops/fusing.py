"""One ranking of what several searches of a question found: the first half of the rule for the last prompt.

Ours; the second half is `loops.layout`. Every search counts by rank, so a passage that several searches find comes
before one that a single search finds; so do the passages before and after a hit, which often hold the rest of it. The
optimum is flat: a damping of 2 to 10 and other weights change little (`bench/last_prompt.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tomewise.recall.ranking import as_evidence, rank_evidence
from tomewise.store.nearest import DECIMALS
from tomewise.store.records import PASSAGES
from tomewise.types import Evidence, NodeId, Scope

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

DEPTH = 60  # pieces of evidence that each search gives, whatever the loop itself reads of them
_DAMPING = 2
_BESIDE = 0.5
_QUERIES = 3  # the queries of a loop together count at most as much as so many questions


@dataclass(frozen=True, slots=True)
class Searched:
    """What one search of a question found, best first. A search with the question itself has the weight 1.

    The passages before and after a hit get the share `beside` of its score.
    """

    found: Sequence[Evidence]
    weight: float = 1.0
    beside: float = _BESIDE


def weigh_queries(found: Sequence[Sequence[Evidence]]) -> list[Searched]:
    """What searches with the queries of a loop found; together they count at most as three questions."""
    return [Searched(ranking, min(1.0, _QUERIES / len(found))) for ranking in found]


def fuse(store: Texts, searches: Sequence[Searched], within: Scope | None) -> list[Evidence]:
    """All evidence of the searches, and neighbours of passages, best first; ties by id. Scores are the fused ones.

    Each passage gets what the passages before and after it have for those `beside` them; some of these are new. A scope
    of entities admits no neighbours, since these need not see the entities.
    """
    pieces: dict[NodeId, Evidence] = {}
    scores: dict[NodeId, float] = defaultdict(float)
    beside: dict[NodeId, float] = defaultdict(float)
    for search in searches:
        for rank, piece in enumerate(search.found):
            pieces.setdefault(piece.id, piece)
            score = search.weight / (_DAMPING + rank)
            scores[piece.id] += score
            beside[piece.id] += search.beside * score
    if not (within and (within.entities is not None or within.without_entities)):
        found = store.find(node for node in pieces if pieces[node].layer == PASSAGES)
        nodes = {each.key: node for node, each in found.items()}
        around = store.find_neighbours(nodes, 1)
        new = store.passages({key for keys in around.values() for key in keys if key not in nodes})
        for key, passage in new.items():
            nodes[key] = passage.id
            pieces[passage.id] = as_evidence(passage, 0.0)
        for hit, keys in around.items():
            for key in keys:
                if key in nodes:
                    scores[nodes[key]] += beside[nodes[hit]]
    return rank_evidence(replace(piece, score=round(scores[node], DECIMALS)) for node, piece in pieces.items())
