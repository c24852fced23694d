"""What stands before a passage is shown with it, comes from its document alone, and gives no facts."""

from pathlib import Path

import pytest

from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import GistIn
from tomewise.memory.building import build, estimate
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.leading import find_leads
from tomewise.store.export import export
from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import HashEmbedder, ScriptedModel
from tomewise.types import Document, Passage, Place, content_id

EMBEDDER = HashEmbedder(32)
STORY = (
    "## The Lamp\n\nAda Marsh kept the light. She slept by day. Tom rowed. The tide turned.",
    "She rose at nine. The boat was gone.",
    "## The Boat\n\nTom Hale sold it.",
    "He was paid in gold.",
)


def put(
    store: SqlStore, name: str, texts: tuple[str, ...], chapters: tuple[tuple[str, ...], ...] = ((),) * 9
) -> list[int]:
    """Add a document that is cut into these texts, with the chapters of their places."""
    passages, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        node = content_id("p", name, start, end, text)
        place = Place(chapter=chapters[position])
        passages.append(
            Passage(id=node, document=name, position=position, start=start, end=end, text=text, place=place)
        )
        start = end + 1
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(EMBEDDER.dimensions))
        keys = change.put_document(Document(id=name, text="\n".join(texts)), content_id("d", *texts), passages)
        change.put_vectors("passages", keys, EMBEDDER.embed(texts))
    return keys


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    store = SqlStore.open(tmp_path / "a.tome")
    put(store, "story", STORY)
    return store


def leads(store: SqlStore, keys: list[int] | None = None) -> list[str]:
    passages = list(store.passages(keys).values())
    found = find_leads(store, passages)
    return [found[passage.id] for passage in passages]


def test_a_passage_has_its_heading_and_the_last_sentences_before_it(store: SqlStore) -> None:
    assert leads(store) == [
        "",
        "The Lamp\n\nShe slept by day. Tom rowed. The tide turned.",
        "",
        "The Boat\n\nTom Hale sold it.",
    ]


def test_the_passage_asked_for_may_be_any_and_other_documents_do_not_matter(store: SqlStore) -> None:
    alone = leads(store, store.node_keys("passages")[1:2])
    put(store, "a before", ("A heading of another.",))
    assert leads(store, [key for key, p in store.passages().items() if p.document == "a before"]) == [""]
    assert leads(store, [key for key, p in store.passages().items() if p.position == 1]) == alone


def test_a_long_sentence_is_cut_and_long_texts_cost_little(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "b.tome")
    put(store, "long", ("word " * 50_000, "The end."))
    (_, lead) = leads(store)
    assert 400 < len(lead) <= 500


def test_headings_with_which_a_passage_opens_are_not_repeated(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "b.tome")
    path = ("Book", "Part Two", "1. Lamp")
    texts = ("# Book\n\n## Part Two\n\n### 1. Lamp\n\nAda slept.", "## Part Two\n\n### 1. Lamp\n\nAda rose.", "Tom.")
    put(store, "story", texts, (path, path, path))
    assert leads(store) == ["", "Book", "Book > Part Two > 1. Lamp\n\nAda rose."]


def test_the_chapters_of_the_place_are_the_heading_also_where_the_text_has_no_markdown(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "b.tome")
    texts = (
        "Lamp\n\nAda slept. The tide turned.",
        "Ada rose.",
        "She left.\n\nBOAT\n\nTom rowed.",
        "He was paid.",
        "So?",
    )
    part = ("Part Two",)
    chapters = ((*part, "Lamp"), (*part, "Lamp"), (*part, "Lamp"), (*part, "BOAT"), (*part, "Tomorrow"))
    put(store, "story", texts, chapters)
    assert leads(store) == [
        "Part Two",
        "Part Two > Lamp\n\nAda slept. The tide turned.",
        "Part Two > Lamp\n\nAda rose.",
        "Part Two > BOAT\n\nTom rowed.",
        "Part Two > Tomorrow",
    ]


async def test_gists_and_graphs_of_passages_are_read_with_it_and_graphs_of_gists_are_not(store: SqlStore) -> None:
    facts = {"entities": [], "triples": []}
    model = ScriptedModel(
        {"gist": lambda given: {"memory": f"In short: {given.text}"}, "extract_facts": lambda given: facts}
    )
    layers = [
        GistsLayer(store, model),
        *(GraphLayer(store, model, EMBEDDER, source=name) for name in ("passages", "gists")),
    ]
    await build(layers, store, lambda _: None)
    asked = [(call.role, call.given.before) for call in model.calls]
    wanted = leads(store)
    assert sorted(before for role, before in asked if role == "gist") == sorted(wanted)
    read = [call.given for call in model.calls if call.role == "extract_facts"]
    assert sorted(g.before for g in read if not g.text.startswith("In short")) == sorted(wanted)
    assert {g.before for g in read if g.text.startswith("In short")} == {""}


async def test_a_gist_may_name_who_stands_before_its_passage(store: SqlStore) -> None:
    def reply(given: GistIn) -> dict[str, str]:
        return {"memory": given.text.replace("He ", "Tom Hale ")}

    model = ScriptedModel({"gist": reply})
    await build([GistsLayer(store, model)], store, lambda _: None)
    texts = [node.text for node in store.nodes("gists").values()]
    assert "Tom Hale was paid in gold." in texts
    assert not any("unsupported" in node.data for node in store.nodes("gists").values())


async def test_memory_follows_a_changed_beginning_and_equals_that_of_a_fresh_tome(tmp_path: Path) -> None:
    model = ScriptedModel({"gist": lambda given: {"memory": f"{given.before} {given.text}"}})
    changed = (STORY[0].replace("The tide turned.", "Tom came back."), *STORY[1:])
    stores = [SqlStore.open(tmp_path / f"{name}.tome") for name in "ab"]
    for store, versions in zip(stores, ([STORY, changed], [changed]), strict=True):
        for version in versions:
            put(store, "story", version)
            await build([GistsLayer(store, model)], store, lambda _: None)
    assert "Tom came back. She rose at nine." in " ".join(node.text for node in stores[0].nodes("gists").values())
    assert list(export(stores[0])) == list(export(stores[1]))


async def test_an_estimate_counts_it(store: SqlStore) -> None:
    model = ExtractiveModel(EMBEDDER)
    (gists,) = await estimate([GistsLayer(store, model)], store)
    (graph,) = await estimate([GraphLayer(store, model, EMBEDDER)], store)
    bare = sum(len(text) for text in STORY) // 4
    assert gists.input_tokens > bare + sum(len(lead) for lead in leads(store)) // 4
    assert graph.input_tokens > bare + sum(len(lead) for lead in leads(store)) // 4
