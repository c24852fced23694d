"""A slow reading of `associative` and `hybrid` with rewriting: dense arrays, no index, no shortcut.

It shares only `normalise_name`, the stop words and the embedder with the product.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
from numpy.typing import NDArray

from tomewise.memory.graph.entity_names import normalise_name
from tomewise.text.stop_words import STOP

Floats = NDArray[np.float64]
Known = tuple[Sequence[str], Sequence[str]]  # names of a passage, words of the question by which it is known


@dataclass
class World:
    """Passages with their vectors (P, d), entities in the order of the store, facts with their vectors (F, d)."""

    titles: list[str]
    texts: list[str]
    vectors: NDArray[np.float32]
    embed: Callable[[list[str]], NDArray[np.float32]]
    names: list[str] = field(default_factory=list)
    links: list[tuple[int, int]] = field(default_factory=list)  # entity, passage
    facts: list[tuple[int, int, int]] = field(default_factory=list)  # head, tail, passages that state it
    fact_vectors: NDArray[np.float32] | None = None
    synonyms: list[tuple[int, int, float]] = field(default_factory=list)


def take_stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def take_stems(text: str) -> list[str]:
    return [take_stem(word) for word in normalise_name(text).split() if word not in STOP]


def share_in(name: str, question: str) -> float:
    stems = set(take_stems(name))
    return len(stems & set(take_stems(question))) / len(stems) if stems else 0.0


def bare(title: str) -> str:
    return re.sub(r"\s*\([^()]*\)\s*$", "", title)


def contains(text: str, name: str) -> bool:
    return bool(name) and f" {name} " in f" {text} "


def scale(scores: Floats) -> Floats:
    return (scores - scores.min()) / (scores.max() - scores.min())


def find_named(world: World, question: str) -> list[int]:
    """The entities whose names stand in the question with a capital that does not open it, and in no longer name.

    Without such a capital, names of two words or more count.
    """
    words = re.findall(r"\w+", question)
    spans = {}
    is_lower = not any(word[0].isupper() for word in words[1:])
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            name = normalise_name(" ".join(words[start:end]))
            is_name = any(words[at][0].isupper() for at in range(max(1, start), end)) or (is_lower and end - start > 1)
            if name in world.names and is_name:
                spans[start, end] = world.names.index(name)
    inner = {(a, b) for a, b in spans for c, d in spans if (a, b) != (c, d) and c <= a and b <= d}
    return sorted({entity for span, entity in spans.items() if span not in inner})


def rewrite(question: str, passages: Sequence[Known], names: int = 8) -> list[tuple[int, str]]:
    """Pairs of a rank and a rewritten question."""
    words = normalise_name(question).split()
    found = []
    for rank, (all_names, known) in enumerate(passages):
        for name in [name for name in all_names if share_in(name, question) <= 0.5][:names]:
            out: list[str] = []
            is_placed = False
            for word in words:
                if word not in STOP and take_stem(word) in set(known):
                    out += [] if is_placed else [name]
                    is_placed = True
                else:
                    out.append(word)
            found.append((rank, " ".join(out if is_placed else [name, *words])))
    return found


def score_rewrites(world: World, d: Floats, rewrites: Sequence[tuple[int, str]], drop: float = 0.02) -> Floats:
    best = d.copy()
    if rewrites:
        cosines = (world.vectors @ world.embed([text for _, text in rewrites]).T).astype(np.float64)
        best = np.maximum(best, (cosines - drop * np.array([rank for rank, _ in rewrites])).max(axis=1))
    return best


def walk(world: World, seeds: Floats, restart: float) -> Floats:
    entities, size = len(world.names), len(world.names) + len(world.texts)
    weights = np.zeros((size, size), np.float32)

    def join(a: int, b: int, weight: float) -> None:
        weights[a, b] += weight
        weights[b, a] += weight

    for head, tail, sources in world.facts:
        if head != tail:
            join(head, tail, 2.0 * sources)
    for a, b, cosine in world.synonyms:
        join(a, b, 2.0 * cosine)
    for entity, passage in world.links:
        title, name = world.titles[passage], world.names[entity]
        is_title = name in (normalise_name(title), normalise_name(bare(title)))
        join(entity, entities + passage, 3.0 if is_title else 2.0 if contains(normalise_name(title), name) else 1.0)
    degrees = weights.sum(axis=1)
    onward = weights / np.where(degrees > 0, degrees, 1)[:, None]
    seeds = seeds / seeds.sum()
    mass = seeds.copy()
    for _ in range(200):
        lost = mass[degrees == 0].sum()
        mass = (1 - restart) * (mass @ onward + lost * seeds) + restart * seeds
    return np.asarray(mass[entities:])


def rank_associative(world: World, question: str) -> list[int]:
    """All passages, best first."""
    assert world.fact_vectors is not None
    q = world.embed([question])[0]
    d = (world.vectors @ q).astype(np.float64)
    entities = len(world.names)
    spread = np.bincount([entity for entity, _ in world.links], minlength=entities)
    seeds = np.zeros(entities + len(world.texts))
    f = (world.fact_vectors @ q).astype(np.float64)
    scaled = scale(f)
    parts: dict[int, list[float]] = {}
    for fact in np.argsort(-f, kind="stable")[:3]:
        head, tail, _ = world.facts[fact]
        for end in (head, tail):
            parts.setdefault(end, []).append(scaled[fact] / max(1, spread[end]))
    best = sorted(parts, key=lambda entity: (-np.mean(parts[entity]), entity))[:5]
    for entity in best:
        seeds[entity] += np.mean(parts[entity])
    named = find_named(world, question)
    for entity in named:
        seeds[entity] += 8 / max(1, spread[entity])
    near = np.argsort(-d, kind="stable")[:200]
    seeds[entities + near] += 0.05 * scale(d)[near]
    mass = walk(world, seeds, 0.3)
    w = mass / mass.max()
    first = np.argsort(-w, kind="stable")[:3]
    known: list[Known] = []
    for passage in first:
        linked = [entity for entity, place in world.links if place == passage]
        stems = [stem for entity in linked if entity in named for stem in take_stems(world.names[entity])]
        title = bare(world.titles[passage])
        if not stems and share_in(title, question) >= 0.5:
            stems = take_stems(title)
        known.append(([world.names[entity] for entity in sorted(linked)], stems))
    x = score_rewrites(world, d, rewrite(question, known))
    s = w + 0.7 * np.exp((x - x.max()) / 0.05)
    ranking = arrange(world, question, s)
    stays = arrange(world, question, w)[0]
    return [stays, *(place for place in ranking if place != stays)]


def arrange(world: World, question: str, scores: Floats) -> list[int]:
    order = [int(place) for place in np.argsort(-scores, kind="stable")]
    return [*cover(world, question, scores, order[:30]), *order[30:]]


def cover(world: World, question: str, s: Floats, first: list[int]) -> list[int]:
    wanted = set(take_stems(question))
    stems = [set(take_stems(f"{title} {text}")) for title, text in zip(world.titles, world.texts, strict=True)]
    df = {stem: sum(stem in passage for passage in stems) for stem in wanted}
    idf = {stem: log(1 + len(stems) / (1 + df[stem])) for stem in wanted}
    total = sum(idf.values())
    rest, found, covered = list(first), [], set[str]()
    while rest:
        gains = [
            log(s[place] / s[first[0]]) + sum(idf[stem] / total for stem in (wanted & stems[place]) - covered)
            for place in rest
        ]
        place = rest.pop(int(np.argmax(gains)))
        covered |= wanted & stems[place]
        found.append(place)
    return found


def rank_hybrid(world: World, question: str, bm25: Floats, list_runs: Callable[[str], list[str]]) -> list[int]:
    """All passages, best first. `bm25` (P,); `list_runs` gives the runs of capitalised words in a text."""
    d = (world.vectors @ world.embed([question])[0]).astype(np.float64)
    s = d + 0.2 * bm25 / max(bm25.max(), 1e-9)
    order = np.argsort(-s, kind="stable")
    named = [place for place in order if share_in(bare(world.titles[place]), question) >= 0.5][:2]
    known: list[Known] = []
    for place in named:
        title = bare(world.titles[place])
        names = list(dict.fromkeys(normalise_name(name) for name in list_runs(world.texts[place])))
        known.append(([name for name in names if share_in(name, question) < 0.5], take_stems(title)))
    rewrites = rewrite(question, known)
    if rewrites:
        x = score_rewrites(world, d, rewrites)
        s = s + 0.8 * np.exp((x - x.max()) / 0.05)
        s[order[0]] = s.max() + 1
    return [int(place) for place in np.argsort(-s, kind="stable")]
