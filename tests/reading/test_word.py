"""DOCX: numbers, formulas, boxes, fields, wrappers, headers, comments, hidden text and tracked changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reading.documents import docx, read_zip, write_zip

from tomewise.types import Document

SPACES = " ".join(
    f'xmlns:{prefix}="http://schemas.openxmlformats.org/{path}/main"'
    for prefix, path in (("w", "wordprocessingml/2006"), ("a", "drawingml/2006"))
)
SPACES += (
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    ' xmlns:wp="wp" xmlns:wps="wps" xmlns:pic="pic" xmlns:v="v" xmlns:o="o" xmlns:c="c" xmlns:dgm="dgm" xmlns:mc="mc"'
)


def write_paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{write_run(text)}</w:p>"


def write_run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def write_level(level: int, text: str, form: str = "decimal", more: str = "") -> str:
    number = '<w:start w:val="1"/>' + f'<w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/>'
    return f'<w:lvl w:ilvl="{level}">{number}{more}</w:lvl>'


def write_item(text: str, level: int = 0, number: int = 1) -> str:
    return write_paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def write_word(path: Path, body: str, **parts: str) -> Path:
    """A DOCX with this body and further parts by kind; what is behind `__` in a name tells two of a kind apart."""
    content = read_zip(docx(path))
    content["word/document.xml"] = f"<w:document {SPACES}><w:body>{body}</w:body></w:document>"
    content |= {f"word/{name}.xml": f"<w:{name} {SPACES}>{part}</w:{name}>" for name, part in parts.items()}
    links = "".join(f'<l Id="{name}" Type="x/{name.split("__")[0]}" Target="{name}.xml"/>' for name in parts)
    content["word/_rels/document.xml.rels"] = f"<links>{links}</links>"
    return write_zip(path, content)


Read = Callable[..., Document]


@pytest.fixture(name="read")
def make_read(read_document, tmp_path: Path) -> Read:
    def write_and_read(body: str, **parts: str) -> Document:
        write_word(tmp_path / "a.docx", body, **parts)
        return read_document("a.docx")

    return write_and_read


def write_list(levels: str, more: str = "", of_list: str = "") -> str:
    kind = f'<w:abstractNum w:abstractNumId="7">{levels}</w:abstractNum>'
    return f'{kind}<w:num w:numId="1"><w:abstractNumId w:val="7"/>{of_list}</w:num>{more}'


def write_style(id: str, name: str, properties: str = "", based_on: str = "", of_run: str = "") -> str:
    inside = (
        f'<w:name w:val="{name}"/><w:basedOn w:val="{based_on}"/><w:pPr>{properties}</w:pPr><w:rPr>{of_run}</w:rPr>'
    )
    return f'<w:style w:styleId="{id}">{inside}</w:style>'


ARTICLES = write_level(0, "Article %1", "upperRoman")
LEVELS = ARTICLES + write_level(1, "%1.%2", more="<w:isLgl/>") + write_level(2, "(%3)", "lowerLetter")


def test_articles_clauses_and_letters_have_the_numbers_that_word_shows(read):
    clauses = [("Goods", 0), ("Timber", 1), ("oak", 2), ("ash", 2), ("Payment", 0), ("On time", 1), ("late", 2)]
    document = read("".join(write_item(*each) for each in clauses), numbering=write_list(LEVELS))
    assert document.text.splitlines() == [
        "Article I Goods", "1.1 Timber", "(a) oak", "(b) ash", "Article II Payment", "2.1 On time", "(a) late",
    ]  # fmt: skip


def test_a_list_that_is_interrupted_goes_on_and_another_begins_anew(read):
    start = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    again = f'<w:num w:numId="2"><w:abstractNumId w:val="7"/>{start}</w:num>'
    steps = [write_item("Open"), write_paragraph("Wait."), write_item("Drain"), write_item("Close", number=2)]
    document = read("".join(steps), numbering=write_list(write_level(0, "%1)"), again))
    assert document.text == "1) Open\n\nWait.\n\n2) Drain\n5) Close"


def test_headings_have_the_numbers_of_their_styles_also_where_a_style_has_another_name(read):
    tied = [
        write_level(at, text, more=f'<w:pStyle w:val="{id}"/>')
        for at, text, id in ((0, "§ %1", "b1"), (1, "%1.%2", "b2"))
    ]
    number = '<w:numPr><w:numId w:val="1"/></w:numPr>'
    styles = write_style("b1", "heading 1", number) + write_style("b2", "heading 2", number)
    styles += write_style("b3", "Clause", based_on="b2") + write_style("toc", "toc 1")
    named = [("toc", "Goods 12"), ("b1", "Goods"), ("b2", "Oak"), ("b3", "Ash"), ("b1", "Payment"), ("b2", "Fees")]
    body = "".join(write_paragraph(text, f'<w:pStyle w:val="{style}"/>') for style, text in named)
    document = read(body, styles=styles, numbering=write_list("".join(tied)))
    assert document.text == "# § 1 Goods\n\n## 1.1 Oak\n\n## 1.2 Ash\n\n# § 2 Payment\n\n## 2.1 Fees"
    assert document.marks[-1][1].chapter == ("§ 2 Payment", "2.1 Fees")


def test_bullets_roman_numbers_and_letters_behind_z_are_written(read):
    levels = (
        write_level(0, "\uf0b7", "bullet") + write_level(1, "%2.", "lowerRoman") + write_level(2, "%3", "upperLetter")
    )
    body = "".join([write_item("wind"), *[write_item("x", 1)] * 9, *[write_item("y", 2)] * 28])
    lines = read(body, numbering=write_list(levels)).text.splitlines()
    assert (lines[0], lines[4], lines[9], lines[-1]) == ("- wind", "iv. x", "ix. x", "BB y")


def write_math(inside: str) -> str:
    return f"<m:oMath>{inside}</m:oMath>"


def write_part(name: str, text: str) -> str:
    return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"


E = write_part("e", "x+1")
SUM = f'<m:naryPr><m:chr m:val="∑"/></m:naryPr>{write_part("sub", "i")}{write_part("sup", "n")}{E}'


@pytest.mark.parametrize(
    ("inside", "line"),
    [
        (f"<m:f>{write_part('num', '40')}{write_part('den', 'a+b')}</m:f>", "40/(a+b)"),
        (f"<m:sSup>{E}{write_part('sup', '2')}</m:sSup><m:r><m:t>≥0</m:t></m:r>", "(x+1)^2≥0"),
        (f"<m:rad><m:deg/>{E}</m:rad>", "√(x+1)"),
        ("<m:rad><m:deg/><m:e><m:r><m:t>2c</m:t></m:r></m:e></m:rad>", "√(2c)"),
        (f"<m:nary>{SUM}</m:nary>", "∑_i^n x+1"),
        (f'<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>{E}{E}</m:d>', "[x+1|x+1]"),
        (f"<m:m><m:mr>{E}{E}</m:mr><m:mr>{E}{E}</m:mr></m:m>", "[x+1, x+1; x+1, x+1]"),
        (f"<m:func>{write_part('fName', 'sin')}{E}</m:func>", "sin (x+1)"),
    ],
)  # fmt: skip
def test_a_formula_stands_in_its_sentence(read, inside, line):
    body = f"<w:p>{write_run('The dose is ')}{write_math(inside)}{write_run(' mg.')}</w:p>"
    assert read(body).text == f"The dose is {line} mg."


def test_a_formula_alone_or_in_a_cell_is_read_and_one_without_text_is_counted(read):
    math = write_math("<m:r><m:t>E=mc</m:t></m:r>")
    cell = f"<w:tbl><w:tr><w:tc><w:p>{math}</w:p></w:tc></w:tr></w:tbl>"
    field = "<w:p><w:r><w:instrText> EQ \\f(1,2)</w:instrText></w:r></w:p>"
    document = read(f"<w:p><m:oMathPara>{math}</m:oMathPara></w:p>{cell}<w:p>{write_math('')}</w:p>{field}")
    assert document.text == "E=mc\n\nE=mc"
    assert document.metadata["left_out"] == ["2 formulas without text"]


BOX = "<w:txbxContent>{}</w:txbxContent>"
DRAWN = "<w:r><w:drawing><wp:inline><wp:docPr descr='{}'/>{}</wp:inline></w:drawing></w:r>"


def test_boxes_of_each_kind_follow_their_paragraph_once(read):
    inner = BOX.format(write_paragraph("inner"))
    outer = BOX.format(f"{write_paragraph('outer')}<w:p><w:r>{inner}</w:r></w:p>")
    new = DRAWN.format("", f"<wps:txbx>{outer}</wps:txbx>")
    old = f"<w:r><w:pict><v:textbox>{BOX.format(write_paragraph('old'))}</v:textbox></w:pict></w:r>"
    forms = f"<mc:Choice>{new}</mc:Choice><mc:Fallback>{old}</mc:Fallback>"
    both = f"<w:r><mc:AlternateContent>{forms}</mc:AlternateContent></w:r>"
    assert read(f"<w:p>{write_run('In a box:')}{both}{old}</w:p>").text == "In a box:\n\nouter\n\ninner\n\nold"


def test_fields_and_wrappers_hold_text(read):
    run = write_run
    wrappers = [
        f"<w:fldSimple w:instr='SEQ Table'>{run('3')}</w:fldSimple>",
        f"<w:sdt><w:sdtPr><w:alias w:val='x'/></w:sdtPr><w:sdtContent>{run(' in control')}</w:sdtContent></w:sdt>",
        f"<w:smartTag><w:customXml>{run(' tagged')}</w:customXml></w:smartTag>",
        f"<w:hyperlink>{run(' linked')}</w:hyperlink>",
        f"<w:r><w:fldChar w:fldCharType='begin'/><w:instrText>PAGEREF x</w:instrText></w:r>{run(' 12')}",
        "<w:r><w:fldChar><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r>",
        "<w:r><w:fldChar><w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='oak'/><w:listEntry w:val='ash'/>"
        "</w:ddList></w:ffData></w:fldChar></w:r>",
        "<w:ruby><w:rt><w:r><w:t>kan</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby>",
    ]
    block = f"<w:sdt><w:sdtContent><w:customXml>{write_paragraph('A block.')}</w:customXml></w:sdtContent></w:sdt>"
    document = read(f"<w:p>{run('Table ')}{''.join(wrappers)}</w:p>{block}")
    assert document.text == "Table 3 in control tagged linked 12☑ash漢(kan)\n\nA block."


def test_headers_and_footers_stand_once_around_the_text(read):
    names = (("header", "hdr"), ("header", "hdr__2"), ("footer", "ftr"))
    section = "".join(f'<w:{kind}Reference r:id="{name}"/>' for kind, name in names)
    first = f"<w:p><w:pPr><w:sectPr>{section}</w:sectPr></w:pPr></w:p>"
    parts = {"hdr": "The Mill", "hdr__2": "Annex", "ftr": "QX-1"}
    written = {name: write_paragraph(text) for name, text in parts.items()}
    document = read(f"{first}{write_paragraph('Dear Sir')}<w:sectPr>{section}</w:sectPr>", **written)
    assert document.text == "The Mill\n\nAnnex\n\nDear Sir\n\nQX-1"


def test_comments_and_notes_follow_their_paragraph(read):
    comments = f'<w:comment w:id="4" w:author="Ben">{write_paragraph("Is this so?")}</w:comment><w:comment w:id="5"/>'
    note = f'<w:footnote w:id="2">{write_paragraph("See the map.")}</w:footnote>'
    notes = f'<w:footnote w:type="separator" w:id="0"/>{note}'
    marks = '<w:r><w:commentReference w:id="4"/><w:footnoteReference w:id="2"/></w:r>'
    cell = f"<w:tbl><w:tr><w:tc><w:p>{write_run('Oil')}{marks}</w:p></w:tc></w:tr></w:tbl>"
    document = read(
        f"<w:p>{write_run('Rain')}{marks}</w:p>{write_paragraph('fell.')}", comments=comments, footnotes=notes
    )
    assert document.text == "Rain\n\nComment by Ben: Is this so?\n\nNote: See the map.\n\nfell."
    assert document.metadata["left_out"] == ["1 comment without a place"]
    assert (
        read(cell, comments=comments, footnotes=notes).text
        == "Oil\n\nComment by Ben: Is this so?\n\nNote: See the map."
    )


def test_hidden_text_is_counted_and_not_read(read):
    styles = write_style("h", "hidden", of_run="<w:vanish/>")
    runs = [
        write_run("Seen", '<w:vanish w:val="0"/>'),
        write_run("hidden", "<w:vanish/>"),
        write_run("hidden", '<w:rStyle w:val="h"/>'),
        write_run(" too", '<w:rStyle w:val="h"/><w:vanish w:val="false"/>'),
    ]
    whole = write_paragraph("hidden", '<w:pStyle w:val="h"/>')
    document = read(f"<w:p>{''.join(runs)}</w:p>{whole}", styles=styles)
    assert (document.text, document.metadata["left_out"]) == ("Seen too", ["3 hidden texts"])


def test_tracked_changes_are_read_as_accepted(read):
    gone = f"<w:del><w:r><w:delText>bad</w:delText></w:r></w:del><w:moveFrom>{write_run('moved')}</w:moveFrom>"
    come = f"<w:ins>{write_run('good ')}</w:ins><w:moveTo>{write_run('moved')}</w:moveTo>"
    joined = write_paragraph(" one ", "<w:rPr><w:del/></w:rPr>") + write_paragraph("two")
    row = "<w:tr>{}<w:tc>{}</w:tc></w:tr>"
    rows = row.format("<w:trPr><w:del/></w:trPr>", write_paragraph("x")) + row.format("", write_paragraph("kept"))
    document = read(f"<w:p>{gone}{come}</w:p>{joined}<w:tbl>{rows}</w:tbl>")
    assert document.text == "good moved\n\none two\n\nkept"


def test_merged_cells_keep_the_columns_of_their_rows(read):
    def write_row(*cells: tuple[str, str], before: str = "") -> str:
        written = (f"<w:tc><w:tcPr>{merge}</w:tcPr>{write_paragraph(text)}</w:tc>" for merge, text in cells)
        return f"<w:tr><w:trPr>{before}</w:trPr>{''.join(written)}</w:tr>"

    rows = [
        write_row(("<w:gridSpan w:val='2'/>", "Wide"), ("<w:vMerge w:val='restart'/>", "Law")),
        write_row(("", "a"), ("", "b"), ("<w:vMerge/>", "")),
        write_row(("", "c"), before="<w:gridBefore w:val='1'/>"),
    ]
    assert read(f"<w:tbl>{''.join(rows)}</w:tbl>").text == "| Wide | Wide | Law |\n| a | b | Law |\n|  | c |  |"


def test_pictures_charts_and_other_objects_are_counted_and_their_words_read(read):
    seen = ["<pic:pic/>", "<pic:pic/>", "<c:chart/>", "<dgm:relIds/>", "<o:OLEObject/>"]
    drawn = "".join(DRAWN.format("The mill at dusk" if at == 0 else "", each) for at, each in enumerate(seen))
    document = read(f"<w:p>{drawn}{write_run('Seen.')}</w:p><w:altChunk/>")
    assert document.text == "[The mill at dusk] Seen."
    assert document.metadata["left_out"] == [
        "2 pictures", "1 chart", "1 diagram", "1 embedded object", "1 embedded document",
    ]  # fmt: skip


def test_raised_figures_and_letters_of_fonts_of_signs_keep_their_meaning(read):
    raised = write_run("6", '<w:vertAlign w:val="superscript"/>')
    symbols = (("Symbol", "F06D"), ("Wingdings", "F0FE"), ("Odd", "F041"))
    signs = "".join(f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>' for font, code in symbols)
    document = read(f"<w:p>{write_run('10')}{raised}{signs}</w:p>")
    assert (document.text, document.metadata["left_out"]) == ("10⁶μ☑", ["1 symbol"])


def test_a_file_in_the_strict_form_and_one_with_another_main_part_are_read(read_document, tmp_path):
    content = read_zip(docx(tmp_path / "a.docx"))
    strict = content.pop("word/document.xml").replace("http://schemas.openxmlformats.org", "http://purl.oclc.org/ooxml")
    content["_rels/.rels"] = content["_rels/.rels"].replace("word/document.xml", "/odd/main.xml")
    write_zip(tmp_path / "a.docx", {**content, "odd/main.xml": strict})
    assert read_document("a.docx").text == "The rain fell.\n\nThe wind rose."
