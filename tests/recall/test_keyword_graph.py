"""Recall by keywords of two levels: against a slow reading of LightRAG, and what it does where keywords are missing."""

from __future__ import annotations

import asyncio
import random
from itertools import zip_longest

import pytest
from tests.recall import relation_tomes
from tests.recall.relation_tomes import EMBEDDER, NAMES

from tomewise.errors import BadReply, ModelUnavailable
from tomewise.recall.keyword_graph import KeywordGraph
from tomewise.run import NO_KEYWORDS, meter
from tomewise.testing import ScriptedModel, check_retriever

NAMED = ("ada", "tom", "ida", "una", "sam", "pip", "rob", "kim")
WORDS = ("light", "boat", "letter", "harbour", "storm", "debt", "school", "ledger")
QUESTION = "who wrote the letter about the boat"
DETAILS, THEMES = ["ada", "boat letter"], ["debt ledger", "storm"]


def make_texts(seed, count):
    """Passages of two entities and two relations each."""
    dice = random.Random(seed)
    texts = []
    for number in range(count):
        a, b, c = dice.sample(NAMED, 3)
        say = [" ".join(dice.sample(WORDS, 3)) for _ in range(4)]
        lines = [
            f"{a} = {say[0]} {number}",
            f"{b} = {say[1]}",
            f"{a} ~ {b} ~ {say[2]}",
            f"{b} ~ {c} ~ {say[3]} {number}",
        ]
        texts.append("\n".join(lines))
    return texts


def embed(text):
    return EMBEDDER.embed([text])[0]


def cosine(text, vector):
    return round(float(embed(text) @ vector), 6)


class SlowReading:
    """The page, step by step, over lists of what the passages say."""

    def __init__(self, texts, ids, room, sizes):
        """`ids` are those of the passages, `sizes` the tokens of each entity and pair."""
        self.texts, self.ids, self.room, self.sizes = texts, ids, room, sizes
        self.mentions = {}  # name: [(passage, text that is embedded)]
        self.pairs = {}  # (a, b): [(passage, text that is embedded)]
        self.seen = {}  # name: passages
        for passage, text in enumerate(texts):
            for line in text.splitlines():
                if " = " in line:
                    name, words = line.split(" = ")
                    self.mentions.setdefault(name, []).append((passage, f"{name}: {words}"))
                    self.seen.setdefault(name, set()).add(passage)
                else:
                    a, b, words = line.split(" ~ ")
                    a, b = sorted((a, b))
                    self.pairs.setdefault((a, b), []).append((passage, f"{a}, {b}. {words}"))
                    for name in (a, b):
                        self.seen.setdefault(name, set()).add(passage)

    def near_entities(self, vector):
        texts = {name: [name, *(text for _, text in self.mentions.get(name, ()))] for name in self.seen}
        scored = {name: max(cosine(text, vector) for text in each) for name, each in texts.items()}
        return sorted(scored, key=lambda name: (-scored[name], NAMES.entity(name)))[:40]

    def near_pairs(self, vector):
        scored = {pair: max(cosine(text, vector) for _, text in facts) for pair, facts in self.pairs.items()}
        return sorted(scored, key=lambda pair: (-scored[pair], *map(NAMES.entity, pair)))[:40]

    def pairs_of(self, names):
        degree = {name: sum(name in pair for pair in self.pairs) for name in self.seen}
        weight = {pair: len({passage for passage, _ in facts}) for pair, facts in self.pairs.items()}
        return sorted(
            (pair for pair in self.pairs if set(pair) & set(names)),
            key=lambda pair: (-degree[pair[0]] - degree[pair[1]], -weight[pair], *map(NAMES.entity, pair)),
        )

    def ask(self, mode):
        question, low, high = embed(QUESTION), embed(", ".join(DETAILS)), embed(", ".join(THEMES))
        local = self.near_entities(low) if mode != "global" else []
        of_themes = self.near_pairs(high) if mode != "local" else []
        ends = list(dict.fromkeys(name for pair in of_themes for name in pair))
        entities = self.cut(alternate(local, ends), 0.2)
        pairs = self.cut(alternate(self.pairs_of(local), of_themes), 0.27)
        nearest = sorted(range(len(self.texts)), key=lambda at: (-cosine(self.texts[at], question), self.ids[at]))
        below = {at for name in entities for at in self.seen[name]}
        of_entities = [at for at in nearest if at in below][: int(2.5 * len(entities))]
        below = {at for pair in pairs for at, _ in self.pairs[pair]} - set(of_entities)
        of_pairs = [at for at in nearest if at in below][: int(2.5 * len(pairs))]
        first = nearest[:20] if mode == "mix" else []
        return entities, pairs, alternate(first, of_entities, of_pairs)[:20]

    def cut(self, names, share):
        """The first that have room."""
        used, kept = 0, []
        for name in names:
            used += self.sizes[name]
            if used > int(share * self.room):
                break
            kept.append(name)
        return kept


def alternate(*lists):
    return list(dict.fromkeys(each for row in zip_longest(*lists) for each in row if each is not None))


def count_words(pieces):
    """The words of each piece, and 12 for its label, as in a prompt."""
    return [12 + len(f"{piece.title} {piece.text}".split()) for piece in pieces]


def make_recall(store, model=None, room=100_000, **settings):
    model = model or ScriptedModel({"keywords": lambda _: {"details": DETAILS, "themes": THEMES}})
    return KeywordGraph(store, EMBEDDER, model, NAMES, count_words, room=room, **settings)


def sort_out(found):
    """Names of entities, pairs, and passages, in the order of the evidence."""
    entities = [piece.title.partition(" ")[0] or piece.text for piece in found if piece.layer == "entities"]
    pairs = [tuple(piece.title.split(", ")) for piece in found if piece.layer == "facts"]
    return entities, pairs, [piece.id for piece in found if piece.layer == "passages"]


@pytest.fixture(scope="module")
def open_seed(tmp_path_factory):
    """Opens the tome of a seed: its texts, the ids of its passages, and the store."""
    made = {}

    def open_texts(seed, count=24):
        if seed not in made:
            texts = make_texts(seed, count)
            store = asyncio.run(relation_tomes.build_store(tmp_path_factory.mktemp("keywords"), *texts))
            ids = {passage.text: passage.id for passage in store.passages().values()}
            made[seed] = texts, [ids[text] for text in texts], store
        return made[seed]

    yield open_texts
    for _, _, store in made.values():
        store.close()


@pytest.fixture
def store(open_seed):
    return open_seed(7, 8)[-1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["mix", "hybrid", "local", "global"])
@pytest.mark.parametrize("room", [100_000, 900, 400])
def test_it_is_what_the_page_says(open_seed, seed, mode, room):
    texts, ids, store = open_seed(seed)
    everything = asyncio.run(make_recall(store).retrieve(QUESTION, 10_000))
    found = asyncio.run(make_recall(store, mode=mode, room=room).retrieve(QUESTION, 10_000))
    sizes = zip(everything, count_words(everything), strict=True)
    tokens = {sort_out([piece])[piece.layer == "facts"][0]: size for piece, size in sizes if piece.layer != "passages"}
    entities, pairs, passages = SlowReading(texts, ids, room, tokens).ask(mode)
    assert sort_out(found)[:2] == (entities, pairs)
    shown = sort_out(found)[2]
    assert shown == [ids[at] for at in passages][: len(shown)]
    assert sum(count_words(found)) <= room
    if len(shown) < len(passages):
        assert sum(count_words(found)) + 12 + len(texts[passages[len(shown)]].split()) > room


@pytest.mark.parametrize("mode", ["mix", "hybrid", "local", "global"])
async def test_it_keeps_the_contract_of_retrievers(store, mode):
    await check_retriever(make_recall(store, mode=mode), QUESTION, store)


async def test_passages_come_first(store):
    found = await make_recall(store, room=600).retrieve(QUESTION, 1000)
    layers = [piece.layer for piece in found]
    assert layers == sorted(layers, key=["passages", "facts", "entities"].index)
    assert all(piece.sources and piece.kind == "entity" for piece in found if piece.layer == "entities")


@pytest.mark.parametrize(
    ("mode", "reply", "missing"),
    [
        ("local", {"themes": THEMES}, 1),
        ("hybrid", {"details": DETAILS}, 1),
        ("mix", {}, 2),
        ("local", {"details": DETAILS}, 0),
        ("mix", {"details": ["", " "], "themes": THEMES}, 1),
    ],
)
async def test_a_level_without_keywords_is_searched_with_the_question_and_the_mode_stays(store, mode, reply, missing):
    recall = make_recall(store, ScriptedModel({"keywords": lambda _: reply}), mode=mode)
    with meter() as used:
        found = await recall.retrieve(QUESTION, 1000)
    assert used.fallbacks.get(NO_KEYWORDS, 0) == missing
    details, themes = ([word for word in reply.get(level, ()) if word.strip()] for level in ("details", "themes"))
    full = {"details": details or [QUESTION], "themes": themes or [QUESTION]}
    assert found == await make_recall(store, ScriptedModel({"keywords": lambda _: full}), mode=mode).retrieve(
        QUESTION, 1000
    )


async def test_without_usable_keywords_the_question_searches(store):
    model, question = ScriptedModel({}), {"details": [QUESTION], "themes": [QUESTION]}
    expected = await make_recall(store, ScriptedModel({"keywords": lambda _: question})).retrieve(QUESTION, 1000)
    with meter() as used:
        assert await make_recall(store, model, keywords=False).retrieve(QUESTION, 1000) == expected
    assert not model.calls
    assert not used.fallbacks
    with meter() as used:
        bad = ScriptedModel({"keywords": [BadReply("no"), ModelUnavailable("gone")]})
        assert await make_recall(store, bad).retrieve(QUESTION, 1000) == expected
    assert used.fallbacks == {NO_KEYWORDS: 1}
    with pytest.raises(ModelUnavailable):
        await make_recall(store, bad).retrieve(QUESTION, 5)


async def test_an_empty_graph_finds_nothing(build_relations):
    assert await make_recall(await build_relations()).retrieve(QUESTION, 5) == []
