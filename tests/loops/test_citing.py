"""A quotation counts only where it stands, and a model that only quotes is given what it may quote."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from tests.loops.doubles import EMBEDDER, put_passages

from tomewise.language.roles import AnswerIn, AnswerOut, Quote
from tomewise.loops import citing
from tomewise.loops.citing import prepare_quoting, quote_sentences
from tomewise.recall.ranking import as_evidence
from tomewise.testing import document_of, put_document
from tomewise.types import Document, Evidence, Passage, Place

TEXT = 'He said: “It’s half-past nine -- no\n  later,” and\tleft…  «Never»\nwas "all" she (a. b*c?) wrote.'


def make_passage(text=TEXT, start=100):
    return Passage(id="p", document="d", position=3, start=start, end=start + len(text), text=text, title="T")


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("half-past nine", "half-past nine"),
        ("  half-past nine\n", "half-past nine"),
        ("Half past Nine.", "half-past nine"),
        ("It`s half‑past", "It’s half-past"),
        ("nine — no later", "nine -- no\n  later"),
        ('no later," and left', "no\n  later,” and\tleft"),
        ('"Never" was', "«Never»\nwas"),
        ("“It’s half-past nine”", "It’s half-past nine"),
        ("[...] half-past nine [...]", "half-past nine"),
        ("and left… «Never»", "and\tleft…  «Never»"),
        ('"all" she (a. b*c?) wrote.', '"all" she (a. b*c?) wrote.'),
        # Labels, and emphasis.
        *(
            (quote, "half-past nine")
            for quote in (
                "E1: half-past nine",
                '[E1] "half-past nine"',
                "**E12:** half-past nine",
                "Quote: **half-past nine**",
                "Passage 3 - half-past nine",
                "half-past nine [E2, E3]",
                "half-past nine. [E1][E2]",
                "half-past nine. — E1",
                "E1 Half-past nine",
                '<evidence label="E1" kind="passage">\nhalf-past nine\n</evidence>',
                '"half-past nine" (source E1)',
            )
        ),
        *((quote, None) for quote in ("b.c", "he", "", "---", '"""', "...", ".*", "he said it is", "half-past ninety")),
        *((quote, None) for quote in ("E1 half-past nine", "not E1: half-past nine", "E1: E2: half-past nine")),
    ],
)
def test_a_quotation_is_located_without_what_a_model_puts_around_it(quote, found):
    citation = citing.locate(quote, make_passage())
    assert (citation and citation.text) == found
    if citation:
        assert TEXT[citation.start - 100 : citation.end - 100] == citation.text
        assert (citation.document, citation.passage, citation.position, citation.title) == ("d", "p", 3, "T")


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("a " * 200_000, "a " * 2000),
        ("- " * 1500, " " * 4000 + "-" * 20),
        ("x" + " -" * 900 + "y", ("x" + " " * 50 + "-") * 80),
        ("(" * 1000 + "a+" * 1000, "(" * 4000),
        ("…" * 100_000, "a" * 4000),
        (". " * 50_000 + "a", ". " * 2000),
        ("\0\ud800" * 10, "a" * 4000),
        (" " * 500_000 + "abc", " " * 4000),
        ("[E1] " * 100_000, "a" * 4000),
        ("(E1" + ", 1" * 100_000, "a" * 4000),
        (". E1" * 50_000 + "x", "a" * 4000),
        ("<evidence" * 50_000, "a" * 4000),
    ],
)
def test_hostile_quotations_cost_little(quote, text):
    begun = time.thread_time()
    found = citing.locate(quote, make_passage(text))
    assert found is None or found.text in text
    assert time.thread_time() - begun < 3


# ---------------------------------------------------------------- which passage is cited

NOWHERE = ("E1", "never said")


@pytest.fixture
def cite(open_store):
    """Cites quotations, given with their labels, from two passages: documents and quotes, and how many are dropped."""
    store = open_store()
    evidence = []
    texts = {"a": "The tide turned at nine. The keeper slept.", "b": "The tide turned at nine, some say."}
    for name, text in texts.items():
        (key,) = put_document(store, EMBEDDER, document_of(name, text))
        evidence.append(as_evidence(store.passages([key])[key], 1.0))

    def cite_of(*quotes, given=evidence):
        found = citing.cite(store, [Quote(label=label, quote=quote) for label, quote in quotes], given)
        return [(citation.document, citation.text) for citation in found.quotes], found.dropped

    return cite_of


@pytest.mark.parametrize(
    ("quotes", "cited", "dropped"),
    [
        ([("E2", "The tide turned")], [("b", "The tide turned")], 0),  # what is named comes first, any other then
        ([("[E2]", "The keeper slept")], [("a", "The keeper slept")], 0),
        ([("E1", "tide turned"), ("E1", "tide  turned"), NOWHERE, ("E2", "he")], [("a", "tide turned")], 2),
        # Parts around an ellipsis are cited each if all stand in one passage.
        ([("E1", "The tide turned … The keeper slept.")], [("a", "The tide turned"), ("a", "The keeper slept.")], 0),
        ([("E1", "The tide turned [...] never said")], [], 1),
        ([("E1", "The keeper slept ... some say")], [], 1),
        ([("E1", "The keeper slept … The tide turned")], [], 1),
        *(
            ([(label, "The keeper slept")], [("a", "The keeper slept")], 0)  # any label will do
            for label in ("", "E0", "E99", "e1", "nobody", "E-1", "E" + "9" * 5000, "²", "E1, E2")
        ),
    ],
)
def test_quotations_are_cited_once_from_where_they_stand_or_dropped_and_counted(cite, quotes, cited, dropped):
    assert cite(*quotes) == (cited, dropped)
    assert cite(*quotes, given=[]) == ([], len(quotes)), "no evidence, no citation"


# ---------------------------------------------------------------- a model that only quotes

LIGHT = "# Light\nEleven keepers served. The last was Josiah.\n# Goat\nHe kept a goat. It climbed the stairs."
JOSIAH, GOAT = {"label": "E2", "quote": "The last was Josiah."}, {"label": "E3", "quote": "He kept a goat."}


@pytest.fixture
def store(open_store):
    made = open_store()
    passages = [
        Passage(
            id=f"p-{number}",
            document="light.md",
            position=number,
            start=start,
            end=end,
            text=LIGHT[start:end],
            place=Place(chapter=("Light",) if end <= 52 else ("Goat",)),
        )
        for number, (start, end) in enumerate(pairwise((0, 31, 52, len(LIGHT))))
    ]
    put_passages(made, Document(id="light.md", text=LIGHT), passages)
    return made


@pytest.fixture
def passages(store):
    return list(store.passages().values())


def test_a_sentence_has_its_neighbours_also_from_other_passages_but_not_across_a_heading(store, passages):
    josiah, goat = quote_sentences(store, AnswerOut(answer="", choice="B", quotes=[JOSIAH, GOAT]), passages)
    assert (josiah.quotes[0].before, josiah.quotes[0].after) == ("Eleven keepers served.", "")
    assert (goat.quotes[0].before, goat.quotes[0].after) == ("", "It climbed the stairs.")
    assert [each.quotes[0].place.chapter for each in (josiah, goat)] == [("Light",), ("Goat",)]
    assert (josiah.choice, goat.choice) == ("B", None), "the option belongs to the first sentence alone"
    moon = AnswerOut(answer="", quotes=[{"label": "E1", "quote": "The moon is made of cheese."}])
    assert quote_sentences(store, moon, passages) == ()


def test_a_quoted_sentence_that_is_wrapped_is_a_statement_of_one_line(open_store):
    store, text = open_store(), "Tom Hale, said Ada Marsh, sold\nthe boat. Ada Marsh, sold the boat."
    (key,) = put_document(store, EMBEDDER, document_of("a", text))
    quotes = [{"label": "E1", "quote": quote} for quote in (text[:40], text[41:])]
    reply = AnswerOut(answer=f"{text[:40].replace(chr(10), ' ')}\n{text[41:]}", quotes=quotes)
    first, second = quote_sentences(store, reply, [store.passages([key])[key]])
    assert [each.text for each in (first, second)] == reply.answer.splitlines()
    assert [each.quotes[0].text for each in (first, second)] == [text[:40], text[41:]]
    assert "\n" in first.quotes[0].text


def test_passages_come_before_what_was_made_of_several_and_bring_their_headings(store, passages):
    first, second, third = passages
    summary = Evidence(id="s-1", layer="tree", text="Of keepers.", score=9, sources=(first.id, second.id))
    given, found = prepare_quoting(store, AnswerIn(question="Who?"), [summary, as_evidence(third, 1.0)])
    assert found == [third, first, second]
    assert [each.text for each in given.passages] == [third.text, first.text, second.text]
    assert given.passages[0].headings == [(0, ("Goat",))]
