"""How much a link of an entity with a passage weighs, by the passage's title."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.mentions import LONGEST
from tomewise.store.key_indices import find_known_indices
from tomewise.store.lookups import find_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Readable

_WHOLE, _PART = 3.0, 2.0
_NOTE = re.compile(r"\([^()]*\)\s*$")  # spaces before it would take a square of their number to look for


class TitleLinks:
    """Ours: a link weighs 3 if the entity is the title of the passage, 2 if the title contains it, otherwise 1.

    A title counts whole, and bare: without the parenthesis at its end. Weights are kept in memory, so that after a
    change only new links are weighed: their titles are read, and split into the names that they contain. A document
    with another title has new passages, so an index of these weights may be kept.
    """

    rule = f"titles:{_WHOLE}:{_PART}"

    def __init__(self, store: Readable, names: GraphNames) -> None:
        self._store = store
        self._names = names
        self._links = np.empty(0, np.int64)
        self._weights = np.empty(0)

    def weigh(self, entities: NDArray[np.int64], passages: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weights (n,) of links between entities (n,) and passages (n,), given by their keys."""
        links = _join_keys(entities, passages)
        order = np.argsort(links)
        places, is_known = find_known_indices(links[order], self._links)
        weights = np.ones(len(links))
        weights[is_known] = self._weights[places]
        if not is_known.all():
            new = order[~is_known]
            weights[~is_known] = self._weigh_new(entities[new], passages[new])
        self._links, self._weights = links[order], weights
        result = np.empty_like(weights)
        result[order] = weights
        return result

    def _weigh_new(self, entities: NDArray[np.int64], passages: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = np.ones(len(entities))
        keys, documents, _ = self._store.passage_order()
        order = np.argsort(keys)
        places, is_known = find_known_indices(passages, keys[order])
        document_of = documents[order][places]
        titles = self._read_titles(keys, documents, document_of)
        if not titles:
            return weights
        contained = self._find_contained(titles)
        links = _join_keys(entities[is_known], document_of)
        places, is_contained = find_known_indices(links, np.array(sorted(contained), np.int64))
        named = np.flatnonzero(is_known)[is_contained]
        weights[named] = [contained[link] for link in links[is_contained].tolist()]
        return weights

    def _read_titles(
        self, keys: NDArray[np.int64], documents: NDArray[np.int64], wanted: NDArray[np.int64]
    ) -> dict[int, str]:
        """The title of each of these documents that has one, read from one of its passages."""
        numbers, first = np.unique(documents, return_index=True)
        is_wanted = np.isin(numbers, wanted)
        passages = self._store.passages(keys[first[is_wanted]].tolist())
        number_of = dict(zip(keys[first].tolist(), numbers.tolist(), strict=True))
        return {number_of[key]: passage.title for key, passage in passages.items() if passage.title}

    def _find_contained(self, titles: dict[int, str]) -> dict[int, float]:
        """Weights by link, for all entities that are in one of the titles, given by the number of their document."""
        weights: dict[tuple[str, int], float] = {}
        for document, title in titles.items():
            words = normalise_name(title).split()
            wholes = {" ".join(words), normalise_name(strip_title(title))}
            for start in range(len(words)):
                for end in range(start + 1, min(len(words), start + LONGEST) + 1):
                    name = " ".join(words[start:end])
                    weights[self._names.entity(name), document] = _WHOLE if name in wholes else _PART
        keys = find_keys(self._store, {node for node, _ in weights})
        return {(keys[node] << 32) | document: weight for (node, document), weight in weights.items() if node in keys}


def strip_title(title: str) -> str:
    """The title without the parenthesis at its end that tells it from others."""
    return _NOTE.sub("", title).rstrip() or title


def _join_keys(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each pair of keys; keys are below 2 ** 31."""
    return (first << 32) | second
