"""Ask a question again with a name from a first passage in place of the words by which the passage is known.

Ours; calls no model. A question of several steps describes the thing that its second step is about, and the first
passages name it. From "currency in the country Signmark is from" and a passage on Signmark, which names Finland, comes
"currency in the country finland is from". A passage is then as near to the question as to the nearest of its rewrites.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

import numpy as np

from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.array_types import Floats, Keys, Ranking, Vectors, sort_keys
from tomewise.recall.mentions import select_named, strip_title
from tomewise.store.contract import Readable
from tomewise.store.lookups import find_derived
from tomewise.store.nearest import DECIMALS
from tomewise.store.records import PASSAGES
from tomewise.text.names import list_names
from tomewise.text.stop_words import STOP
from tomewise.text.words import stem
from tomewise.types import Embedder, Passage, PassageId, Rewrite

_FAMILIAR = 0.5  # from this share of its words on, a name is in the question
_NEAREST = 200  # passages that are lifted; what is further away would get less than a thousandth
_MOST_WORDS = 100  # of a question that is rewritten: in a longer one a name changes little, and each text would cost
_KEPT = 2048  # vectors of rewrites: 3 MB at 384 dimensions
LARGE = 512  # dimensions; an embedder of more takes long for each text on a processor


@dataclass(frozen=True, kw_only=True)
class Rewriting:
    """The constants of rewriting.

    A passage gets up to `weight`, and e times less for each `temperature` by which another is nearer. The first
    `passages` give up to `names` names each, or half as many where the embedder is slow. `drop` is taken off a cosine
    for each rank of the passage that gave the name.
    """

    weight: float
    passages: int
    names: int = 8
    temperature: float = 0.05
    drop: float = 0.02


@dataclass(frozen=True, slots=True)
class Lead:
    """The names in a passage, in their order, and the stems of the words of the question by which it is known."""

    source: PassageId
    names: Sequence[str]
    known: Collection[str]


@dataclass(frozen=True, eq=False)
class Lifts:
    """What the passages nearest to the question or to a rewrite get: `keys` ascending, `lifts`, both (n,).

    `rewrites` has those passages to which a rewrite is nearer than the question, with that rewrite.
    """

    keys: Keys
    lifts: Floats
    rewrites: Mapping[int, Rewrite]

    def add_to(self, keys: Keys, scores: Floats) -> tuple[Keys, Floats]:
        """All keys, ascending, and the sums of scores and lifts; what has neither counts as 0."""
        all_keys = np.union1d(keys, self.keys)
        sums = np.zeros(len(all_keys))
        sums[np.searchsorted(all_keys, keys)] += scores
        sums[np.searchsorted(all_keys, self.keys)] += self.lifts
        return all_keys, sums

    def select_brought(self, before: Sequence[int], after: Sequence[int]) -> dict[int, Rewrite]:
        """The rewrites of those passages that they brought: that stand higher in the ranking after than before."""
        places = {key: place for place, key in enumerate(before)}
        return {
            key: self.rewrites[key]
            for place, key in enumerate(after)
            if key in self.rewrites and place < places.get(key, place + 1)
        }


# From a question, its vector and the first passages of a ranking, by key, to their leads, in this order.
FindLeads: TypeAlias = Callable[[str, "Vectors", Mapping[int, Passage]], list[Lead]]


@dataclass(eq=False)
class Rewriter:
    """Rewrites questions and scores passages by them. All rewrites of a question are embedded in one call.

    The vectors of the last rewrites stay in memory, so that the same question costs nothing again.
    """

    store: Readable
    embedder: Embedder
    find_leads: FindLeads
    rewriting: Rewriting
    _vectors: OrderedDict[str, Vectors] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def find_lifts(self, question: str, vector: Vectors, first: Keys, among: Keys | None) -> Lifts:
        """The lifts of a question with this vector (d,); none if no lead among its `first` passages gives a rewrite."""
        leads = self.find_leads(question, vector, self.store.passages(first.tolist()))
        names = (self.rewriting.names + 1) // 2 if self.embedder.dimensions > LARGE else self.rewriting.names
        used = leads[: self.rewriting.passages] if self.rewriting.weight else ()
        rewrites = write_rewrites(question, used, names)
        if not rewrites:
            return Lifts(np.empty(0, np.int64), np.empty(0), {})
        ranks = np.array([0, *(rank for rank, _ in rewrites)])
        vectors = np.vstack((vector, self._embed([rewrite.text for _, rewrite in rewrites])))
        keys, cosines = self._find_cosines(vectors, among)
        scores = cosines - self.rewriting.drop * ranks
        nearest, best = scores.argmax(axis=1), scores.max(axis=1)
        lifts = self.rewriting.weight * np.exp((best - best.max(initial=-1)) / self.rewriting.temperature)
        brought = {
            key: rewrites[place - 1][1] for key, place in zip(keys.tolist(), nearest.tolist(), strict=True) if place
        }
        return Lifts(keys, lifts, brought)

    def _find_cosines(self, vectors: Vectors, among: Keys | None) -> tuple[Keys, Floats]:
        """The keys (n,) of the passages nearest to any of the vectors (v, d), and their cosines (n, v) with each."""
        while True:
            keys = np.sort(self.store.nearest(PASSAGES, vectors, _NEAREST, among=among).keys)
            try:
                rows = self.store.rows(PASSAGES, keys)
            except KeyError:  # a passage was removed between the two reads
                continue
            return keys, (rows @ vectors.T).astype(np.float64)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
        missing = [text for text in texts if text not in known]
        if missing:
            known |= zip(missing, self.embedder.embed(missing), strict=True)
        with self._lock:
            for text in texts:  # the oldest come first
                self._vectors.pop(text, None)
                self._vectors[text] = known[text]
            while len(self._vectors) > _KEPT:
                self._vectors.popitem(last=False)
        return np.stack([known[text] for text in texts])


def find_title_leads(question: str, vector: Vectors, first: Mapping[int, Passage]) -> list[Lead]:
    """The leads of those passages that are known by their title: the question has at least half of its words.

    Their names are those in the text, found by their form (`text.names`), which the question does not
    name, not even by half of their words: "Ellis, Kansas" leads nowhere in a question about Kansas.
    """
    stems = take_stems(question)
    leads = []
    for passage in first.values():
        if known := _find_familiar(passage.title, stems):
            names = [name for name in list_names(passage.text) if measure_share(name, stems) < _FAMILIAR]
            leads.append(Lead(passage.id, names, known))
    return leads


def _find_familiar(title: str, stems: Collection[str]) -> frozenset[str]:
    """The stems of the bare title if enough of them are among these; else none."""
    own = take_stems(strip_title(title))
    return own if len(own.intersection(stems)) >= _FAMILIAR * len(own) else frozenset()


@dataclass(frozen=True)
class GraphLeads:
    """All passages; their names are the entities extracted from them.

    A passage is known by those that the question names, or, if there are none, by its title as in `find_title_leads`.
    Names are in the order of the store; with `nearest_first`, those nearest to the question come first.
    """

    store: Readable
    names: GraphNames
    nearest_first: bool = False

    def find_leads(self, question: str, vector: Vectors, first: Mapping[int, Passage]) -> list[Lead]:
        """See `FindLeads`."""
        linked = find_derived(self.store, first, f"seen-in:{self.names.entities}")
        keys = sort_keys({entity for group in linked.values() for entity in group})
        if self.nearest_first:
            found, cosines = self.store.scores(self.names.entities, vector, among=keys)
            keys = found[np.argsort(-cosines, kind="stable")]
        entities = self.store.nodes_at(keys.tolist())
        stems = take_stems(question)
        leads = []
        for key, passage in first.items():
            own = set(linked[key])
            names = [entity.text for entity_key, entity in entities.items() if entity_key in own]
            known = {each for name in select_named(question, names) for each in take_stems(name)}
            leads.append(Lead(passage.id, names, known or _find_familiar(passage.title, stems)))
        return leads


def sort_ranking(keys: Keys, scores: Floats) -> Ranking:
    """Keys and scores, best first, ties by key."""
    order = np.lexsort((keys, -scores.round(DECIMALS)))
    return keys[order], scores[order]


def put_first(key: int, ranking: Ranking) -> Ranking:
    """The ranking with this passage just above all others; so the source of a name stays above what the name leads to.

    Without this, a question of one step loses its passage to one that a rewrite found.
    """
    keys, scores = ranking
    if keys[0] == key:
        return ranking
    is_other = keys != key
    return np.append(key, keys[is_other]), np.append(scores[0] * 1.001, scores[is_other])


def write_rewrites(question: str, leads: Sequence[Lead], names: int) -> list[tuple[int, Rewrite]]:
    """The rewrites of a question, each once, with the rank of the lead that gave the name.

    The first known word of the normalised question is replaced by the name, and the other known words are left out; if
    none is known, the name comes in front. Of each lead count the first `names` names that the question does not
    already have: at most half of their content words are in it. A question of more than 100 words has no rewrites.
    """
    words = normalise_name(question).split()
    if len(words) > _MOST_WORDS:
        return []
    in_question = take_stems(question)
    found: dict[str, tuple[int, Rewrite]] = {}
    for rank, lead in enumerate(leads):
        candidates = dict.fromkeys(map(normalise_name, lead.names))
        new_names = [name for name in candidates if name and measure_share(name, in_question) <= _FAMILIAR]
        is_known = [word not in STOP and stem(word) in lead.known for word in words]
        first = is_known.index(True) if True in is_known else 0
        rest = [word for word, known in zip(words[first:], is_known[first:], strict=True) if not known]
        for name in new_names[:names]:
            text = " ".join((*words[:first], name, *rest))
            found.setdefault(text, (rank, Rewrite(text=text, name=name, source=lead.source)))
    return list(found.values())


def take_stems(text: str) -> frozenset[str]:
    """The stems of the content words of a text."""
    return frozenset(map(stem, list_content_words(text)))


def list_content_words(text: str) -> list[str]:
    """The normalised words of a text that are no stop words, in their order."""
    return [word for word in normalise_name(text).split() if word not in STOP]


def measure_share(name: str, stems: Collection[str]) -> float:
    """The share of the name's content words whose stems are among these; 0 for a name without content words."""
    own = take_stems(name)
    return len(own.intersection(stems)) / len(own) if own else 0.0
