"""Evidence says what it is and where it stands; copies are shown once; neighbours of a hit may be shown."""

from dataclasses import replace

import pytest
from tests.loops.doubles import make_desk

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.prompts import Prompts
from tomewise.language.roles import ANSWER, AnswerOut, Quote
from tomewise.loops.desk import make_answer_input
from tomewise.loops.once import Once
from tomewise.loops.origins import describe_origin, name_kind
from tomewise.loops.repeats import drop_near_repeats
from tomewise.recall.ranking import as_evidence
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import check_loop, document_of, put_document
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Document, Evidence, Passage, Question, content_id

EMBEDDER = HashEmbedder(32)
KINDS = {"tree": "summary", "episodes": "episode"}
TEXT = "The keeper of the lamp at Sker rowed out on the fourth of May to meet the brig from Orrin."


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    texts = [f"Part {number} of the story." for number in range(6)]
    passages = [
        Passage(id=content_id("p", n), document="/books/story.md", position=n, start=0, end=len(text), text=text)
        for n, text in enumerate(texts)
    ]
    with made.write() as change:
        change.put_note(SETTINGS, "dimensions", "32")
        keys = change.put_document(Document(id="/books/story.md", text="\n".join(texts)), "digest", passages)
        change.put_vectors("passages", keys, EMBEDDER.embed(texts))
    put_document(made, EMBEDDER, document_of("note", "One part alone."))
    yield made
    made.close()


def hits(store, *positions):
    found = [p for p in store.passages().values() if p.document == "/books/story.md"]
    return [as_evidence(found[position], 1.0 / (1 + rank)) for rank, position in enumerate(positions)]


def make_derived(store, layer, *positions, text="They met."):
    sources = tuple(piece.node for piece in hits(store, *positions))
    return Evidence(node="n" + layer, layer=layer, text=text, score=1.0, sources=sources, kind=KINDS.get(layer, ""))


@pytest.mark.parametrize(
    ("layer", "declared", "kind"),
    [
        ("passages", "", "passage"),
        ("tree", "summary", "summary"),
        ("extracts", "passage", "passage"),
        ("stars", "", "stars"),
    ],
)
def test_evidence_is_of_the_kind_that_its_layer_declares(store, layer, declared, kind):
    assert name_kind(replace(make_derived(store, layer, 1), kind=declared)) == kind


def test_a_place_is_said_in_parts_of_a_document():
    totals = {"/a/b.md": 59, "c": 1}
    assert describe_origin([("/a/b.md", 11)], totals).place == "part 12 of 59"
    assert describe_origin([("/a/b.md", 11)], totals).document == "b.md"
    assert describe_origin([("/a/b.md", 3), ("/a/b.md", 2)], totals).place == "parts 3 to 4 of 59"
    assert describe_origin([("/a/b.md", 2), ("/a/b.md", 8)], totals).place == "parts 3 to 9 of 59, with gaps"
    assert describe_origin([("c", 0)], totals).place == ""
    assert describe_origin([("/a/b.md", 2), ("c", 0)], totals).place == "2 documents"
    assert describe_origin([], totals).place == ""


def test_a_prompt_says_what_and_where_a_piece_is(store):
    shown = make_desk(store).show([*hits(store, 1), make_derived(store, "tree", 2, 3), make_derived(store, "stars")])
    prompt = Prompts().render(ANSWER, make_answer_input(Question(text="Who?"), shown))
    assert '<evidence label="E1" kind="passage" document="story.md" place="part 2 of 6">' in prompt
    assert '<evidence label="E2" kind="summary" document="story.md" place="parts 3 to 4 of 6">' in prompt
    assert '<evidence label="E3" kind="stars">' in prompt
    assert "/books" not in prompt


def piece(node, text, layer="passages"):
    return Evidence(node=node, layer=layer, text=text, score=1.0, sources=(node,))


def keep(*pieces):
    return [found.node for found in drop_near_repeats(pieces)]


def test_copies_are_shown_once_and_what_adds_a_word_stays():
    assert keep(piece("a", TEXT), piece("b", TEXT.upper() + "!")) == ["a"]
    assert keep(piece("a", f"At dawn: {TEXT} Then it rained."), piece("b", TEXT, "gists")) == ["a"]
    assert keep(piece("a", TEXT), piece("b", TEXT.replace("fourth", "fifth"))) == ["a", "b"]
    assert keep(piece("a", TEXT), piece("b", TEXT.replace("rowed", "never rowed"))) == ["a", "b"]
    backwards = " ".join(reversed(TEXT.split()))
    assert keep(piece("a", TEXT), piece("b", backwards)) == ["a", "b"]
    assert keep(piece("a", "Ann met Bob."), piece("b", "Ann met Bob.")) == ["a", "b"], "short texts cost little"


def test_a_passage_makes_room_for_another_passage_only():
    assert keep(piece("a", TEXT, "gists"), piece("b", TEXT)) == ["a", "b"]
    assert keep(piece("b", TEXT), piece("a", TEXT, "gists")) == ["b"]


class Found:
    def __init__(self, evidence):
        self._evidence = evidence

    async def retrieve(self, query, limit, *, within=None):
        return self._evidence[:limit]


async def ask(store, evidence, *quotes, budget=500):
    reply = AnswerOut(answer="Ada", quotes=[Quote(label=label, quote=quote) for label, quote in quotes])
    model = ScriptedModel({"answer": [reply]})
    loop = Once(Found(evidence), make_desk(store, model), limit=9, budget=budget)
    return model.calls, await check_loop(loop, Question(text="Who?"))


async def test_a_quotation_of_a_summary_is_cited_from_a_passage_or_counted_apart(store):
    summary = make_derived(store, "tree", 2, 3, text="Part 2 of the story. Then Ada met Tom at the lamp.")
    _, answer = await ask(store, [summary], ("E1", "Part 2 of the story"), ("E1", "Ada met Tom"), ("E1", "Ida met Poe"))
    assert [(c.position, c.quote) for c in answer.citations] == [(2, "Part 2 of the story")]
    assert (answer.derived_quotes, answer.dropped_quotes) == (1, 1)


async def test_the_loop_shows_copies_once(store):
    copies = [make_derived(store, layer, 1, text=TEXT) for layer in ("tree", "episodes")]
    assert [shown.kind for shown in (await ask(store, copies))[0][0].given.evidence] == ["summary"]
    everything, _ = await ask(store, copies, budget=None)
    assert len(everything[0].given.evidence) == 2, "documents are shown as they are where all of them fit"
