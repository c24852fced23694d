"""What a reader sees and leaves out is counted: many small files in which each part carries a word of its own."""

from __future__ import annotations

import io
import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from random import Random

import odfdo
import openpyxl
import pptx
import pytest
from openpyxl.comments import Comment
from openpyxl.drawing.image import Image
from pptx.util import Inches
from tests.reading.documents import EPUB, draw_pdf, write_zip
from tests.reading.test_word import BOX, DRAWN, write_math, write_paragraph, write_run, write_word

from tomewise.types import Document

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000 1f15c4890000000d49444154789c6360000000000200 01e221bc33"
    "0000000049454e44ae426082".replace(" ", "")
)
COUNTED = re.compile(r"(\d+) (.+?)s?(?=$| without)( without .+)?")
Say = Callable[[str], str]


class Words:
    """Words that stand nowhere else, with the kind of what each stands in where nobody may read it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.kinds: dict[str, str] = {}

    def say(self, kind: str = "") -> str:
        word = f"word{len(self.kinds):04}"
        self.kinds[word] = kind
        return word

    def check(self, document: Document) -> None:
        """Each word is in the text, or what it stands in is counted; and no more is counted than that."""
        missing = Counter(kind for word, kind in self.kinds.items() if word not in document.text)
        counted: Counter[str] = Counter()
        for each in document.metadata.get("left_out", ()):
            count, kind, without = COUNTED.fullmatch(each).groups()
            counted[kind + (without or "")] = int(count)
        assert "" not in missing, [word for word, kind in self.kinds.items() if not kind and word not in document.text]
        assert missing == counted

    def repeat(self, makers: list[Callable[[], str]], most: int = 4) -> str:
        return "".join(self.random.choice(makers)() for _ in range(self.random.randint(1, most)))


def write_docx(path: Path, words: Words) -> None:
    say, notes = words.say, dict[str, list[str]](comments=[], footnotes=[], endnotes=[])
    depth = 0

    def write_note(kind: str) -> str:
        name = kind.removesuffix("s")
        notes[kind].append(f'<w:{name} w:id="{len(notes[kind])}">{write_paragraph(say())}</w:{name}>')
        return f'<w:r><w:{name}Reference w:id="{len(notes[kind]) - 1}"/></w:r>'

    def nest(write: Callable[[], str]) -> str:
        nonlocal depth
        if depth > 3:
            return ""
        depth += 1
        written = write()
        depth -= 1
        return written

    def write_inline() -> str:
        drawn = {"pic:pic": "picture", "c:chart": "chart", "dgm:relIds": "diagram", "o:OLEObject": "embedded object"}
        return words.repeat(
            [
                lambda: write_run(f" {say()} "),
                lambda: write_run(say("hidden text"), "<w:vanish/>"),
                lambda: write_math(f"<m:r><m:t>{say()}</m:t></m:r>"),
                lambda: write_math(f"<m:f><m:num><m:r><m:t>{say()}</m:t></m:r></m:num><m:den/></m:f>"),
                lambda: f"<w:r><w:instrText>EQ {say('formula without text')}</w:instrText></w:r>",
                lambda: f"<w:fldSimple>{write_run(say())}</w:fldSimple>",
                lambda: f"<w:smartTag>{nest(write_inline)}</w:smartTag><w:ins>{nest(write_inline)}</w:ins>",
                lambda: (
                    f"<w:r><w:pict><v:textbox>{nest(lambda: BOX.format(write_blocks()))}</v:textbox></w:pict></w:r>"
                ),
                lambda: write_note(words.random.choice(list(notes))),
                lambda: "".join(DRAWN.format("", f"<{name} n='{say(kind)}'/>") for name, kind in drawn.items()),
                lambda: DRAWN.format(say(), ""),
            ]
        )

    def write_blocks() -> str:
        return words.repeat(
            [
                lambda: f"<w:p>{write_inline()}</w:p>",
                lambda: f"<w:p><w:hyperlink>{write_inline()}</w:hyperlink></w:p>",
                lambda: (
                    f"<w:tbl><w:tr><w:tc>{nest(write_blocks)}</w:tc><w:tc>{nest(write_blocks)}</w:tc></w:tr></w:tbl>"
                ),
                lambda: f"<w:sdt><w:sdtContent>{nest(write_blocks)}</w:sdtContent></w:sdt>",
                lambda: f"<w:altChunk n='{say('embedded document')}'/>",
                write_math_block,
            ],
            3,
        )

    def write_cell() -> str:
        return f"<w:tc>{nest(write_blocks)}</w:tc>"

    def write_math_block() -> str:
        return f"<w:p><m:oMathPara>{write_math(f'<m:r><m:t>{say()}</m:t></m:r>')}</m:oMathPara></w:p>"

    body = write_paragraph(say()) + write_blocks()
    section = '<w:sectPr><w:headerReference r:id="hdr"/><w:footerReference r:id="ftr"/></w:sectPr>'
    parts = {kind: "".join(each) for kind, each in notes.items()}
    write_word(path, body + section, hdr=write_paragraph(say()), ftr=write_paragraph(say()), **parts)


def write_html(words: Words) -> str:
    say = words.say

    def write_blocks(depth: int = 0) -> str:
        inner = (lambda: "") if depth > 3 else (lambda: write_blocks(depth + 1))
        return words.repeat(
            [
                lambda: f"<p>{say()} <b>{say()}</b> <a href='x'>{say()}</a></p>",
                lambda: f"<h{depth + 1}>{say()}</h{depth + 1}><ul><li>{say()}<li>{say()}{inner()}</ul>",
                lambda: f"<table><tr><th>{say()}<th>{say()}<tr><td>{say()}<td>{say()}</table>",
                lambda: f"<div>{say()}{inner()}</div><blockquote>{say()}{inner()}</blockquote>",
                lambda: f"<img src='{say('picture')}'><svg><text>{say('picture')}</text></svg>",
                lambda: f"<video src='{say('film')}'></video><audio src='{say('recording')}'></audio>",
                lambda: f"<iframe src='{say('embedded page')}'></iframe><img alt='' src='ornament'>",
                lambda: f"<pre>{say()}\n{say()}</pre>",
            ]
        )

    return f"<p>{say()}</p>{write_blocks()}"


def write_epub(path: Path, words: Words) -> None:
    write_zip(path, {**EPUB, "c.xhtml": write_html(words)})


def write_pptx(path: Path, words: Words) -> None:
    say, deck = words.say, pptx.Presentation()
    for _ in range(words.random.randint(1, 3)):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        size = (Inches(1),) * 4
        slide.shapes.title.text, slide.placeholders[1].text = say(), f"{say()}\n{say()}"
        slide.shapes.add_group_shape().shapes.add_textbox(*size).text_frame.text = say()
        slide.shapes.add_table(1, 1, *size).table.cell(0, 0).text = say()
        slide.notes_slide.notes_text_frame.text = say()
        for _ in range(words.random.randint(0, 2)):
            slide.shapes.add_picture(io.BytesIO(PIXEL), *size).name = say("picture")
    deck.save(path)


def write_xlsx(path: Path, words: Words) -> None:
    say, book = words.say, openpyxl.Workbook()
    for row in range(1, words.random.randint(2, 5)):
        for column in range(1, 3):
            book.active.cell(row, column).value = say()
        if words.random.random() < 0.5:
            book.active.cell(row, 1).comment = Comment(say("comment"), "Ben")
        if words.random.random() < 0.5:
            say("picture")
            book.active.add_image(Image(io.BytesIO(PIXEL)), f"D{row}")
    book.save(path)


def write_odt(path: Path, words: Words) -> None:
    say, document = words.say, odfdo.Document("text")
    document.body.clear()
    if words.random.random() < 0.5:
        deleted = f"<text:deletion><text:p>{say('tracked deletion')}</text:p></text:deletion>"
        change = f"<text:changed-region text:id='c'>{deleted}</text:changed-region>"
        document.body.append(odfdo.Element.from_tag(f"<text:tracked-changes>{change}</text:tracked-changes>"))
    page = document.get_part("styles.xml").get_element("//style:master-page")
    page.append(odfdo.Element.from_tag(f"<style:header><text:p>{say()}</text:p></style:header>"))
    for _ in range(words.random.randint(1, 4)):
        paragraph = odfdo.Paragraph(say())
        if words.random.random() < 0.5:
            paragraph.insert_annotation(after=paragraph.text, body=say("comment"), creator="Ben")
        if words.random.random() < 0.5:
            paragraph.insert_note(after=paragraph.text, note_id="n", citation="1", body=say())
        if words.random.random() < 0.5:
            document.body.append(odfdo.Frame.image_frame(f"Pictures/{say('picture')}.png"))
        document.body.append(paragraph)
        document.body.append(odfdo.List([say(), say()]))
    document.save(path)


def write_json(path: Path, words: Words) -> None:
    say, nodes = words.say, dict[str, object]()
    for number in range(words.random.randint(2, 5)):
        for node, kind in (
            [(f"{number}", ""), (f"{number}b", "alternative message")]
            if words.random.random() < 0.5
            else [(f"{number}", "")]
        ):
            message = {"author": {"role": "user"}, "create_time": 1.7e9, "content": {"parts": [say(kind)]}}
            nodes[node] = {"message": message, "parent": f"{number - 1}"}
    path.write_text(json.dumps({"title": "a", "current_node": f"{number}", "mapping": nodes}))


def write_rtf(path: Path, words: Words) -> None:
    say = words.say
    body = words.repeat(
        [
            lambda: f"\\pard {say()} {{\\b {say()}}}\\par\n",
            lambda: f"{{\\footnote {say()}}}\\par\n",
            lambda: f"{{\\*\\shppict{{\\pict {say('picture')}}}}}{{\\nonshppict{{\\pict {b64encode(b'x').hex()}}}}}",
            lambda: f"{{\\header {say('page header')}}}{{\\footerl {say('page footer')}}}",
        ],
        8,
    )
    path.write_text(f"{{\\rtf1\\ansi {say()}\\par {body}}}")


def write_vtt(path: Path, words: Words) -> None:
    say = words.say
    blocks = [
        lambda: f"00:01.000 --> 00:02.000\n<v Ada>{say()}\n{say()}\n\n",
        lambda: f"7\n00:03.000 --> 00:04.000\n{say()}\n\n",
        lambda: f"NOTE {say('note')}\n\nSTYLE\n::cue {{}}\n\n",
        lambda: f"00:03 -> 4\n{say('cue without a time')}\n\n",
    ]
    path.write_text(f"WEBVTT\n\n00:00.000 --> 00:01.000\n{say()}\n\n{words.repeat(blocks, 8)}")


def write_eml(path: Path, words: Words) -> None:
    message = EmailMessage()
    message["Subject"] = "rain"
    message.set_content(f"{words.say()}\n\n{words.say()}")
    if words.random.random() < 0.5:
        message.add_alternative("<p>the same</p>", subtype="html")
        message.add_alternative(words.say("attachment").encode(), maintype="text", subtype="calendar")
    for _ in range(words.random.randint(0, 3)):
        kind = words.say("attachment")
        message.add_attachment(kind.encode(), maintype="application", subtype="x-odd", filename="odd.bin")
    path.write_bytes(bytes(message))


def write_ipynb(path: Path, words: Words) -> None:
    say, cells = words.say, list[dict[str, object]]()
    for _ in range(words.random.randint(1, 4)):
        outputs: list[dict[str, object]] = [{"output_type": "stream", "text": say()}]
        if words.random.random() < 0.5:
            outputs.append({"output_type": "display_data", "data": {"image/png": say("picture"), "text/plain": say()}})
        cells += [
            {"cell_type": "markdown", "source": say()},
            {"cell_type": "code", "source": say(), "outputs": outputs},
        ]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))


def write_pdf(path: Path, words: Words) -> None:
    pages = [f"BT /F1 12 Tf 72 720 Td ({words.say()}) Tj ET" for _ in range(words.random.randint(1, 3))]
    for _ in range(words.random.randint(0, 2)):
        picture = "q 50 0 0 50 10 10 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x7f EI Q "
        pages[0] += f" {picture}"
        words.say("picture")
    if words.random.random() < 0.5:
        words.say("page without text")
        pages.append("10 10 100 100 re f")
    path.write_bytes(draw_pdf(*pages))


def write_csv(path: Path, words: Words) -> None:
    rows = [",".join(words.say() for _ in range(3)) for _ in range(words.random.randint(2, 5))]
    path.write_text("\n".join(rows))


def write_as_html(path: Path, words: Words) -> None:
    path.write_text(f"<html><body><nav>Home</nav><main>{write_html(words)}</main></body></html>")


FILES = {
    "docx": (write_docx, 1000), "html": (write_as_html, 300), "epub": (write_epub, 50), "pptx": (write_pptx, 5),
    "xlsx": (write_xlsx, 20), "odt": (write_odt, 10), "rtf": (write_rtf, 300), "vtt": (write_vtt, 300),
    "eml": (write_eml, 50), "ipynb": (write_ipynb, 50), "pdf": (write_pdf, 50), "csv": (write_csv, 50),
    "json": (write_json, 50),
}  # fmt: skip


@pytest.mark.parametrize("suffix", FILES)
def test_each_word_is_in_the_text_or_what_it_stands_in_is_counted(read_document, tmp_path, suffix):
    write, count = FILES[suffix]
    for seed in range(count):
        words = Words(seed)
        write(tmp_path / f"a.{suffix}", words)
        words.check(read_document(f"a.{suffix}"))
