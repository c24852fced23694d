"""A quotation counts only where it stands."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.roles import Quote
from tomewise.loops.citing import Citer, locate
from tomewise.store.sql.sql_store import SqlStore
from tomewise.testing import document_of, put_document
from tomewise.types import Evidence, Passage

TEXT = 'He said: “It’s half-past nine -- no\n  later,” and\tleft…  «Never»\nwas "all" she (a. b*c?) wrote.'


def passage(text=TEXT, start=100):
    return Passage(id="p", document="d", position=3, start=start, end=start + len(text), text=text, title="T")


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("half-past nine", "half-past nine"),
        ("  half-past nine\n", "half-past nine"),
        ("It's half-past", "It’s half-past"),
        ("It`s half‑past", "It’s half-past"),
        ("nine — no later", "nine -- no\n  later"),
        ("nine—no later", "nine -- no\n  later"),
        ("nine–no later", "nine -- no\n  later"),
        ('no later," and left', "no\n  later,” and\tleft"),
        ('"Never" was', "«Never»\nwas"),
        ("“It’s half-past nine”", "It’s half-past nine"),
        ("…half-past nine…", "half-past nine"),
        ("...half-past nine...", "half-past nine"),
        ("[...] half-past nine [...]", "half-past nine"),
        ("and left… «Never»", "and\tleft…  «Never»"),
        ('"all" she (a. b*c?) wrote.', '"all" she (a. b*c?) wrote.'),
        ("half past nine", None),
        ("Half-past nine", None),
        ("b.c", None),
        ("he", None),
        ("", None),
        ("---", None),
        ('"""', None),
        ("...", None),
        (".*", None),
        ("he said it is", None),
    ],
)
def test_folding(quote, found):
    citation = locate(quote, passage())
    assert (citation and citation.quote) == found
    if citation:
        assert TEXT[citation.start - 100 : citation.end - 100] == citation.quote
        assert (citation.document, citation.passage, citation.position, citation.title) == ("d", "p", 3, "T")


@given(st.text(), st.text(), st.text())
def test_whatever_is_found_stands_there(before, quote, after):
    where = passage(before + quote + after)
    citation = locate(quote, where)
    if citation:
        assert where.text[citation.start - 100 : citation.end - 100] == citation.quote
        assert len(citation.quote) >= 3
    else:
        assert len(quote.strip()) < 3


@given(st.data())
def test_a_piece_is_found_however_it_is_wrapped(data):
    words = data.draw(st.lists(st.text("ab’“-", min_size=1).filter(lambda word: word.strip("-’“")), min_size=3))
    text = data.draw(st.sampled_from([" ", "\n", "  \t"])).join(words)
    quote = " ".join(words).translate(str.maketrans({"’": "'", "“": '"', "-": "—"}))
    assert locate(quote, passage(text)) is not None


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
    ],
)
def test_hostile_quotations_cost_little(quote, text):
    begun = time.thread_time()
    assert locate(quote, passage(text)) is None or locate(quote, passage(text)).quote in text
    assert time.thread_time() - begun < 3


@pytest.fixture
def shelf(here):
    store = SqlStore.open(here / "a.tome")
    texts = {"a": "The tide turned at nine. The keeper slept.", "b": "The tide turned at nine, some say."}
    evidence = []
    for name, text in texts.items():
        key = put_document(store, HashEmbedder(16), document_of(name, text))[0]
        found = store.passages([key])[key]
        evidence.append(Evidence(node=found.id, layer="passages", text=text, score=1.0, sources=(found.id,)))
    yield Citer(store), evidence
    store.close()


def cite(shelf, *quotes):
    citer, evidence = shelf
    return citer.cite([Quote(label=label, quote=quote) for label, quote in quotes], evidence)


def test_the_evidence_that_is_named_comes_first_and_any_other_then(shelf):
    assert [c.document for c in cite(shelf, ("E2", "The tide turned")).citations] == ["b"]
    assert [c.document for c in cite(shelf, ("[E2]", "The keeper slept")).citations] == ["a"]


@pytest.mark.parametrize("label", ["", "E0", "E99", "e1", "nobody", "E-1", "E" + "9" * 5000, "²", "E1, E2"])
def test_any_label_will_do(shelf, label):
    assert [c.quote for c in cite(shelf, (label, "The keeper slept")).citations] == ["The keeper slept"]


def test_what_stands_nowhere_is_dropped_and_counted_and_nothing_is_shown_twice(shelf):
    found = cite(shelf, ("E1", "tide turned"), ("E1", "tide  turned"), ("E1", "never said"), ("E2", ""))
    assert [c.quote for c in found.citations] == ["tide turned"]
    assert found.dropped == 2


def test_parts_around_an_ellipsis_are_cited_each_if_all_stand_in_one_passage(shelf):
    found = cite(shelf, ("E1", "The tide turned … The keeper slept."))
    assert [c.quote for c in found.citations] == ["The tide turned", "The keeper slept."]
    assert cite(shelf, ("E1", "The tide turned [...] never said")).dropped == 1
    assert cite(shelf, ("E1", "The keeper slept ... some say")).dropped == 1


def test_no_evidence_no_citation(shelf):
    assert shelf[0].cite([Quote(label="E1", quote="The tide turned")], []).dropped == 1
