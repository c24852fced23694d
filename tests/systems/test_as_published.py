"""What systems with a paper show in their last prompt, against slow readings of the papers on random inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.memory.building import build
from tomewise.store.lookups import read_sources
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit
from tomewise.systems.registry import assemble
from tomewise.testing import document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question

EMBEDDER = HashEmbedder()
NAMES = "vokrun ledibs mapholt quixay brundel ospery tiglow fenwach julmid zarope".split()
RELATIONS = "sold met found kept burned".split()
WORDS = "amber tide lamp rope harbour frost ledger bell anchor chalk barley owl".split()
SHOWN = 5  # passages that the reader gets in both papers
Triple: TypeAlias = tuple[str, str, str]
Scores: TypeAlias = Mapping[str, float]


@dataclass(frozen=True)
class SourceText:
    """A passage, its gist, and the triples that stand in both."""

    text: str
    gist: str
    triples: Sequence[Triple]


def write_corpus(dice: Random) -> list[SourceText]:
    """Six to sixteen passages with at least eight facts."""
    corpus: list[SourceText] = []
    for _ in range(dice.randint(6, 16)):
        ends = [sorted(dice.sample(NAMES, 2)) for _ in range(dice.choice((0, 1, 2, 2, 3)))]
        facts = [(head, dice.choice(RELATIONS), tail) for head, tail in ends]
        words = [*dice.sample(WORDS, 4), *(word for fact in facts for word in fact)]
        gist = "\n".join([" > ".join(fact) for fact in facts]) or "of nobody"
        corpus.append(SourceText(" ".join(dice.sample(words, len(words))), gist, facts))
    return corpus if len(SlowGraph(corpus).facts) >= 8 else write_corpus(dice)


def draw_question(dice: Random, corpus: Sequence[SourceText]) -> str:
    """A question for which the papers say what is first: no two of its six nearest facts are as near to it."""
    question = " ".join(dice.sample([*NAMES, *RELATIONS, *WORDS], 5))
    nearest = sorted(compare(question, [" ".join(fact) for fact in SlowGraph(corpus).facts]).values())[-6:]
    is_clear = all(better - worse > 1e-4 for worse, better in pairwise(nearest))
    return question if is_clear else draw_question(dice, corpus)


def read_lines(text: str) -> list[list[str]]:
    return [line.split(" > ") for line in text.splitlines() if line.count(" > ") == 2]


def show(
    tmp_path: Path, corpus: Sequence[SourceText], name: str, question: str, *parts: str, **settings: Any
) -> list[str]:
    """The texts of the last prompt of a system over these passages, a document each, in order."""
    of_text = {each.text: each for each in corpus}

    def find_triples(given: Any) -> dict[str, object]:
        found = of_text.get(given.text)
        return {"triples": [list(each) for each in found.triples] if found else read_lines(given.text)}

    model = ScriptedModel(
        {
            "gist": lambda given: {"memory": of_text[given.text].gist},
            # Names in no triple, with synonyms among those of triples: neither paper has a node for them.
            "extract_entities": lambda given: {"entities": [f"the {name}" for name in NAMES if name in given.text]},
            "extract_triples": find_triples,
            "decompose": lambda _: {"subqueries": list(parts)},
            "filter_facts": lambda given: {"keep": [1, 3, 4]},
            "answer": lambda _: {"answer": "so"},
        }
    )
    store = SqlStore.open(tmp_path / "a.tome")
    try:
        for number, each in enumerate(corpus):
            put_document(store, EMBEDDER, document_of(f"d{number}", each.text))
        system = assemble(name, Kit(store, model, EMBEDDER), **settings)
        asyncio.run(build(system.layers, store, lambda _: None))
        asyncio.run(answer_question(system, Question(text=question, force=True)))
    finally:
        store.close()
    return [piece.text for piece in model.calls[-1].given.evidence]


# ---------------------------------------------------------------- the graph and its walk, as both papers have them


@dataclass(frozen=True)
class SlowGraph:
    """The passage-entity graph: the number of passages that state a fact joins its ends, 1 an entity with a passage."""

    corpus: Sequence[SourceText]

    @property
    def entities(self) -> list[str]:
        return sorted({end for each in self.corpus for head, _, tail in each.triples for end in (head, tail)})

    @property
    def facts(self) -> list[Triple]:
        return sorted({fact for each in self.corpus for fact in each.triples})

    def count_passages(self, entity: str) -> int:
        return sum(any(entity in (head, tail) for head, _, tail in each.triples) for each in self.corpus)

    def walk(self, start: Mapping[str, float], restart: float) -> Scores:
        """The stationary mass of each passage, where a walk starts again with the probability `restart`."""
        names = [*self.entities, *(each.text for each in self.corpus)]
        place = {name: number for number, name in enumerate(names)}
        edges = np.zeros((len(names), len(names)))

        def join(a: str, b: str, weight: float) -> None:
            edges[place[a], place[b]] += weight
            edges[place[b], place[a]] += weight

        for head, relation, tail in self.facts:
            join(head, tail, sum((head, relation, tail) in each.triples for each in self.corpus))
        for each in self.corpus:
            for end in {end for head, _, tail in each.triples for end in (head, tail)}:
                join(end, each.text, 1)
        seeds = np.array([start.get(name, 0.0) for name in names])
        seeds /= seeds.sum()
        degrees = edges.sum(axis=1)
        step = np.array([edges[at] / degrees[at] if degrees[at] else seeds for at in range(len(names))])
        masses = np.linalg.solve(np.eye(len(names)) - (1 - restart) * step.T, restart * seeds)
        return {each.text: float(masses[place[each.text]]) for each in self.corpus}


def embed(text: str) -> NDArray[np.float64]:
    return EMBEDDER.embed([text])[0].astype(np.float64)


def compare(query: str, texts: Iterable[str]) -> dict[str, float]:
    """Equation 11: the cosine of the query with each text."""
    asked = embed(query)
    return {text: float(embed(text) @ asked) for text in texts}


def choose_best(scores: Scores, count: int) -> list[str]:
    return sorted(scores, key=lambda text: -scores[text])[:count]


def normalise(scores: Scores) -> dict[str, float]:
    """Equation 17."""
    least, most = min(scores.values(), default=0), max(scores.values(), default=0)
    return {text: (score - least) / (most - least + 1e-12) for text, score in scores.items()}


# ---------------------------------------------------------------- CogitoRAG


def rank_cogito(graph: SlowGraph, query: str, alpha: float, beta: float, gamma: float, epsilon: float) -> Scores:
    """Equations 11 to 18: S(p | q') of the candidates; what the walk does not reach follows by its cosine."""
    texts = {" ".join(fact): fact for fact in graph.facts}
    sigma = compare(query, texts)
    hits = choose_best(sigma, 5)  # equation 12
    activation = {}
    for entity in graph.entities:
        own = [sigma[text] for text in hits if entity in (texts[text][0], texts[text][2])]
        if own:
            evidence = sum(max(0, each) for each in own) / len(own)  # equation 13
            reward = 1 + alpha * (1 - np.exp(-beta * len(own)))  # equation 14
            activation[entity] = evidence * reward / max(1, graph.count_passages(entity))  # equation 15
    near = compare(query, [each.text for each in graph.corpus])
    if not sum(activation.values()):
        return near
    masses = {text: mass for text, mass in graph.walk(activation, gamma).items() if mass > 1e-12}  # equation 16
    spread, alike = normalise(masses), normalise({text: near[text] for text in masses})
    scores = {text: epsilon * spread[text] + (1 - epsilon) * alike[text] for text in masses}  # equation 18
    return {text: near[text] - 1 for text in near} | scores


def select_cogito(rankings: Sequence[Scores]) -> list[str]:
    """Section 4.3.1: the best five of a whole question; of two parts two each, then the best of all others."""
    if len(rankings) == 1:
        return choose_best(rankings[0], SHOWN)
    taken: list[str] = []
    for _ in range(2):
        for scores in rankings:
            left = {text: score for text, score in scores.items() if text not in taken}
            taken += choose_best(left, 1)
    best = {text: max(scores[text] for scores in rankings) for text in rankings[0] if text not in taken}
    return [*taken, *choose_best(best, 1)]


@pytest.mark.parametrize("seed", range(24))
def test_cogitorag_shows_pairs_of_the_passages_that_its_equations_rank_first(tmp_path, seed):
    dice = Random(seed)
    corpus = write_corpus(dice)
    question = draw_question(dice, corpus)
    parts = [draw_question(dice, corpus), draw_question(dice, corpus)] if seed % 3 else []
    values = {"alpha": 2.0, "beta": 1.0, "restart": 0.5, "blend": 0.95}
    if seed % 2:
        values = {"alpha": 4.0, "beta": 0.5, "restart": 0.3, "blend": 0.6}
    for name, following in pairwise(sorted(NAMES)):
        assert compare(name, [following])[following] < 0.8, "no synonyms, of which the paper is silent"
    rankings = [rank_cogito(SlowGraph(corpus), query, *values.values()) for query in parts or [question]]
    gists = {each.text: each.gist for each in corpus}
    expected = [f"{text}\n\nGist of this passage:\n{gists[text]}" for text in select_cogito(rankings)]  # equation 19
    context = {} if seed % 4 else {"context": 120}  # of so few tokens two or three pairs have room
    usual = values["alpha"] == 2
    shown = show(tmp_path, corpus, "cogitorag", question, *parts, **context, **({} if usual else values))
    assert shown == ([pair for pair in expected if pair in shown] if context else expected)
    assert 0 < len(shown) <= SHOWN


# ---------------------------------------------------------------- HippoRAG 2


def scale(scores: Scores) -> dict[str, float]:
    least, most = min(scores.values()), max(scores.values())
    return {text: (score - least) / (most - least) for text, score in scores.items()}


@pytest.mark.parametrize("seed", range(100, 112))
def test_hipporag2_shows_the_five_passages_of_the_greatest_mass(tmp_path, seed):
    dice = Random(seed)
    corpus = write_corpus(dice)
    question = draw_question(dice, corpus)
    graph = SlowGraph(corpus)
    texts = {" ".join(fact): fact for fact in graph.facts}
    scores = scale(compare(question, texts))
    hits = [choose_best(scores, 5)[number - 1] for number in (1, 3, 4)]  # what the model recognises
    parts: dict[str, list[float]] = {}
    for hit in hits:
        for end in (texts[hit][0], texts[hit][2]):
            parts.setdefault(end, []).append(scores[hit] / graph.count_passages(end))
    means = {entity: sum(each) / len(each) for entity, each in parts.items()}
    start = {entity: means[entity] for entity in choose_best(means, 5)}
    start |= {text: 0.05 * score for text, score in scale(compare(question, [each.text for each in corpus])).items()}
    assert show(tmp_path, corpus, "hipporag2", question) == choose_best(graph.walk(start, 0.5), SHOWN)


# ---------------------------------------------------------------- one search, one ranking


@pytest.mark.parametrize("seed", range(200, 206))
def test_naive_and_bm25_show_what_their_own_search_finds(tmp_path, seed):
    dice = Random(seed)
    corpus = write_corpus(dice)
    question = draw_question(dice, corpus)
    (tmp_path / "words").mkdir()
    near = compare(question, [each.text for each in corpus])
    shown = show(tmp_path, corpus, "naive", question)
    assert [near[text] for text in shown] == pytest.approx(sorted(near.values(), reverse=True), abs=1e-6)
    asked = set(question.split())
    by_words = show(tmp_path / "words", corpus, "bm25", question)
    assert {*by_words} == {each.text for each in corpus if asked & {*each.text.split()}}
    scores = score_bm25(question, [each.text for each in corpus])
    assert [scores[text] for text in by_words] == pytest.approx(
        sorted(map(scores.get, by_words), reverse=True), abs=1e-5
    )


def score_bm25(question: str, texts: Sequence[str]) -> dict[str, float]:
    """BM25 with k1 = 1.2 and b = 0.75 (Robertson and Zaragoza 2009, section 3.4)."""
    length = sum(len(text.split()) for text in texts) / len(texts)
    scores = dict.fromkeys(texts, 0.0)
    for word in question.split():
        holders = [text for text in texts if word in text.split()]
        # A word of more than half of the texts counts next to nothing, as in SQLite.
        weight = max(1e-6, np.log((len(texts) - len(holders) + 0.5) / (len(holders) + 0.5)))
        for text in holders:
            words = text.split()
            often = words.count(word)
            scores[text] += weight * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(words) / length))
    return scores


ASKED_OF_TREE = "amber tide quixay rope bell owl ospery zarope"


def show_tree(tmp_path: Path, texts: Sequence[str], **settings: Any) -> tuple[list[str], dict[str, list[str]]]:
    """What the last prompt of `raptor` shows, and the texts from which each summary was made, from the top down."""
    model = ScriptedModel(
        {
            "summarise": lambda given: {"summary": " ".join(text.split()[0] for text in given.texts[:9])},
            "answer": lambda _: {"answer": "so"},
        }
    )
    store = SqlStore.open(tmp_path / "a.tome")
    try:
        put_texts(store, EMBEDDER, "story", *texts)
        system = assemble("raptor", Kit(store, model, EMBEDDER), **settings)
        asyncio.run(build(system.layers, store, lambda _: None))
        asyncio.run(answer_question(system, Question(text=ASKED_OF_TREE, force=True)))
        made = store.nodes("tree")
        below = read_sources(store, made, "tree")
        names = {key: passage.text for key, passage in store.passages().items()}
        names |= {key: node.text for key, node in made.items()}
        highest_first = sorted(made, key=lambda key: -made[key].level)
        tree = {names[key]: [names[child] for child in below[key]] for key in highest_first}
    finally:
        store.close()
    assert tree
    return [piece.text for piece in model.calls[-1].given.evidence], tree


def draw_texts(dice: Random, count: int, most: int) -> list[str]:
    return [" ".join(dice.sample([*WORDS, *NAMES], dice.randint(2, most))) for _ in range(count)]


@pytest.mark.parametrize("context", [2000, *range(56, 116, 6)])
def test_raptor_shows_the_nearest_texts_before_the_first_that_does_not_fit(tmp_path, context):
    """The collapsed tree (RAPTOR, section 3 and appendix F); a text counts 12 tokens for its label and fence."""
    texts = draw_texts(Random(context), 20, 11)
    found, tree = show_tree(tmp_path, texts, context=context)
    near = compare(ASKED_OF_TREE, [*texts, *tree])
    ranked = choose_best(near, len(near))
    sizes = accumulate(len(text.split()) + 12 for text in ranked)
    expected = [text for text, used in zip(ranked, sizes, strict=True) if used <= context]
    assert [near[text] for text in found] == pytest.approx([near[text] for text in expected], abs=1e-6)


@pytest.mark.parametrize("seed", range(300, 304))
def test_raptor_traversal_shows_level_by_level_what_it_keeps_however_long(tmp_path, seed):
    """Tree traversal (RAPTOR, section 3): the five nearest of the roots, then of their children, and so on."""
    texts = draw_texts(Random(seed), 60, 22)
    found, tree = show_tree(tmp_path, texts, search="traversal", context=30)
    near = compare(ASKED_OF_TREE, [*texts, *tree])
    below = {child for children in tree.values() for child in children}
    level, expected = [text for text in tree if text not in below], list[str]()
    while level:
        kept = choose_best({text: near[text] for text in level}, 5)
        expected += kept
        level = [*dict.fromkeys(child for text in kept for child in tree.get(text, []))]
    assert [near[text] for text in found] == pytest.approx([near[text] for text in expected], abs=1e-6)
