"""What `find` finds in documents: every place, counted by what the source says of where it is."""

import pytest

from tomewise import Document, Tome
from tomewise.errors import UsageError
from tomewise.reading.places import find_place
from tomewise.types import Node, Place, Scope

REPORT = (
    "# Light\n\nThe World Health Organization (WHO) sent Robert Cratchit, known as Bob, to Skerry.\n\n"
    "## Lamp\n\nWHO paid £1,200. Bob paid twelve hundred pounds; the WHO paid nothing.\n"
)
CHAT = "Ada: The lamp is out.\nTom: Which lamp?\nAda: The big lamp."


@pytest.fixture
def tome(here):
    with Tome.open(here / "a.tome", embedder="hash") as opened:
        (here / "report.md").write_text(REPORT)
        opened.add(here / "report.md")
        marks = tuple((CHAT.index(line), Place(speaker=line[:3])) for line in CHAT.splitlines())
        opened.add(Document(id="chat", text=CHAT, title="The lamp", marks=marks, metadata={"year": 1911}))
        yield opened


def test_every_place_is_given_to_the_character_with_its_line(tome):
    hits = tome.find("lamp")
    assert [hits.total, len(hits.quotes), hits.kind, hits.wanted] == [4, 4, "words", ("lamp",)]
    texts = {record.id: tome.documents[record.id].text for record in tome.documents()}
    for hit in hits.quotes:
        assert texts[hit.document][hit.start : hit.end] == hit.text
        assert hit.before + hit.text + hit.after in texts[hit.document].splitlines()
    assert [hit.text for hit in hits.quotes] == ["Lamp", "lamp", "lamp", "lamp"]
    assert str(hits) == "4 places in 2 documents"


def test_places_are_counted_by_document_chapter_and_speaker(tome):
    counts = tome.find("lamp", "paid").counts
    report = next(record.id for record in tome.documents() if record.id.endswith(".md"))
    assert counts["document"] == ((report, 4), ("chat", 3))
    assert counts["speaker"] == (("Ada", 2), ("Tom", 1))
    assert counts["chapter"] == (("Light › Lamp", 4),)


def test_all_are_counted_whatever_is_shown(tome):
    whole = tome.find("lamp")
    assert tome.find("lamp", limit=0).quotes == ()
    for skip in range(5):
        part = tome.find("lamp", limit=2, skip=skip)
        assert part.quotes == whole.quotes[skip : skip + 2]
        assert (part.total, part.counts) == (whole.total, whole.counts)


def test_a_name_is_found_by_the_other_names_that_documents_give(tome):
    hits = tome.find("World Health Organization", kind="name")
    assert hits.wanted == ("World Health Organization", "WHO")
    assert [hit.text for hit in hits.quotes] == ["World Health Organization", "WHO", "WHO", "WHO"]
    assert tome.find("Robert Cratchit", kind="name").wanted == ("Robert Cratchit", "Bob")
    assert tome.find("WHO", kind="name").wanted == ("WHO", "World Health Organization")


def test_a_value_is_found_in_any_spelling(tome):
    assert [hit.text for hit in tome.find("1200", kind="value").quotes] == ["£1,200", "twelve hundred pounds"]


def test_a_scope_narrows_what_is_read_and_says_how_much_that_is(tome):
    hits = tome.within(where="year=1911").find("lamp")
    assert {hit.document for hit in hits.quotes} == {"chat"}
    assert hits.coverage.read == hits.coverage.passages == len(tome.store.passages(documents=["chat"]))
    assert hits.coverage.unread == ()
    assert tome.within(Scope(documents=frozenset({"chat"}))).find("WHO").total == 0


def test_words_that_run_over_the_end_of_a_passage_are_found(here):
    text = "one two three four five. " * 200
    with Tome.open(here / "long.tome", embedder="hash", settings={"passage_tokens": 32, "overlap": 0}) as tome:
        tome.add(Document(id="a", text=text))
        assert len(tome.store.passages()) > 20
        assert tome.find("five one").total == 199


@pytest.mark.parametrize(
    ("wanted", "how", "problem"),
    [
        ((), {}, "nothing is named to find"),
        ((" ",), {}, "nothing is named to find"),
        ((3,), {}, "what to find must be a list of texts"),
        (("a",), {"kind": "regex"}, "kind must be one of words, name, value, pattern, not 'regex'"),
        (("a",), {"limit": -1}, "cannot show -1 places after 0: give numbers from 0 up"),
        (("a",), {"skip": "x"}, "skip must be a whole number"),
        (("(",), {"kind": "pattern"}, r"cannot read the pattern '\('"),
    ],
)
def test_what_cannot_be_asked_is_refused(tome, wanted, how, problem):
    with pytest.raises(UsageError, match=problem):
        tome.find(*wanted, **how)


def test_more_than_a_million_places_are_refused(here):
    with Tome.open(here / "big.tome", embedder="hash") as tome:
        tome.add(Document(id="a", text="a " * 600_000))
        with pytest.raises(UsageError, match="more than 1,000,000 places have this: look for"):
            tome.find(".", kind="pattern")
        assert tome.find("a").total == 600_000


def test_a_scope_of_entities_counts_places_that_begin_in_its_passages(here):
    text = "one two three four five. " * 40
    with Tome.open(here / "long.tome", embedder="hash", settings={"passage_tokens": 32, "overlap": 0}) as tome:
        tome.add(Document(id="a", text=text))
        second = list(tome.store.passages().values())[1]
        with tome.store.write() as change:
            layer = "entities:passages-triples"
            change.put_nodes([Node(id="ada", layer=layer, text="Ada", sources=(second.id,))], lifetime="any")
        hits = tome.within(Scope(entities=frozenset({"ada"}))).find("three")
        assert {hit.passage for hit in hits.quotes} == {second.id}
        assert (hits.total, hits.coverage.passages) == (second.text.count("three"), 1)
        assert hits.counts["document"] == (("a", hits.total),)
        assert tome.within(Scope(without_entities=frozenset({"ada"}))).find("three").total == 40 - hits.total


def test_of_many_places_only_those_are_made_that_are_shown(tome, monkeypatch):
    made = []
    monkeypatch.setattr("tomewise.recall.hits.find_place", lambda *place: made.append(place) or find_place(*place))
    assert tome.find("lamp", limit=2).total == 4
    assert len(made) == 2
