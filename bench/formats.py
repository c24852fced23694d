"""What is read of the same text in files of many formats: words found, structure, places, seconds.

    python bench/formats.py                   # read files made for the occasion, and print a row of Markdown for each
    python bench/formats.py FOLDER --make     # write all files, with the libraries that usually make them
    python bench/formats.py FOLDER            # read these
    python bench/formats.py FOLDER --peer llama_index|lightrag

Without a folder, files whose library is not installed are left out, and named. `--make` needs them all: reportlab,
python-docx, python-pptx, openpyxl, EbookLib and nbformat. A peer needs `llama-index-core llama-index-readers-file`, or
`lightrag-hku`, in an environment of its own.

Each file holds twelve chapters of four sentences, 96 words that no other part has, and in the formats that have such a
thing navigation, times or rows. `words` is the share of these words in the text, `headings` the share of the twelve
headings that begin a line of their own, `frame` whether words of navigation are in the text.
"""

from __future__ import annotations

import argparse
import csv
import json
import mailbox
import re
import time
from collections.abc import Callable, Iterable, Iterator
from email.message import EmailMessage
from pathlib import Path
from tempfile import TemporaryDirectory

CHAPTERS = 12
NAMES = ("Anna", "Bob")
FRAME = "Zwnavigation"


def write_chapters() -> list[tuple[str, list[str]]]:
    """The heading and the sentences of each chapter. The words that are looked for are `wWORDNUMBERx`."""
    return [
        (
            f"{number}. Chapter {number} of the harbour",
            [
                f"The keeper saw w{number}a{line}x before nine and w{number}b{line}x after the rain."
                for line in range(4)
            ],
        )
        for number in range(1, CHAPTERS + 1)
    ]


def list_words() -> list[str]:
    return [f"w{n}{letter}{line}x" for n in range(1, CHAPTERS + 1) for letter in "ab" for line in range(4)]


def make_pdf(path: Path) -> None:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

    styles = getSampleStyleSheet()
    flow: list[object] = []
    for heading, lines in write_chapters():
        flow += [Paragraph(heading, styles["Heading1"]), Paragraph(" ".join(lines), styles["BodyText"]), PageBreak()]
    SimpleDocTemplate(str(path), title="The harbour").build(flow)


def make_docx(path: Path) -> None:
    import docx

    book = docx.Document()
    book.core_properties.title = "The harbour"
    for heading, lines in write_chapters():
        book.add_heading(heading, 1)
        book.add_paragraph(" ".join(lines))
    book.save(str(path))


def make_pptx(path: Path) -> None:
    import pptx

    deck = pptx.Presentation()
    for heading, lines in write_chapters():
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = heading
        slide.placeholders[1].text = "\n".join(lines[:3])
        slide.notes_slide.notes_text_frame.text = lines[3]
    deck.save(path)


def make_xlsx(path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["Chapter", "Sentence"])
    for heading, lines in write_chapters():
        for line in lines:
            book.active.append([heading, line])
    book.save(path)


def make_epub(path: Path) -> None:
    from ebooklib import epub

    book = epub.EpubBook()
    book.set_title("The harbour")
    pages = []
    for number, (heading, lines) in enumerate(write_chapters()):
        page = epub.EpubHtml(title=heading, file_name=f"{number}.xhtml")
        page.content = f"<h1>{heading}</h1><p>{' '.join(lines)}</p>"
        book.add_item(page)
        pages.append(page)
    book.toc, book.spine = pages, ["nav", *pages]
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    epub.write_epub(str(path), book)


def make_html(path: Path) -> None:
    body = "".join(f"<h2>{heading}</h2><p>{' '.join(lines)}</p>" for heading, lines in write_chapters())
    frame = f"<nav><a href=x>{FRAME}</a></nav><div id=cookie-banner>{FRAME}: we use cookies</div>"
    path.write_text(f"<html><title>The harbour</title><body>{frame}<main>{body}</main><footer>{FRAME}</footer>")


def make_markdown(path: Path) -> None:
    body = "".join(f"## {heading}\n\n{' '.join(lines)}\n\n" for heading, lines in write_chapters())
    path.write_text(f"---\ntitle: The harbour\n---\n{body}")


def make_captions(path: Path) -> None:
    cues = []
    for number, line in enumerate(line for _, lines in write_chapters() for line in lines):
        at = f"00:{number:02}:00"
        spoken = f"{NAMES[number % 2]}: {line}"
        if path.suffix == ".vtt":
            cues.append(f"{at}.000 --> {at}.900\n<v {NAMES[number % 2]}>{line}</v>\n")
        else:
            cues.append(f"{number + 1}\n{at},000 --> {at},900\n{spoken}\n")
    path.write_text("\n".join(["WEBVTT\n"] * (path.suffix == ".vtt") + cues))


def make_table(path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, "excel-tab" if path.suffix == ".tsv" else "excel")
        writer.writerow(["Chapter", "Sentence"])
        writer.writerows([heading, line] for heading, lines in write_chapters() for line in lines)


def make_notebook(path: Path) -> None:
    import nbformat.v4 as notebook

    cells = []
    for heading, lines in write_chapters():
        cells.append(notebook.new_markdown_cell(f"## {heading}\n\n{' '.join(lines[:2])}"))
        code = notebook.new_code_cell(f"print({lines[2]!r})")
        code.outputs = [notebook.new_output("stream", text=lines[3])]
        cells.append(code)
    path.write_text(json.dumps(notebook.new_notebook(cells=cells)))


def make_mail(path: Path) -> None:
    box = mailbox.mbox(path)
    for heading, lines in write_chapters():
        message = EmailMessage()
        message["From"], message["Subject"] = "Anna Poe <anna@harbour.example>", heading
        message["Date"] = "Wed, 01 May 2024 12:04:00 +0200"
        message.set_content("\n".join(lines), cte="base64")
        box.add(message)
    box.close()


def make_message(path: Path) -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "Anna Poe <anna@harbour.example>", "The harbour"
    message["Date"] = "Wed, 01 May 2024 12:04:00 +0200"
    message.set_content("\n".join(line for _, lines in write_chapters() for line in lines))
    message.add_alternative(f"<p>{FRAME}</p>", subtype="html")
    path.write_bytes(message.as_bytes())


def make_plain(path: Path) -> None:
    """Text as it stands, as comments, or as strings."""
    texts = [" ".join([heading, *lines]) for heading, lines in write_chapters()]
    written = {
        ".json": json.dumps(texts, indent=1),
        ".jsonl": "\n".join(json.dumps({"text": text}) for text in texts),
        ".yaml": "\n".join(f"- {text}" for text in texts),
        ".py": "\n".join(f"# {text}" for text in texts),
        ".tex": "\n\n".join(f"\\section{{{text}}}" for text in texts),
    }
    path.write_text(written.get(path.suffix, "\n\n".join(texts)))


def make_locked_pdf(path: Path) -> None:
    from reportlab.pdfgen import canvas

    page = canvas.Canvas(str(path), encrypt="a password")
    page.drawString(72, 700, "locked")
    page.save()


def make_scanned_pdf(path: Path) -> None:
    from PIL import Image
    from reportlab.pdfgen import canvas

    page = canvas.Canvas(str(path))
    page.drawInlineImage(Image.new("RGB", (300, 400), "grey"), 0, 0, 600, 800)
    page.save()


def make_old_office(path: Path) -> None:
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))


MAKERS: dict[str, Callable[[Path], None]] = {
    "a.pdf": make_pdf, "a.docx": make_docx, "a.pptx": make_pptx, "a.xlsx": make_xlsx, "a.epub": make_epub,
    "a.html": make_html, "a.md": make_markdown, "a.srt": make_captions, "a.csv": make_table,
    "a.ipynb": make_notebook, "a.mbox": make_mail, "a.eml": make_message, "a.vtt": make_captions, "a.tsv": make_table,
    **{f"a.{suffix}": make_plain for suffix in "txt rst org tex log json jsonl yaml py".split()},
    "locked.pdf": make_locked_pdf, "scanned.pdf": make_scanned_pdf, "old.docx": make_old_office,
}  # fmt: skip


def read_with_tomewise(path: Path) -> Iterator[tuple[str, str, int]]:
    """The title, the text and the number of places of each document."""
    from tomewise.reading.read import SourceReader

    for document in SourceReader(read_with_tomewise.process).read(path).documents:  # type: ignore[attr-defined]
        yield document.title, document.text, len({place for _, place in document.marks})


def read_with_llama_index(path: Path) -> Iterator[tuple[str, str, int]]:
    from llama_index.core import SimpleDirectoryReader

    documents = SimpleDirectoryReader(input_files=[path], raise_on_error=True).load_data()
    for document in documents:
        yield document.metadata.get("title", ""), document.text, int("page_label" in document.metadata)


def read_with_lightrag(path: Path) -> Iterator[tuple[str, str, int]]:
    """As LightRAG reads files without a parsing service: its functions take the bytes of a file."""
    from lightrag.parser.legacy import extractors

    raw = path.read_bytes()
    name = {".pdf": "pdf_pypdf"}.get(path.suffix, path.suffix[1:])
    extract = getattr(extractors, f"_extract_{name}", None)
    yield "", extract(raw) if extract else raw.decode(), 0


READERS = {"tomewise": read_with_tomewise, "llama_index": read_with_llama_index, "lightrag": read_with_lightrag}


def describe(documents: Iterable[tuple[str, str, int]]) -> str:
    titles, texts, places = zip(*documents, strict=True)
    text = "\n".join(texts)
    words = list_words()
    found = sum(word in text for word in words) / len(words)
    headings = [heading for heading, _ in write_chapters()]
    titled = sum(bool(re.search(rf"^(?:[#>*= ]*|.*(?:: |\| ?)){re.escape(h)}", text, re.M)) for h in headings)
    frame = "yes" if FRAME in text else "no"
    return f"{found:.0%} | {titled / CHAPTERS:.0%} | {frame} | {len(texts)} | {sum(places)} | {titles[0] or '–'}"


def make_files(folder: Path, *, whole: bool) -> None:
    """Write the files. Unless all of them are wanted, those whose library is not installed are left out."""
    for name, make in MAKERS.items():
        try:
            make(folder / name)
        except ModuleNotFoundError as error:
            if whole:
                raise
            print(f"{name} is left out: making it needs {error.name}, which is not installed")


def print_table(folder: Path, peer: str) -> None:
    """Print a row for each file of the folder, as the peer reads it."""
    print("| file | words | headings | frame | documents | places | title | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in MAKERS:
        if not (folder / name).exists():
            continue
        seconds = []
        row = ""
        for _ in range(2):  # the first reading imports libraries
            start = time.perf_counter()
            try:
                row = describe(list(READERS[peer](folder / name)))
            except Exception as error:  # noqa: BLE001 - a failure is a row
                row = f"failed: {type(error).__name__}: {' '.join(str(error).split())[:70]} | | | | |"
            seconds.append(time.perf_counter() - start)
        print(f"| {name} | {row} | {seconds[-1]:.3f} |", flush=True)


def read_all(folder: Path, peer: str) -> None:
    """Print the table; Tomewise reads in a process of its own."""
    if peer != "tomewise":
        print_table(folder, peer)
        return
    from tomewise.reading.process import ReaderProcess

    with ReaderProcess() as read_with_tomewise.process:  # type: ignore[attr-defined]
        print_table(folder, peer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--make", action="store_true")
    options.add_argument("--peer", choices=sorted(READERS), default="tomewise")
    given = options.parse_args()
    if given.folder is None:
        with TemporaryDirectory() as folder:
            make_files(Path(folder), whole=given.make)
            read_all(Path(folder), given.peer)
    elif given.make:
        given.folder.mkdir(parents=True)
        make_files(given.folder, whole=True)
    else:
        read_all(given.folder, given.peer)


if __name__ == "__main__":
    main()
