"""How documents are laid out, and the parts of them that are named."""

import pytest

from tomewise import Document, Tome
from tomewise.errors import UnknownName, UsageError
from tomewise.types import Place

TEXT = "Before.\n\n# One\n\nalpha\n\n## 1.1 The Sub\n\nbeta\nmore\n\n# 2. Two\n\ngamma\n"
CHAT = "Ada: The lamp is out.\nTom: Which?\nAda: The big lamp."


@pytest.fixture
def tome(here):
    with Tome.open(here / "a.tome", embedder="hash", settings={"passage_tokens": 32, "overlap": 0}) as opened:
        (here / "r.md").write_text(TEXT)
        opened.add(here / "r.md")
        marks = tuple((CHAT.index(line), Place(speaker=line[:3])) for line in CHAT.splitlines())
        opened.add(Document(id="chat", text=CHAT, title="The lamp", marks=marks))
        pages = tuple((at, Place(page=number)) for number, at in enumerate(range(0, 600, 100), start=1))
        opened.add(Document(id="pages", text="".join(f"{n:<99}\n" for n in range(6)), marks=pages))
        yield opened


def test_an_outline_has_headings_pages_speakers_and_lengths(tome):
    outline = tome.documents.outline("r.md")
    assert [each.chapter for each in outline.sections] == [("One",), ("One", "1.1 The Sub"), ("2. Two",)]
    assert [TEXT[each.start : each.end].split("\n")[0] for each in outline.sections] == [
        "# One",
        "## 1.1 The Sub",
        "# 2. Two",
    ]
    assert TEXT[outline.sections[0].start : outline.sections[0].end].endswith("more\n\n")
    assert (outline.characters, outline.lines, outline.pages) == (len(TEXT), 14, 0)
    assert tome.documents.outline("chat").speakers == {"Ada": len(CHAT) - len("Tom: Which?\n"), "Tom": 12}
    assert tome.documents.outline("pages").pages == 6


@pytest.mark.parametrize(
    ("name", "part", "text"),
    [
        ("r.md", "chapter One", TEXT[TEXT.index("# One") : TEXT.index("# 2.")]),
        ("r.md", "chapter the sub", "## 1.1 The Sub\n\nbeta\nmore\n\n"),
        ("r.md", "Chapter 2", "# 2. Two\n\ngamma\n"),
        ("r.md", "chapter 1.1", "## 1.1 The Sub\n\nbeta\nmore\n\n"),
        ("r.md", "lines 9-10", "beta\nmore\n"),
        ("r.md", "line 14", "gamma\n"),
        ("r.md", "lines 14-99", "gamma\n"),
        ("r.md", "parts 2 to 3", TEXT[TEXT.index("# One") : TEXT.index("# 2.")].rstrip()),
        ("r.md", "characters 0-6", "Before"),
        ("pages", "page 2", f"{1:<99}\n"),
        ("pages", "pages 5 to 9", f"{4:<99}\n{5:<99}\n"),
    ],
)
def test_a_part_is_read_by_the_name_that_people_give_it(tome, name, part, text):
    read = tome.documents.read(name, part)
    assert read.text == text
    assert tome.documents[name].text[read.start : read.end] == text


@pytest.mark.parametrize(
    ("part", "error", "problem"),
    [
        ("page 1", UnknownName, "r.md has no page 1: see its outline"),
        ("lines 15-20", UnknownName, "r.md has no line 15-20"),
        ("lines 0", UnknownName, "r.md has no line 0"),
        ("chapter Onne", UnknownName, "r.md has no chapter 'Onne': did you mean 'One'"),
        ("the beginning", UsageError, "cannot read the part 'the beginning': write"),
        ("part 0", UnknownName, "r.md has no part 0"),
        ("part 9", UnknownName, "r.md has no part 9"),
        ("lines one", UsageError, "cannot read the lines 'one': give a number, or two as 3-5"),
        ("lines 9-3", UnknownName, "r.md has no line 9-3"),
    ],
)
def test_a_part_that_is_not_there_is_refused(tome, part, error, problem):
    with pytest.raises(error, match=problem):
        tome.documents.read("r.md", part)


def test_a_heading_ends_where_the_next_of_its_level_begins(here):
    chapters = ["a", "a.b", "a.b.c", "a.d", "a.d.c", "e.b", "a", "a.b"]
    marks = tuple((10 * number, Place(chapter=tuple(name.split(".")))) for number, name in enumerate(chapters))
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(Document(id="d", text="123456789\n" * len(chapters), marks=marks))
        sections = tome.documents.outline("d").sections
    assert [".".join(each.chapter) for each in sections] == chapters
    assert [each.end for each in sections] == [50, 30, 30, 50, 50, 60, 80, 80]
