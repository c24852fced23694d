import pytest
from tests.reading.documents import draw_pdf, pdf

from tomewise.errors import ReadingError
from tomewise.types import Place

LEFT = """The keeper of the light went down to
the harbour every evening at nine, and
he counted the boats there one by one.
Nobody in the town knew why he counted
them, for no boat had been lost in all
the years that he had kept the light.
Only the doctor had a guess, and kept it
to himself, as doctors and lawyers do it.""".split("\n")
RIGHT = """In the autumn a stranger came to the inn
with a letter in the hand of the keeper,
and asked for the way to the old tower.
The clerk who read it saw that the hand
was forged, but he was paid to be silent,
and so the stranger climbed up the rock.
What he found there was a table, a lamp
and a ledger with the names of all boats.""".split("\n")


RAIN = "BT /F1 12 Tf 72 720 Td (Rain.) Tj ET"


def test_a_pdf_has_its_text_marked_with_its_pages(read_document, tmp_path):
    document = read_document("a.PDF", pdf("The rain fell.", "", "The wind rose."))
    path = (tmp_path / "a.PDF").as_posix()
    assert (document.id, document.source, document.title) == (path, path, "")
    assert [place.page for _, place in document.marks] == [1, 2, 3]
    _, second, third = (start for start, _ in document.marks)
    assert document.text[:second].strip() == "The rain fell."
    assert document.text[third:].strip() == "The wind rose."


@pytest.mark.parametrize(
    ("stated", "title"),
    [("The  Town", "The Town"), ("Microsoft Word - draft.doc", ""), ("Microsoft Word - Rain", "Rain")],
)
def test_the_title_is_stated_and_what_programs_write_there_is_none(stated, title, read_document):
    raw = draw_pdf(RAIN, more=[b"<< /Title (%s) >>" % stated.encode()])
    assert read_document("a.pdf", raw.replace(b"/Root 1 0 R", b"/Root 1 0 R /Info 6 0 R")).title == title


def test_the_outline_gives_the_chapters(read_document):
    first = "BT /F1 12 Tf 72 720 Td (Before.) Tj 0 -20 Td (1. The Town) Tj 0 -20 Td (Rain.) Tj ET"
    outline = [
        b"<< /Type /Outlines /First 9 0 R /Last 9 0 R /Count 1 >>",
        b"<< /Title (The Town) /Parent 8 0 R /Dest [4 0 R /Fit] /First 10 0 R /Last 10 0 R /Count 1 >>",
        b"<< /Title (By night) /Parent 9 0 R /Dest [6 0 R /Fit] >>",
    ]
    raw = draw_pdf(first, RAIN.replace("Rain", "Wind"), catalog=b"/Outlines 8 0 R", more=outline)
    document = read_document("a.pdf", raw)
    assert [(document.text[start:].split("\n")[0], place) for start, place in document.marks] == [
        ("Before.", Place(page=1)),
        ("1. The Town", Place(page=1, chapter=("The Town",))),
        ("Wind.", Place(page=2, chapter=("The Town", "By night"))),
    ]


def draw_lines(*columns: tuple[int, list[str]], top: int = 700, by_rows: bool = True) -> str:
    """Columns of lines at these places, drawn line by line across the page, as some programs do."""
    drawn = [(x, top - 14 * number, words) for x, lines in columns for number, words in enumerate(lines)]
    if by_rows:
        drawn.sort(key=lambda each: -each[1])
    return " ".join(f"BT /F1 10 Tf {x} {y} Td ({words}) Tj ET" for x, y, words in drawn)


def draw_heading(words: str, y: int) -> str:
    return f"BT /F1 16 Tf 72 {y} Td ({words}) Tj ET "


REPORT = "The Report of the Harbour Office on the Winter of that Year"
DECISION = "What the Office Then Decided About the Light and the Boats"
NAMES = ["Oil", "Rope", "Lamp glass of the best kind", "Wick", "Salt", "Tar"]
PRICES = ["1.20", "3.10", "9.00", "0.40", "0.70", "2.00"]
COLUMNS = draw_heading(REPORT, 740)


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        (COLUMNS + draw_lines((72, LEFT), (320, RIGHT)), [REPORT, *LEFT, *RIGHT]),
        (COLUMNS + draw_lines((72, LEFT), (320, RIGHT), by_rows=False), [REPORT, *LEFT, *RIGHT]),
        (
            f"{draw_lines((72, LEFT), (320, RIGHT))} {draw_heading(DECISION, 560)}"
            + draw_lines((72, RIGHT), (320, LEFT), top=530),
            [*LEFT, *RIGHT, DECISION, *RIGHT, *LEFT],
        ),
        (
            draw_lines((72, NAMES), (320, PRICES)),
            [f"{name} {price}" for name, price in zip(NAMES, PRICES, strict=True)],
        ),
    ],
    ids=["columns drawn by rows", "columns drawn one by one", "a title between columns", "a table"],
)
def test_columns_are_read_one_after_the_other_and_a_table_by_rows(page, lines, read_document):
    assert " ".join(read_document("a.pdf", draw_pdf(page)).text.split()) == " ".join(lines)


def test_a_short_line_that_ends_a_sentence_ends_a_paragraph(read_document):
    lines = [*LEFT[:3], "So it was.", *RIGHT[:3]]
    document = read_document("a.pdf", draw_pdf(draw_lines((72, lines))))
    assert document.text == "\n".join([*LEFT[:3], "So it was.", "", *RIGHT[:3]])


IMAGE = "q 100 0 0 100 72 600 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q"


def test_a_scanned_pdf_is_named_as_such_and_scanned_pages_beside_text_are_counted(read_document):
    with pytest.raises(ReadingError, match=r"a\.pdf is scanned: its 2 pages are images without text"):
        read_document("a.pdf", draw_pdf(IMAGE, IMAGE))
    assert read_document("b.pdf", draw_pdf(RAIN, IMAGE, IMAGE)).metadata == {"scanned_pages": [2, 3]}
