"""Tables of all formats: which rows name the columns, which sign cuts, what spans, what a cell shows."""

import zipfile
from datetime import date, datetime, time

import openpyxl
import pptx
import pytest
from pptx.util import Inches
from tests.reading.documents import change_parts, docx


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.csv", "|")])
def test_rows_name_their_columns(name, delimiter, read_document):
    lines = ["Name{0}Town", '"Poe, Anna"{0}"New\nYork"', "{0}", "Bob{0}{0}x"]
    document = read_document(name, "\r\n".join(lines).format(delimiter))
    assert document.text == "Name: Poe, Anna; Town: New York\n\nName: Bob; column 3: x"
    assert [(start, place.row) for start, place in document.marks] == [(0, 2), (document.text.index("Name: Bob"), 4)]


NAMED = {
    "years": ("country,2019,2020\nChile,18.2,18.4", "country: Chile; 2019: 18.2; 2020: 18.4"),
    "years in steps": ("Country,1990,1995,2000\nChile,13,14,15", "Country: Chile; 1990: 13; 1995: 14; 2000: 15"),
    "months": ("metal,2019-01,2019-02\niron,1,2", "metal: iron; 2019-01: 1; 2019-02: 2"),
    "quarters": ("metal,Q1 2019,Q2 2019\niron,100,120", "metal: iron; Q1 2019: 100; Q2 2019: 120"),
    "one year": ("country,2020\nChile,19", "country: Chile; 2020: 19"),
    "index": (",name,age\n0,Ann,31", "column 1: 0; name: Ann; age: 31"),
    "columns of an index": (",0,1\n0,1.5,2.5\n1,2,3", "column 1: 0; 0: 1.5; 1: 2.5\n\ncolumn 1: 1; 0: 2; 1: 3"),
    "a name in the midst": ("id,,amount\n1,2,3", "id: 1; column 2: 2; amount: 3"),
    "the same name": ("id,x,x,x\n1,2,3,4", "id: 1; x: 2; x (2): 3; x (3): 4"),
    "trailing delimiter": ("a,b,\n1,2,", "a: 1; b: 2"),
    "numbers with signs": (
        "item,cost,share\nbolt,$3.50,4 %\nnut,-1,n/a",
        "item: bolt; cost: $3.50; share: 4 %\n\nitem: nut; cost: -1; share: n/a",
    ),
    "codes": ("sku,what\nPPR-9087,Paper", "sku: PPR-9087; what: Paper"),
    "truths": ("feature,active\nx,true\ny,false", "feature: x; active: true\n\nfeature: y; active: false"),
    "known words": ("Vorname,Nachname\nAda,Marsh", "Vorname: Ada; Nachname: Marsh"),
    "small letters": (
        "planet,moon\nEarth,Luna\nMars,Phobos",
        "planet: Earth; moon: Luna\n\nplanet: Mars; moon: Phobos",
    ),
    "two rows": (
        "Town,2024,,2023,\n,Steel,Iron,Steel,Iron\nHolm,4,5,6,7",
        "Town: Holm; 2024 Steel: 4; 2024 Iron: 5; 2023 Steel: 6; 2023 Iron: 7",
    ),
    "groups of pandas": (",2024,2024\n,Steel,Iron\nHolm,4,5", "column 1: Holm; 2024 Steel: 4; 2024 Iron: 5"),
    "units": ("Name,Mass\n[-],[kg]\nAnn,60", "Name [-]: Ann; Mass [kg]: 60"),
    "a title": (
        "Sales 2023\nin tons\nTown,Units,Price\nHolm,3,4",
        "Sales 2023\n\nin tons\n\nTown: Holm; Units: 3; Price: 4",
    ),
    "fields above": (
        "Report:,Sales\nDate:,2024-01-02\n\nTown,Units,Price\nHolm,3,4",
        "Report: | Sales\n\nDate: | 2024-01-02\n\nTown: Holm; Units: 3; Price: 4",
    ),
    "a comment": (
        "# made by us, v2\nTown,Units,Price\nHolm,3,4",
        "# made by us | v2\n\nTown: Holm; Units: 3; Price: 4",
    ),
    "stated sign": ('"sep=;"\nName;Sum\nAda;3,50', "Name: Ada; Sum: 3,50"),
    "another header": ("Item,Qty\nOak,3\n\nTown,Pop\nHolm,100", "Item: Oak; Qty: 3\n\nTown: Holm; Pop: 100"),
    "an empty row": ("Item,Qty\nOak,3\n\nElm,4", "Item: Oak; Qty: 3\n\nItem: Elm; Qty: 4"),
    "commas in names": ("Name, Vorname;Betrag, EUR\nMarsh, Ada;3,50", "Name, Vorname: Marsh, Ada; Betrag, EUR: 3,50"),
    "commas in words": ("id|text\n1|a, b, c\n2|d", "id: 1; text: a, b, c\n\nid: 2; text: d"),
    "one column": ("Name\nMarsh, Ada\nHolm\nObel, Ines", "Name: Marsh, Ada\n\nName: Holm\n\nName: Obel, Ines"),
    "blanks before marks": ('id, text\n1, "a, b"', "id: 1; text: a, b"),
    "a long cell": ("Name\n" + "x" * 200_000, "Name: " + "x" * 200_000),
}


@pytest.mark.parametrize(("text", "expected"), NAMED.values(), ids=NAMED)
def test_a_header_is_found(text, expected, read_document):
    assert read_document("a.csv", text).text == expected


NAMELESS = {
    "numbers": "1,Ann\n2,Bob",
    "people": "Ada,Marsh,Holm\nBo,Obel,Brenn\nCy,Quill,Arvik",
    "years that are values": "Ada,1815,1852\nAlan,1912,1954",
    "repeated": "Ann,Ann\nBob,Cid",
    "alone": "Name,Town",
}


@pytest.mark.parametrize("text", NAMELESS.values(), ids=NAMELESS)
def test_rows_without_a_header_say_no_false_names(text, read_document):
    assert read_document("a.csv", text).text == text.replace(",", " | ").replace("\n", "\n\n")


def test_merged_cells_of_a_sheet_stand_in_all_that_they_cover_and_a_title_once(read_document, tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    rows = [["Ores of 2023"], ["Region", "2024", None], [None, "Tin", "Zinc"], ["North", 1, 2], [None, 3, 4]]
    for row in rows:
        sheet.append(row)
    for cells in ("A1:C1", "A2:A3", "B2:C2", "A4:A5"):
        sheet.merge_cells(cells)
    book.save(tmp_path / "a.xlsx")
    assert read_document("a.xlsx").text == (
        "# Sheet\n\nOres of 2023\n\nRegion: North; 2024 Tin: 1; 2024 Zinc: 2\n\n"
        "Region: North; 2024 Tin: 3; 2024 Zinc: 4"
    )


@pytest.mark.parametrize(
    ("value", "style", "shown"),
    [
        (4711, "0000000", "0004711"),
        (0.0475, "0.00 %", "4.75 %"),
        (1234.5, '"€"#,##0.00', "€1,234.50"),
        (1234.5, "[$€-407]#,##0.00", "€1,234.50"),
        (-3.5, "#,##0.00_);[Red](#,##0.00)", "(3.50)"),
        (0, '0;-0;"none"', "none"),
        (1234567, '0.0,,"M"', "1.2M"),
        (0.00012, "0.00E+00", "1.20E-04"),
        (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (3, "0.##", "3"),
        (2.5, "# ?/?", "2.5"),
        (15, '0" kg"', "15 kg"),
        (date(2024, 3, 1), "mm-dd-yy", "2024-03-01"),
        (date(2024, 3, 1), "dd.mm.yyyy", "01.03.2024"),
        (date(2024, 3, 1), "mmmm\\ d\\,\\ yyyy;@", "March 1, 2024"),
        (datetime.fromisoformat("2024-03-01T14:05"), "yyyy-mm-dd hh:mm", "2024-03-01 14:05"),
        (time(14, 5), "h:mm AM/PM", "2:05 PM"),
    ],
    ids=str,
)
def test_a_cell_is_read_as_the_sheet_shows_it(value, style, shown, read_document, tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"] = value
    book.active["A1"].number_format = style
    book.save(tmp_path / "a.xlsx")
    assert read_document("a.xlsx").text == f"# Sheet\n\n{shown}"


def test_a_formula_that_nobody_calculated_is_written_and_counted(read_document, tmp_path):
    book = openpyxl.Workbook()
    for row in (["Item", "Sum"], ["Oak", "=2*3"], ["Ash", 4]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    document = read_document("a.xlsx")
    assert document.text == "# Sheet\n\nItem: Oak; Sum: =2*3\n\nItem: Ash; Sum: 4"
    assert document.metadata["left_out"] == ["1 formula without value"]


def test_a_formula_whose_value_is_an_empty_text_is_an_empty_cell(read_document, tmp_path):
    book = openpyxl.Workbook()
    for row in (["Item", "Sum"], ["Oak", "=2*3"], ["Ash", 4]):
        book.active.append(row)
    book.save(tmp_path / "b.xlsx")
    raw = (tmp_path / "b.xlsx").read_bytes()
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(tmp_path / "b.xlsx") as archive:
        xml = archive.read(sheet).decode()
    changed = change_parts(raw, {sheet: xml.replace('<c r="B2">', '<c r="B2" t="str">')})
    assert read_document("a.xlsx", changed).text == "# Sheet\n\nItem: Oak\n\nItem: Ash; Sum: 4"


PAGES = {
    "downwards": ("<tr><th>A<th>B<tr><td rowspan=2>EU<td>1<tr><td>2", "| A | B |\n| EU | 1 |\n| EU | 2 |"),
    "to the end": ("<tr><td rowspan=0>x<td>1<tr><td>2", "| x | 1 |\n| x | 2 |"),
    "names of two rows": (
        "<thead><tr><th rowspan=2>Town<th colspan=2>2024<tr><th>Tin<th>Zinc</thead><tr><td>Holm<td>4<td>5",
        "| Town | 2024 Tin | 2024 Zinc |\n| Holm | 4 | 5 |",
    ),
    "a caption and a wide cell": (
        "<caption>Stock</caption><tr><th>A<th>B<tr><td colspan=2>both<tr><td>1<td>2",
        "Stock\n\n| A | B |\n| both |  |\n| 1 | 2 |",
    ),
    "a table in a cell": (
        "<tr><td>out</td><td><table><tr><td>in</td><td>5</td></tr></table></td></tr><tr><td>x</td><td>y</td></tr>",
        "| out | in, 5 |\n| x | y |",
    ),
    "a frame": ("<tr><td><h2>News</h2><p>One.<p>Two.", "## News\n\nOne.\n\nTwo."),
    "a bomb": ("<tr><td rowspan=65000 colspan=999>x<td>z<tr><td>y", "| x | z |\n| x | y |"),
}


@pytest.mark.parametrize(("rows", "expected"), PAGES.values(), ids=PAGES)
def test_cells_of_a_page_are_laid_on_a_grid(rows, expected, read_document):
    assert read_document("a.html", f"<body><table>{rows}</table></body>").text == expected


def test_a_long_table_of_a_page_repeats_its_names(read_document):
    rows = "".join(f"<tr><td>n{number}<td>{number}" for number in range(20))
    lines = read_document("a.html", f"<table><tr><th>Name<th>Size{rows}</table>").text.split("\n")
    assert (len(lines), lines[19]) == (20, "Name: n19; Size: 19")


def test_cells_outside_of_a_table_are_not_lost(read_document):
    assert read_document("a.html", "<td>lone</td><tr><td>a<td>b</tr>").text == "lone\n\na\n\nb"


def test_merged_cells_of_word_and_powerpoint_stand_in_all_that_they_cover(read_document, tmp_path):
    cell = "<w:tc><w:tcPr>{}</w:tcPr><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    rows = (('<w:vMerge w:val="restart"/>', "Law"), ("", "Ida")), (("<w:vMerge/>", ""), ("", "Jon"))
    body = "".join(f"<w:tr>{''.join(cell.format(*each) for each in row)}</w:tr>" for row in rows)
    docx(tmp_path / "a.docx", f"<w:tbl>{body}</w:tbl>")
    assert read_document("a.docx").text.endswith("| Law | Ida |\n| Law | Jon |")
    deck = pptx.Presentation()
    table = deck.slides.add_slide(deck.slide_layouts[6]).shapes.add_table(2, 2, *(Inches(1),) * 4).table
    table.cell(0, 0).merge(table.cell(1, 0))
    for (row, column), words in {(0, 0): "Law", (0, 1): "Ida", (1, 1): "Jon"}.items():
        table.cell(row, column).text = words
    deck.save(tmp_path / "a.pptx")
    assert read_document("a.pptx").text == "| Law | Ida |\n| Law | Jon |"


def test_a_note_behind_an_empty_row_has_no_name_of_a_column(read_document):
    text = read_document("a.csv", "Item,Cost\nA,1\nB,2\n\nSource: the mill\n").text
    assert text.endswith("Item: B; Cost: 2\n\nSource: the mill")
