"""What stands before a passage is shown with it, comes from its document alone, and gives no facts."""

from __future__ import annotations

import pytest
from tests.memory.memories import EMBEDDER, build_layers, put_passages

from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.leading import find_leads
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import ScriptedModel

STORY = (
    "## The Lamp\n\nAda Marsh kept the light. She slept by day. Tom rowed. The tide turned.",
    "She rose at nine. The boat was gone.",
    "## The Boat\n\nTom Hale sold it.",
    "He was paid in gold.",
)
LEADS = [
    "",
    "The Lamp\n\nShe slept by day. Tom rowed. The tide turned.",
    "",
    "The Boat\n\nTom Hale sold it.",
]
BOOK, PART = ("Book", "Part Two", "1. Lamp"), "Part Two"


def list_leads(store: SqlStore, keys: list[int] | None = None) -> list[str]:
    passages = list(store.passages(keys).values())
    found = find_leads(store, passages)
    return [found[passage.id] for passage in passages]


@pytest.mark.parametrize(
    ("texts", "chapters", "leads"),
    [
        pytest.param(STORY, (), LEADS, id="heading and last sentences"),
        pytest.param(
            ("# Book\n\n## Part Two\n\n### 1. Lamp\n\nAda slept.", "## Part Two\n\n### 1. Lamp\n\nAda rose.", "Tom."),
            (BOOK, BOOK, BOOK),
            ["", "Book", "Book > Part Two > 1. Lamp\n\nAda rose."],
            id="headings with which a passage opens are not repeated",
        ),
        pytest.param(
            (
                "Lamp\n\nAda slept. The tide turned.",
                "Ada rose.",
                "She left.\n\nBOAT\n\nTom rowed.",
                "He was paid.",
                "So?",
            ),
            ((PART, "Lamp"), (PART, "Lamp"), (PART, "Lamp"), (PART, "BOAT"), (PART, "Tomorrow")),
            [
                "Part Two",
                "Part Two > Lamp\n\nAda slept. The tide turned.",
                "Part Two > Lamp\n\nAda rose.",
                "Part Two > BOAT\n\nTom rowed.",
                "Part Two > Tomorrow",
            ],
            id="chapters of the place, where the text has no Markdown",
        ),
    ],
)
def test_what_stands_before_passages(store: SqlStore, texts, chapters, leads) -> None:
    keys = put_passages(store, "story", *texts, chapters=chapters)
    assert list_leads(store) == leads
    alone = put_passages(store, "a before", "A heading of another.")
    assert list_leads(store, alone) == [""]
    assert list_leads(store, keys[1:2]) == leads[1:2], "other passages and documents do not matter"


def test_a_long_sentence_is_cut_and_long_texts_cost_little(store: SqlStore) -> None:
    put_passages(store, "long", "word " * 50_000, "The end.")
    (_, lead) = list_leads(store)
    assert 400 < len(lead) <= 500


async def test_gists_and_graphs_of_passages_are_read_with_it_and_graphs_of_gists_are_not(store: SqlStore) -> None:
    put_passages(store, "story", *STORY)
    facts = {"entities": [], "triples": []}
    model = ScriptedModel(
        {"gist": lambda given: {"memory": f"In short: {given.text}"}, "extract_facts": lambda given: facts}
    )
    graphs = [GraphLayer(store, model, EMBEDDER, source=name) for name in ("passages", "gists")]
    await build_layers([GistsLayer(store, model), *graphs], store)
    asked = [(call.role, call.given.text.startswith("In short"), call.given.before) for call in model.calls]
    assert sorted(before for role, _, before in asked if role == "gist") == sorted(LEADS)
    read = [(of_gist, before) for role, of_gist, before in asked if role == "extract_facts"]
    assert sorted(read) == sorted([*((False, lead) for lead in LEADS), *[(True, "")] * 4])
