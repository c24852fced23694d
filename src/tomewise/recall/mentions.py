"""The entities of a graph that a question or a title names."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import TypeVar

import numpy as np

from tomewise.memory.graph.entity_names import normalise_name, split_words
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.array_types import Floats, Keys, join_keys, sort_keys
from tomewise.store.contract import Readable, Texts
from tomewise.store.lookups import find_keys
from tomewise.store.nearest import find_known_indices

LONGEST = 10  # words of the longest entity names that are looked for
_WHOLE, _PART = 3.0, 2.0
_NOTE = re.compile(r"\([^()]*\)\s*$")  # spaces before it would take a square of their number to look for
T = TypeVar("T")
_Run = tuple[int, int]  # the first word, and the one after the last


def find_named_entities(store: Texts, names: GraphNames, question: str) -> set[int]:
    """The keys of the entities that a question names.

    A run of words counts if it is the name of an entity, if no longer such name contains it, and if one of its words,
    other than the question's first, is capitalised or has a digit. In a question without such a word, as people type
    them, runs of two words or more count.
    """
    ids = {run: names.entity(name) for run, name in _list_runs(question).items()}
    keys = find_keys(store, set(ids.values()))
    return set(_select_longest({run: keys[node] for run, node in ids.items() if node in keys}))


def select_named(question: str, names: Container[str]) -> list[str]:
    """Those of these normalised names that a question names, by the same rule."""
    return _select_longest({run: name for run, name in _list_runs(question).items() if name in names})


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

    def weigh(self, entities: Keys, passages: Keys) -> Floats:
        """The weights (n,) of links between entities (n,) and passages (n,), given by their keys."""
        links = join_keys(entities, passages)
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

    def _weigh_new(self, entities: Keys, passages: Keys) -> Floats:
        weights = np.ones(len(entities))
        keys, documents, _ = self._store.passage_order()
        order = np.argsort(keys)
        places, is_known = find_known_indices(passages, keys[order])
        document_of = documents[order][places]
        titles = self._read_titles(keys, documents, document_of)
        contained = self._find_contained(titles)
        links = join_keys(entities[is_known], document_of)
        places, is_contained = find_known_indices(links, sort_keys(contained))
        named = np.flatnonzero(is_known)[is_contained]
        weights[named] = [contained[link] for link in links[is_contained].tolist()]
        return weights

    def _read_titles(self, keys: Keys, documents: Keys, wanted: Keys) -> dict[int, str]:
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
            for start, end in _list_spans(len(words)):
                name = " ".join(words[start:end])
                weights[self._names.entity(name), document] = _WHOLE if name in wholes else _PART
        keys = find_keys(self._store, {node for node, _ in weights})
        return {(keys[node] << 32) | document: weight for (node, document), weight in weights.items() if node in keys}


def strip_title(title: str) -> str:
    """The title without the parenthesis at its end that tells it from others."""
    return _NOTE.sub("", title).rstrip() or title


def _list_runs(question: str) -> dict[_Run, str]:
    """The runs of words that may be names, normalised."""
    words = split_words(question)
    normal = [normalise_name(word) for word in words]
    name_words = {
        place for place, word in enumerate(words) if place and (word[0].isupper() or any(map(str.isdigit, word)))
    }
    return {
        (start, end): " ".join(normal[start:end])
        for start, end in _list_spans(len(words))
        if not name_words.isdisjoint(range(start, end)) or (not name_words and end - start > 1)
    }


def _list_spans(words: int) -> Iterator[_Run]:
    """All runs of so many words that are not longer than a name."""
    return ((start, end) for start in range(words) for end in range(start + 1, min(words, start + LONGEST) + 1))


def _select_longest(runs: Mapping[_Run, T]) -> list[T]:
    """What stands under the runs that no other contains."""
    return [
        found
        for (start, end), found in runs.items()
        if not any(a <= start and end <= b and (a, b) != (start, end) for a, b in runs)
    ]
