"""Read PDF through PDFium: pages, columns in order, and the outline as chapters; needs the extra `documents`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from ctypes import POINTER, cast, create_string_buffer
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pypdfium2 as pdfium
from numpy.typing import NDArray
from pypdfium2 import raw

from tomewise.reading.decode import join_words
from tomewise.reading.formats import Scanned
from tomewise.reading.metadata import describe_origin
from tomewise.reading.places import Marks, make_document
from tomewise.reading.process import make_damage_error, make_locked_error
from tomewise.types import Document, Place

_Boxes: TypeAlias = NDArray[np.float64]  # shape (n, 4): left, bottom, right, top in points, in the order of the file
# By page from 0: the headings that begin there, with those above.
_Outline: TypeAlias = Mapping[int, list[tuple[str, ...]]]

_HYPHEN = re.compile("[\x02\ufffe]\r?\n?")  # PDFium writes it for a hyphen that only the end of a line needs
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_STOP = (".", "!", "?", ":", "”", '"', "»", ")")
_SHORT = 0.8  # of the median line: a shorter line that ends a sentence ends a paragraph
_LINES_FOR_MEDIAN = 4
_PRODUCER = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
_NO_TITLE = re.compile(
    r"(?i)^(?:untitled.*|unknown|document ?\d*|.*\.(?:docx?|odt|tex|dvi|pptx?|xlsx?|indd|qxd|rtf|txt))$"
)
_LONGEST_TITLE = 300  # characters
_MOST_HEADINGS = 10_000  # of an outline, which may be a loop
_DEEPEST_OUTLINE = 8
_MOST_OF_PAGE = 0.8

# Columns.
_MIN_LINES = 5  # of a column
_MIN_WIDTH = 0.6  # of a column that its median line fills: cells of a table are shorter
_MOST_SPANS = 0.3  # of the lines of a page that cross the gutter, such as titles; prose in one column crosses it always
_EDGE = 0.25  # of the width of the text on each side where no gutter is searched
_STEPS = 101  # positions at which a gutter is searched
_DEEPEST = 2  # columns within columns: up to four of equal width


def read_pdf(path: Path) -> tuple[Document]:
    """The text of a PDF file page by page.

    The pages without text that show images are in the metadata, as `scanned_pages`. Raises `ReadingError` for a file
    that is encrypted with a password, scanned or damaged.
    """
    try:
        with closing(pdfium.PdfDocument(path)) as pdf:
            return _read_document(path, pdf)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise make_locked_error(path) from None
        raise make_damage_error(path, str(error).rstrip(".")) from error


def _read_document(path: Path, pdf: pdfium.PdfDocument) -> tuple[Document]:
    pages: list[str] = []
    scanned: list[int] = []
    losses = Counter({"attachment": raw.FPDFDoc_GetAttachmentCount(pdf)})
    for number in range(len(pdf)):
        with closing(pdf[number]) as page:
            text = _read_page(page)
            pictures = list(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]))
            if not text and pictures:
                scanned.append(number + 1)
            else:
                losses["picture"] += sum(not _is_background(picture, page) for picture in pictures)
                losses["page without text"] += not text and raw.FPDFPage_CountObjects(page) > 0
            losses["annotation"] += _count_annotations(page)
        pages.append(text)
    if scanned and not any(pages):
        raise Scanned(
            f"{path} is scanned: its {len(pages)} pages are images without text: recognise the text with a program for "
            "OCR first, install a package that reads scans (README, Parts from outside), or leave it out"
        )
    text, marks = _join_pages(pages, _read_outline(pdf))
    metadata = _read_origin(pdf)
    if scanned:
        metadata["scanned_pages"] = scanned
    return make_document(path, text, _read_title(pdf), metadata, marks, losses)


def _is_background(picture: pdfium.PdfObject, page: pdfium.PdfPage) -> bool:
    """Whether a picture fills the page: a scan whose text was recognised, or an ornament."""
    left, bottom, right, top = picture.get_bounds()
    return bool((right - left) * (top - bottom) > _MOST_OF_PAGE * page.get_width() * page.get_height())


def _count_annotations(page: pdfium.PdfPage) -> int:
    """The notes, stamps and fields of forms on a page; not its links, nor the windows in which notes open."""
    count = 0
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        count += raw.FPDFAnnot_GetSubtype(annotation) not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP)
        raw.FPDFPage_CloseAnnot(annotation)
    return count


def _read_page(page: pdfium.PdfPage) -> str:
    with closing(page.get_textpage()) as layout:
        text = layout.get_text_range()
        boxes = np.array([layout.get_rect(number) for number in range(layout.count_rects())]).reshape(-1, 4)
        regions = _find_regions(boxes, _Region(*page.get_bbox()))
        if len(regions) > 1:
            text_by_region = "\n".join(layout.get_text_bounded(*region) for region in regions)
            # Text that is written slantwise or twice may fall between the regions: then nothing may be lost.
            text = text_by_region if sorted(text_by_region.split()) == sorted(text.split()) else text
    lines = [line.rstrip() for line in _CONTROLS.sub("", _HYPHEN.sub("", text)).splitlines()]
    return "\n".join(_split_paragraphs([line for line in lines if line]))


def _split_paragraphs(lines: list[str]) -> Iterator[str]:
    """The lines of a page, with a blank one behind each short line that ends a sentence."""
    usual = median(map(len, lines)) if len(lines) >= _LINES_FOR_MEDIAN else 0
    for line, following in pairwise([*lines, ""]):
        yield line
        if following and line.endswith(_STOP) and len(line) < _SHORT * usual:
            yield ""


def _join_pages(pages: list[str], outline: _Outline) -> tuple[str, Marks]:
    """The text of all pages, marked with the pages and with the headings of the outline."""
    marks: list[tuple[int, Place]] = []
    chapter: tuple[str, ...] = ()
    start = 0
    for number, text in enumerate(pages):
        at = 0
        headings = []
        for path in outline.get(number, ()):
            at = max(at, _find_heading(text, path[-1], at))
            headings.append((at, path))
        if not headings or headings[0][0] > 0:
            headings.insert(0, (0, chapter))
        for at, chapter in headings:
            marks.append((start + at, Place(page=number + 1, chapter=chapter)))
        start += len(text) + 2
    return "\n\n".join(pages), tuple(marks)


def _find_heading(text: str, words: str, after: int) -> int:
    """Where a page has this heading; its beginning if it has it nowhere."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    found = re.compile(rf"^[\dIVXivx.\s]{{0,12}}{pattern}", re.MULTILINE).search(text, after) if pattern else None
    return found.start() + len(found[0]) - len(found[0].lstrip()) if found else 0


def _read_outline(pdf: pdfium.PdfDocument) -> _Outline:
    outline: defaultdict[int, list[tuple[str, ...]]] = defaultdict(list)
    path: list[str] = []
    for count, item in enumerate(pdf.get_toc(max_depth=_DEEPEST_OUTLINE)):
        if count >= _MOST_HEADINGS:
            break
        words = join_words(_CONTROLS.sub(" ", item.get_title()))
        destination = item.get_dest()
        page = destination.get_index() if destination else None
        path = [*path[: item.level], words]
        if words and page is not None and 0 <= page < len(pdf):
            outline[page].append(tuple(heading for heading in path if heading))
    return outline


def _read_origin(pdf: pdfium.PdfDocument) -> dict[str, Any]:
    dates = [pdf.get_metadata_value(name) for name in ("CreationDate", "ModDate")]
    size = raw.FPDFCatalog_GetLanguage(pdf, None, 0)  # bytes of UTF-16, with two zeros at the end
    buffer = create_string_buffer(size)
    raw.FPDFCatalog_GetLanguage(pdf, cast(buffer, POINTER(raw.FPDF_WCHAR)), size)
    language = buffer.raw.decode("utf-16-le", "ignore").rstrip("\0")
    author = pdf.get_metadata_value("Author")
    return dict(describe_origin(authors=[author], date=dates[0] or dates[1], language=language))


def _read_title(pdf: pdfium.PdfDocument) -> str:
    """The title that the file states, without what programs write there unasked."""
    title = _PRODUCER.sub("", join_words(pdf.get_metadata_value("Title")))
    return "" if _NO_TITLE.match(title) or len(title) > _LONGEST_TITLE else title


# ---------------------------------------------------------------- columns


class _Region(NamedTuple):
    """A part of a page that is read as one, in points."""

    left: float
    bottom: float
    right: float
    top: float


class _Lines(NamedTuple):
    """The boxes of a page and the line of each, counted from the top."""

    boxes: _Boxes
    numbers: NDArray[np.intp]


def _find_regions(boxes: _Boxes, page: _Region) -> list[_Region]:
    """The regions of a page in reading order; one, the whole page, if the order of the file is good as it is.

    A page is cut into columns only if the file switches from column to column with the lines, and if the lines fill
    their columns.
    """
    return list(_cut_region(boxes, page, 0)) or [page]


def _cut_region(boxes: _Boxes, region: _Region, depth: int) -> Iterator[_Region]:
    lines = _number_lines(boxes)
    gutter = _find_gutter(lines) if depth < _DEEPEST else None
    if gutter is None:
        yield region
        return
    spans = np.unique(lines.numbers[_crosses(boxes, gutter)])
    for bottom, top, inside in _cut_bands(lines, spans, region):
        if lines.numbers[inside][0] in spans:
            yield _Region(region.left, bottom, region.right, top)
            continue
        is_left = boxes[:, 0] + boxes[:, 2] < 2 * gutter
        for side, left, right in ((is_left, region.left, gutter), (~is_left, gutter, region.right)):
            if (chosen := inside & side).any():
                yield from _cut_region(boxes[chosen], _Region(left, bottom, right, top), depth + 1)


def _number_lines(boxes: _Boxes) -> _Lines:
    centres = (boxes[:, 1] + boxes[:, 3]) / 2
    order = np.argsort(-centres, kind="stable")
    if not len(boxes):
        return _Lines(boxes, order)
    height = float(np.median(boxes[:, 3] - boxes[:, 1]))
    steps = np.concatenate(([0], np.cumsum(-np.diff(centres[order]) > height / 2)))
    numbers = np.empty(len(boxes), np.intp)
    numbers[order] = steps
    return _Lines(boxes, numbers)


def _find_gutter(lines: _Lines) -> float | None:
    """The horizontal position between two columns whose lines the file interleaves; None for any other page."""
    boxes = lines.boxes
    count = int(lines.numbers.max()) + 1 if len(boxes) else 0
    if count < _MIN_LINES:
        return None
    start, end = boxes[:, 0].min(), boxes[:, 2].max()
    positions = np.linspace(start + _EDGE * (end - start), end - _EDGE * (end - start), _STEPS)
    crossings = ((boxes[:, :1] < positions) & (boxes[:, 2:3] > positions)).sum(axis=0)
    least = np.flatnonzero(crossings == crossings.min())
    middle = float(positions[least[len(least) // 2]])
    return middle if _is_gutter(lines, middle, count) else None


def _is_gutter(lines: _Lines, x: float, count: int) -> bool:
    crosses = _crosses(lines.boxes, x)
    spans = np.unique(lines.numbers[crosses])
    if len(spans) > _MOST_SPANS * count:
        return False
    inside = ~np.isin(lines.numbers, spans)
    right = lines.boxes[:, 0] + lines.boxes[:, 2] >= 2 * x
    if not all(_fills(lines, inside & side) for side in (right, ~right)):
        return False
    switches = np.count_nonzero(np.diff(right[inside].astype(np.int8)))
    return bool(switches > max(3, len(np.unique(lines.numbers[inside])) / 2))


def _fills(lines: _Lines, chosen: NDArray[np.bool_]) -> bool:
    """Whether the lines of these boxes are as wide as a column of prose."""
    numbers, at = np.unique(lines.numbers[chosen], return_inverse=True)
    if len(numbers) < _MIN_LINES:
        return False
    starts, ends = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
    np.minimum.at(starts, at, lines.boxes[chosen, 0])
    np.maximum.at(ends, at, lines.boxes[chosen, 2])
    return bool(np.median(ends - starts) >= _MIN_WIDTH * (ends.max() - starts.min()))


def _crosses(boxes: _Boxes, x: float) -> NDArray[np.bool_]:
    crosses: NDArray[np.bool_] = (boxes[:, 0] < x) & (boxes[:, 2] > x)
    return crosses


def _cut_bands(
    lines: _Lines, spans: NDArray[np.intp], region: _Region
) -> Iterator[tuple[float, float, NDArray[np.bool_]]]:
    """The bottom and the top of each band of lines that all cross the gutter or all do not, and its boxes."""
    numbers = np.arange(int(lines.numbers.max()) + 1)
    cuts = np.flatnonzero(np.diff(np.isin(numbers, spans).astype(np.int8))) + 1
    top = region.top
    for band in np.split(numbers, cuts):
        inside = np.isin(lines.numbers, band)
        below = lines.boxes[lines.numbers == band[-1] + 1]
        bottom = float(below[:, 3].max() + lines.boxes[inside, 1].min()) / 2 if len(below) else region.bottom
        yield bottom, top, inside
        top = bottom
