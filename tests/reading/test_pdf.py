from pathlib import Path

import pytest
from tests.reading.documents import draw_pdf, pdf

from tomewise.errors import ReadingError
from tomewise.reading.pdf import read_pdf
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


def write(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


def test_pdf(tmp_path: Path) -> None:
    path = write(tmp_path / "a.PDF", pdf("The rain fell on the town."))
    (document,) = read_pdf(path)
    assert document.text == "The rain fell on the town."
    assert (document.id, document.source, document.title) == (path.as_posix(), path.as_posix(), "")


def test_a_pdf_is_marked_with_its_pages(tmp_path: Path) -> None:
    (document,) = read_pdf(write(tmp_path / "a.pdf", pdf("The rain fell.", "", "The wind rose.")))
    assert [place.page for _, place in document.marks] == [1, 2, 3]
    (_, start), (_, second), (third, _) = [(start, start) for start, _ in document.marks]
    assert document.text[start:second].strip() == "The rain fell."
    assert document.text[third:].strip() == "The wind rose."


def test_the_title_is_stated_and_what_programs_write_there_is_none(tmp_path: Path) -> None:
    for stated, title in (
        ("The  Town", "The Town"),
        ("Microsoft Word - draft.doc", ""),
        ("Microsoft Word - Rain", "Rain"),
    ):
        drawing = "BT /F1 12 Tf 72 720 Td (Rain.) Tj ET"
        raw = draw_pdf(drawing, more=[b"<< /Title (%s) >>" % stated.encode()])
        raw = raw.replace(b"/Root 1 0 R", b"/Root 1 0 R /Info 6 0 R")
        assert read_pdf(write(tmp_path / "a.pdf", raw))[0].title == title


def test_the_outline_gives_the_chapters(tmp_path: Path) -> None:
    first, second = (
        "BT /F1 12 Tf 72 720 Td (Before.) Tj 0 -20 Td (1. The Town) Tj 0 -20 Td (Rain.) Tj ET",
        "BT /F1 12 Tf 72 720 Td (Wind.) Tj ET",
    )
    outline = [
        b"<< /Type /Outlines /First 9 0 R /Last 9 0 R /Count 1 >>",
        b"<< /Title (The Town) /Parent 8 0 R /Dest [4 0 R /Fit] /First 10 0 R /Last 10 0 R /Count 1 >>",
        b"<< /Title (By night) /Parent 9 0 R /Dest [6 0 R /Fit] >>",
    ]
    raw = draw_pdf(first, second, catalog=b"/Outlines 8 0 R", more=outline)
    (document,) = read_pdf(write(tmp_path / "a.pdf", raw))
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


@pytest.mark.parametrize("by_rows", [True, False])
def test_columns_are_read_one_after_the_other(by_rows: bool, tmp_path: Path) -> None:
    heading = "BT /F1 16 Tf 72 740 Td (The Report of the Harbour Office on the Winter of that Year) Tj ET "
    page = heading + draw_lines((72, LEFT), (320, RIGHT), by_rows=by_rows)
    (document,) = read_pdf(write(tmp_path / "a.pdf", draw_pdf(page)))
    words = " ".join(document.text.split())
    assert words == " ".join(["The Report of the Harbour Office on the Winter of that Year", *LEFT, *RIGHT])


def test_a_title_between_columns_parts_them(tmp_path: Path) -> None:
    heading = "BT /F1 16 Tf 72 560 Td (What the Office Then Decided About the Light and the Boats) Tj ET "
    page = draw_lines((72, LEFT), (320, RIGHT)) + " " + heading + draw_lines((72, RIGHT), (320, LEFT), top=530)
    (document,) = read_pdf(write(tmp_path / "a.pdf", draw_pdf(page)))
    heading_words = "What the Office Then Decided About the Light and the Boats"
    assert " ".join(document.text.split()) == " ".join([*LEFT, *RIGHT, heading_words, *RIGHT, *LEFT])


def test_a_table_is_read_by_rows(tmp_path: Path) -> None:
    names, prices = (
        ["Oil", "Rope", "Lamp glass of the best kind", "Wick", "Salt", "Tar"],
        ["1.20", "3.10", "9.00", "0.40", "0.70", "2.00"],
    )
    (document,) = read_pdf(write(tmp_path / "a.pdf", draw_pdf(draw_lines((72, names), (320, prices)))))
    rows = [f"{name} {price}" for name, price in zip(names, prices, strict=True)]
    assert " ".join(document.text.split()) == " ".join(rows)


def test_a_short_line_that_ends_a_sentence_ends_a_paragraph(tmp_path: Path) -> None:
    lines = [*LEFT[:3], "So it was.", *RIGHT[:3]]
    (document,) = read_pdf(write(tmp_path / "a.pdf", draw_pdf(draw_lines((72, lines)))))
    assert document.text == "\n".join([*LEFT[:3], "So it was.", "", *RIGHT[:3]])


def test_an_encrypted_pdf_is_named_as_such(tmp_path: Path) -> None:
    encrypt = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00><00>]" % (
        b"41" * 32,
        b"42" * 32,
    )
    path = write(tmp_path / "a.pdf", pdf("Rain.").replace(b"/Root 1 0 R", b"/Root 1 0 R " + encrypt))
    with pytest.raises(ReadingError, match=r"a\.pdf needs a password, because it is encrypted: save a copy without"):
        read_pdf(path)


IMAGE = "q 100 0 0 100 72 600 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q"


def test_a_scanned_pdf_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=r"a\.pdf is scanned: its 2 pages are images without text"):
        read_pdf(write(tmp_path / "a.pdf", draw_pdf(IMAGE, IMAGE)))


def test_the_scanned_pages_of_a_pdf_with_text_are_counted(tmp_path: Path) -> None:
    raw = draw_pdf("BT /F1 12 Tf 72 720 Td (Rain.) Tj ET", IMAGE, IMAGE)
    (document,) = read_pdf(write(tmp_path / "a.pdf", raw))
    assert document.metadata == {"scanned_pages": [2, 3]}


def test_a_damaged_pdf_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=r"a could not be converted: .*; repair it") as caught:
        read_pdf(write(tmp_path / "a", b"this is no document at all"))
    assert "\n" not in str(caught.value)
