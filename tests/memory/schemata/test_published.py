"""CAM's clusters as published, through the layer, against a slow reading of section 4.1: batch by batch."""

from __future__ import annotations

import math
import random
from itertools import count

import numpy as np
import pytest
from tests.memory.memories import build_layer, remove_documents
from tests.store.plain_store import PlainStore

from tomewise.memory.schemata.schemata_layer import SchemataLayer
from tomewise.memory.schemata.schemata_names import SchemataRules
from tomewise.store.lookups import read_pairs, read_sources
from tomewise.store.records import PASSAGES, SETTINGS
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.types import Document, Passage, content_id

EMBEDDER = HashEmbedder(8)
PUBLISHED = "as published"
ALPHA, SIGMA, K, THETA = 0.7, 1.5, 4, 0.45


class SlowLevel:
    """One level: edges, and for each vertex its replicas, each as [neighbours, label]."""

    def __init__(self) -> None:
        self.near: dict = {}
        self.replicas: dict = {}

    def find_parts(self, vertex):
        """Connected components of the ego network of a vertex, without the vertex."""
        parts = [{near} for near in self.near[vertex]]
        for a in self.near[vertex]:
            for b in self.near[vertex]:
                if b in self.near[a]:
                    joined = [part for part in parts if a in part or b in part]
                    parts = [part for part in parts if part not in joined] + [set().union(*joined)]
        return sorted(parts, key=min)

    def take_in(self, near, split):
        """The graph is now `near`: replicas, labels; returns the clusters by label."""
        before, self.near = self.replicas, near
        known = [label for replicas in before.values() for _, label in replicas]
        unused = count(1 + max(known, default=-1))
        self.replicas, changed = {}, set()
        for vertex in sorted(near):
            parts = self.find_parts(vertex) if split else [near[vertex]] if near[vertex] else []
            self.replicas[vertex] = own = []
            for part in parts:
                old = sorted((-len(part & each), label) for each, label in before.get(vertex, []) if part & each)
                own.append([part, old[0][1] if old else next(unused)])
                if not any(part == each for each, _ in before.get(vertex, [])):
                    changed.add((vertex, len(own) - 1))
        self.spread(changed)
        clusters: dict = {}
        for vertex, own in self.replicas.items():
            for _, label in own:
                clusters.setdefault(label, set()).add(vertex)
        return clusters

    def list_beside(self, vertex, number):
        """The replicas that are linked with a replica: each original edge joins one replica of either end."""
        return [
            (near, place)
            for near in self.replicas[vertex][number][0]
            for place, (part, _) in enumerate(self.replicas[near])
            if vertex in part
        ]

    def spread(self, affected):
        """Majority labels among all affected; a label that changes affects the neighbours."""
        for _ in range(20):
            ripple = set()
            for vertex, number in sorted(affected, key=lambda at: (at[0], sorted(self.replicas[at[0]][at[1]][0]))):
                beside = self.list_beside(vertex, number)
                votes = [self.replicas[near][place][1] for near, place in beside]
                best = max(map(votes.count, votes))
                own = self.replicas[vertex][number]
                if votes.count(own[1]) < best:
                    own[1] = min(label for label in votes if votes.count(label) == best)
                    ripple.update(beside)
            if not ripple:
                return
            affected = affected | ripple


class SlowCam:
    """Passages are given as (document, position): vector."""

    def __init__(self, *, split=True, most=10) -> None:
        self.passages: dict = {}
        self.edges: set = set()
        self.levels: list = []
        self.split, self.most = split, most

    def score(self, a, b):
        cosine = float(self.passages[a] @ self.passages[b])
        near = math.exp(-((a[1] - b[1]) ** 2) / (2 * SIGMA**2)) if a[0] == b[0] else 0.0
        return round(ALPHA * cosine + (1 - ALPHA) * near, 6)

    def add(self, batch):
        """Take in a batch. Returns the clusters of each level, as sets of passages or of such sets."""
        self.passages |= batch
        for new in batch:
            others = sorted((-self.score(new, near), near) for near in self.passages if near != new)
            self.edges |= {frozenset((new, near)) for score, near in others[:K] if -score > THETA}
        near = {vertex: set() for edge in self.edges for vertex in edge}
        for a, b in map(tuple, self.edges):
            near[a].add(b)
            near[b].add(a)
        found, names, depth = [], {vertex: vertex for vertex in near}, 0
        while True:
            if depth == len(self.levels):
                self.levels.append(SlowLevel())
            level = self.levels[depth]
            labelled = level.take_in(near, self.split)
            kept: dict = {}
            for label in sorted(labelled):
                if len(labelled[label]) > 1 and labelled[label] not in kept.values():
                    kept[label] = labelled[label]
            if not kept or len(kept) >= len(near) or depth == self.most:
                del self.levels[depth + 1 :]
                return found
            found.append({frozenset(names[vertex] for vertex in members) for members in kept.values()})
            names = {label: frozenset(names[vertex] for vertex in members) for label, members in kept.items()}
            near = {label: set() for label in kept}
            for vertex, own in level.replicas.items():
                for number, (_, label) in enumerate(own):
                    others = {level.replicas[a][b][1] for a, b in level.list_beside(vertex, number)}
                    if label in kept:
                        near[label] |= (others & kept.keys()) - {label}
            depth += 1


def draw_documents(seed, documents):
    """Documents of 3 to 7 passages, with vectors around a few topics; not in the order of their names."""
    dice, numbers = random.Random(seed), np.random.default_rng(seed)
    topics = numbers.normal(size=(4, 8))
    drawn = {}
    for name in dice.sample(range(100), documents):
        size = dice.randint(3, 7)
        vectors = topics[numbers.integers(0, 4, size)] + 0.6 * numbers.normal(size=(size, 8))
        drawn[f"d{name:02}"] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return drawn


def put(store, drawn):
    for name, vectors in drawn.items():
        passages = [
            Passage(id=content_id("p", name, at), document=name, position=at, start=0, end=0, text=f"{name} {at}")
            for at in range(len(vectors))
        ]
        with store.write() as change:
            change.put_note(SETTINGS, "dimensions", "8")
            keys = change.put_document(Document(id=name, text=name), content_id("d", name), passages)
            change.put_vectors(PASSAGES, keys, vectors)


def read_clusters(store, layer):
    """The clusters of each level, as the slow reading gives them."""
    names = {key: (passage.document, passage.position) for key, passage in store.passages().items()}
    nodes, levels = store.nodes(layer), []
    for key, node in sorted(nodes.items(), key=lambda item: item[1].level):
        names[key] = frozenset(names[each] for each in read_sources(store, [key], layer)[key])
        levels += [set()] * (node.level - len(levels))
        levels[node.level - 1] = levels[node.level - 1] | {names[key]}
    return levels


def make_layer(store, **rules):
    settings = {"clusters": PUBLISHED, "alpha": ALPHA, "sigma": SIGMA, "k": K, "theta": THETA, **rules}
    model = ScriptedModel({"summarise": lambda given: {"summary": " / ".join(text[:9] for text in given.texts)}})
    return SchemataLayer(store, model, EMBEDDER, SchemataRules(**settings)), model


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("batches", [1, 4])
@pytest.mark.parametrize("kind", [PUBLISHED, "as published but disjoint"])
async def test_clusters_of_all_levels_are_those_of_the_slow_reading_after_each_batch(seed, batches, kind):
    store, slow = PlainStore(), SlowCam(split=kind == PUBLISHED)
    layer, model = make_layer(store, clusters=kind)
    drawn = [*draw_documents(seed, 8).items()]
    size, calls = 8 // batches, 0
    for start in range(0, 8, size):
        batch = dict(drawn[start : start + size])
        put(store, batch)
        await build_layer(layer, store)
        found = slow.add({(name, at): row for name, rows in batch.items() for at, row in enumerate(rows)})
        before, clusters = calls, read_clusters(store, layer.name)
        calls = len(model.calls)
        assert clusters == found
        assert sum(map(len, found)) >= calls - before > 0, "only modified clusters are summarised"
    pairs = read_pairs(store, layer.names.links(0))
    assert len(pairs) == len(slow.edges)


async def test_after_a_removal_all_is_made_anew_and_links_alone_need_no_call():
    drawn = draw_documents(3, 8)
    store, fresh = PlainStore(), PlainStore()
    layer, _ = make_layer(store)
    for name, rows in drawn.items():
        put(store, {name: rows})
        await build_layer(layer, store)
    gone = min(drawn)
    remove_documents(store, gone)
    await build_layer(layer, store)
    put(fresh, {name: rows for name, rows in drawn.items() if name != gone})
    await build_layer(make_layer(fresh)[0], fresh)
    assert read_clusters(store, layer.name) == read_clusters(fresh, layer.name)
    alone, model = make_layer(fresh, levels=0)
    await build_layer(alone, fresh)
    assert not model.calls
    assert len(read_pairs(fresh, alone.names.links(0))) == len(read_pairs(fresh, layer.names.links(0)))
