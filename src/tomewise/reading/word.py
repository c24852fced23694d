"""Read DOCX as Markdown-like text, with the numbers, formulas, boxes and notes that Word shows.

The names of elements are those of ECMA-376 part 1, "Office Open XML File Formats". They are compared without their
namespaces, so that files in its strict form are read too.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias
from xml.etree.ElementTree import Element, fromstring
from zipfile import ZipFile

from tomewise.reading.decode import join_words
from tomewise.reading.office_package import open_package
from tomewise.reading.places import make_document
from tomewise.reading.tables import Row, Span, write_grid
from tomewise.types import Document

_Block: TypeAlias = tuple[str, bool]  # its Markdown, and whether it is an item of a list

_DEEPEST = 6  # levels of headings in Markdown
_MOST_COLUMNS = 63  # of a table in Word
_HEADING = re.compile(r"heading ?([1-9])$")
_CONTENTS = re.compile(r"toc (?:\d$|heading)")  # the lines of a table of contents repeat the headings
_PLAIN = re.compile(r"[^\W\d]*|[\d.]+")  # a part of a formula that needs no parentheses
# What holds no text, and what was deleted or moved elsewhere.
_NO_TEXT = frozenset("del moveFrom pPr rPr sectPr tblPr tblGrid trPr tcPr sdtPr sdtEndPr delText rt none".split())
_INLINE = frozenset("r oMath oMathPara".split())
_SIGNS = {"tab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "\N{NON-BREAKING HYPHEN}"}
_WORDS = {"docPr": "descr", "shape": "alt", "textpath": "string"}  # attributes that say what a drawing shows
_LOST = {
    "pic": "picture",
    "imagedata": "picture",
    "chart": "chart",
    "relIds": "diagram",
    "OLEObject": "embedded object",
    "altChunk": "embedded document",
}
_NOTES = {"footnote": "footnotes", "endnote": "endnotes", "comment": "comments"}  # and the kinds of their parts
_ROMAN = "m cm d cd c xc l xl x ix v iv i".split()
_VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
_RAISED = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")
# What the fonts Symbol and Wingdings draw for a character.
_GREEK = str.maketrans(
    "ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprVstufcyw", "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρςστυφχψω"
)
_DRAWN = {
    "Symbol": _GREEK | str.maketrans("´³£¹»¥Ö®·", "×≥≤≠≈∞√→•"),
    "Wingdings": str.maketrans("¨oxýþüû§à", "□□☒☒☑✓✗▪→"),
}


def read_docx(path: Path) -> tuple[Document]:
    """The document in a DOCX file. Raises `ReadingError` if it is encrypted or damaged."""
    with open_package(path) as (file, title, origin), ZipFile(file) as archive:
        package = _Package(archive)
        text = package.read()
    return make_document(path, text, title, origin, losses=package.losses)


class _Package:
    """The main part of a DOCX with the parts that it needs. `losses` are the things that `read` saw and left out."""

    def __init__(self, archive: ZipFile) -> None:
        self.losses: Counter[str] = Counter()
        self._archive = archive
        self._names = frozenset(archive.namelist())
        self._main = next((part for kind, _, part in self._list_parts("") if kind == "officeDocument"), "")
        parts = list(self._list_parts(self._main))
        self._by_id = {id: part for _, id, part in parts}
        by_kind = {kind: part for kind, _, part in parts}
        self._styles = {_get(style, "styleId"): style for style in self._parse(by_kind.get("styles", ""))}
        self._numbers = _Numbers(self._parse(by_kind.get("numbering", "")), self._styles)
        self._notes = {
            (kind, _get(note, "id")): note
            for kind, part in _NOTES.items()
            for note in self._parse(by_kind.get(part, ""))
            if not _get(note, "type").lower().endswith(("separator", "notice"))
        }
        self._aside: list[_Block] = []  # boxes and notes, which follow the paragraph that is being read
        self._carried = ""  # a paragraph whose end was deleted
        self.describe_style = cache(self._describe_style)

    def _list_parts(self, part: str) -> Iterator[tuple[str, str, str]]:
        """The kind, the id and the name of each part to which one refers."""
        folder, name = posixpath.split(part)
        for reference in self._parse(posixpath.join(folder, "_rels", f"{name}.rels")):
            target = posixpath.join("/", folder, _get(reference, "Target"))
            yield _get(reference, "Type").rpartition("/")[2], _get(reference, "Id"), posixpath.normpath(target)[1:]

    def _parse(self, part: str) -> Element:
        return fromstring(self._archive.read(part)) if part in self._names else Element("none")

    def _describe_style(self, style: str) -> tuple[str, int, tuple[str, str] | None, bool]:
        """The name of a style, its level as a heading or 0, its list with a level, and whether it hides text."""
        first, level, numbered, is_hidden = "", 0, None, False
        for id, each in _list_chain(style, self._styles) or [(style, Element("none"))]:
            name = (_get(_find(each, "name"), "val") or id).lower()
            first = first or name
            level = level or _read_level(_find(each, "pPr"), name)
            numbered = numbered or self._numbers.find(_find(each, "pPr", "numPr"), id)
            is_hidden = is_hidden or _is_on(_find(each, "rPr", "vanish"))
        return first, level, numbered, is_hidden

    # ---------------------------------------------------------------- blocks

    def read(self) -> str:
        """The text; before and behind it the headers and footers, each once."""
        root = fromstring(self._archive.read(self._main))
        edges = [
            [
                self._join(self._parse(self._by_id.get(_get(each, "id"), "")))
                for each in root.iterfind(f".//{{*}}{kind}")
            ]
            for kind in ("headerReference", "footerReference")
        ]
        header, footer = ([(text, False) for text in dict.fromkeys(texts)] for texts in edges)
        text = _join_blocks([*header, *self._list_blocks(root), (self._carried, False), *footer])
        for kind, _ in self._notes:
            self.losses[f"{kind} without a place"] += 1
        return text

    def _join(self, element: Element) -> str:
        """The text of what stands apart from the paragraph that is being read."""
        aside, carried, self._aside, self._carried = self._aside, self._carried, [], ""
        text = _join_blocks([*self._list_blocks(element), (self._carried, False)])
        self._aside, self._carried = aside, carried
        return text

    def _list_blocks(self, element: Element) -> Iterator[_Block]:
        for name, child in _list_children(element):
            if name == "p":
                yield self._read_paragraph(child)
            elif name == "tbl":
                yield write_grid(*self._lay_rows(child)), False
            elif name in _INLINE:
                yield self._read_text(child), False
            elif name in _LOST:
                self.losses[_LOST[name]] += 1
            elif name not in _NO_TEXT:
                yield from self._list_blocks(child)
            yield from self._aside
            self._aside.clear()

    def _read_paragraph(self, paragraph: Element) -> _Block:
        properties = _find(paragraph, "pPr")
        style, level, numbered, is_hidden = self.describe_style(_get(_find(properties, "pStyle"), "val"))
        text = self._carried + self._read_text(paragraph)
        self._carried = ""
        if _CONTENTS.match(style):
            return "", False
        if is_hidden and text.strip():
            self.losses["hidden text"] += 1
            return "", False
        if _find(properties, "rPr", "del") is not None:
            self._carried = text
            return "", False
        text, level = text.strip(), _read_level(properties) or level
        number = self._numbers.count(_find(properties, "numPr"), numbered) if text else ""
        if level:
            return " ".join(filter(None, ("#" * min(level, _DEEPEST), number.strip(" -"), join_words(text)))), False
        return f"{number} {text}" if number else text, bool(number)

    def _lay_rows(self, table: Element) -> tuple[list[Row], list[Span]]:
        """The rows of a table, with blanks for what is merged, and the merged cells."""
        rows: list[Row] = []
        tops: dict[int, int] = {}  # the row in which the cell of each column begins
        spans: dict[tuple[int, int], Span] = {}
        for number, row in enumerate(_list_inside(table, "tr"), start=1):
            properties = _find(row, "trPr")
            cells = [""] * min(_read_number(_find(properties, "gridBefore")), _MOST_COLUMNS)
            for cell in _list_inside(row, "tc"):
                merged, place = _find(cell, "tcPr", "vMerge"), len(cells)
                if merged is None or _get(merged, "val") == "restart":
                    tops[place] = number
                top = tops.setdefault(place, number)
                width = min(_read_number(_find(cell, "tcPr", "gridSpan"), 1), _MOST_COLUMNS)
                spans[top, place] = Span(top, place, number - top + 1, width)
                cells += [self._join(cell), *[""] * (width - 1)]
            if _find(properties, "del") is None:
                rows.append((number, cells))
        return rows, [span for span in spans.values() if span.height > 1 or span.width > 1]

    # ---------------------------------------------------------------- text

    def _read_text(self, element: Element) -> str:
        """The text in a paragraph; boxes and notes in it are put aside."""
        parts: list[str] = []
        for name, child in _list_children(element):
            if name == "t":
                parts.append(child.text or "")
            elif name == "r":
                parts.append(self._read_run(child))
            elif name in _SIGNS:
                parts.append(_SIGNS[name])
            elif name == "oMath":
                formula = join_words(_write_formula(child))
                self.losses["formula without text"] += not formula
                parts.append(formula)
            elif name == "sym":
                parts.append(self._read_symbol(child))
            elif name == "instrText":  # of a field; only such a formula has no text besides
                self.losses["formula without text"] += (child.text or "").strip().upper().startswith("EQ ")
            elif name == "txbxContent":
                self._aside.append((self._join(child), False))
            elif (kind := name.removesuffix("Reference")) in _NOTES:
                if (note := self._notes.pop((kind, _get(child, "id")), None)) is not None:
                    author = f" by {author}" if (author := join_words(_get(note, "author"))) else ""
                    lead = f"Comment{author}" if kind == "comment" else "Note"
                    self._aside.append((f"{lead}: {self._join(note)}", False))
            elif name in _LOST:
                self.losses[_LOST[name]] += 1
            elif name not in _NO_TEXT:
                words = join_words(_get(child, _WORDS[name])) if name in _WORDS else ""
                parts += [f" [{words}] " if words else "", self._read_text(child)]
                if name == "checkBox":
                    checked = _find(child, "checked")
                    parts.append("☑" if _is_on(_find(child, "default") if checked is None else checked) else "☐")
                elif name == "ddList":
                    entries = [_get(each, "val") for each in _list_inside(child, "listEntry")]
                    parts += entries[_read_number(_find(child, "result")) :][:1]
                elif name == "ruby":  # how a word is pronounced
                    parts += [f"({self._read_text(each)})" for each in _list_inside(child, "rt")]
        return "".join(parts)

    def _read_run(self, run: Element) -> str:
        properties = _find(run, "rPr")
        text = self._read_text(run)
        vanish = _find(properties, "vanish")
        *_, is_hidden = self.describe_style(_get(_find(properties, "rStyle"), "val"))
        if _is_on(vanish) if vanish is not None else is_hidden:
            self.losses["hidden text"] += bool(text.strip())
            return ""
        raised = text.translate(_RAISED)
        is_raised = _get(_find(properties, "vertAlign"), "val") == "superscript"
        return raised if is_raised and raised.strip("⁺⁻").isdigit() else text

    def _read_symbol(self, element: Element) -> str:
        font, code = _get(element, "font"), int(_get(element, "char") or "0", 16)
        sign = chr(code & 0xFF) if code >> 8 == 0xF0 else chr(code)
        drawn = sign.translate(_DRAWN.get(font, {}))
        self.losses["symbol"] += drawn == sign and code >> 8 == 0xF0
        return "" if drawn == sign and code >> 8 == 0xF0 else drawn


class _Numbers:
    """The numbers of list items, clauses and headings, counted as Word counts them."""

    def __init__(self, numbering: Element, styles: dict[str, Element]) -> None:
        self._kinds = {_get(each, "abstractNumId"): each for each in numbering if _name(each) == "abstractNum"}
        self._lists = {_get(each, "numId"): each for each in numbering if _name(each) == "num"}
        self._styles = styles
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        self._begun: set[tuple[str, int]] = set()
        self.read_levels = cache(self._read_levels)

    def _read_levels(self, list_id: str) -> tuple[str, dict[int, Element], dict[int, int]]:
        """The kind of a list, its levels, and the numbers from which it begins anew."""
        listed = self._lists.get(list_id)
        kind = _get(_find(listed, "abstractNumId"), "val")
        found = self._kinds.get(kind)
        if link := _get(_find(found, "numStyleLink"), "val"):
            base = _get(_find(self._styles.get(link), "pPr", "numPr", "numId"), "val")
            if base != list_id:
                kind, levels, _ = self.read_levels(base)
                return kind, levels, {}
        overrides = [each for each in listed if _name(each) == "lvlOverride"] if listed is not None else []
        changed = [_find(each, "lvl") for each in overrides]
        all_levels = [*(found if found is not None else ()), *(each for each in changed if each is not None)]
        levels = {int(_get(each, "ilvl")): each for each in all_levels if _name(each) == "lvl"}
        starts = ((int(_get(each, "ilvl")), _find(each, "startOverride")) for each in overrides)
        return kind, levels, {level: _read_number(start) for level, start in starts if start is not None}

    def find(self, properties: Element | None, style: str = "") -> tuple[str, str] | None:
        """The list and the level that properties name; of a style the level that is tied to it."""
        if properties is None:
            return None
        list_id, level = (_get(_find(properties, name), "val") for name in ("numId", "ilvl"))
        if style and not level:
            _, levels, _ = self.read_levels(list_id)
            tied = (str(at) for at, each in levels.items() if _get(_find(each, "pStyle"), "val") == style)
            level = next(tied, "")
        return list_id, level

    def count(self, properties: Element | None, styled: tuple[str, str] | None) -> str:
        """The number of the next paragraph with these properties and this list of its style; empty without one."""
        own, styled = self.find(properties) or ("", ""), styled or ("", "")
        list_id, level = own[0] or styled[0], int(own[1] or styled[1] or 0)
        kind, levels, starts = self.read_levels(list_id)
        if level not in levels:
            return ""
        counts = self._counts[kind]
        if level in starts and (list_id, level) not in self._begun:
            counts[level] = starts[level]
        else:
            counts[level] = counts[level] + 1 if level in counts else _read_start(levels[level])
        self._begun.add((list_id, level))
        for deeper in [each for each in counts if each > level]:
            if level < _read_number(_find(levels.get(deeper), "lvlRestart"), deeper):
                del counts[deeper]
        text = _get(_find(levels[level], "lvlText"), "val")
        if _get(_find(levels[level], "numFmt"), "val") == "bullet":
            return f"{'  ' * level}-"
        is_legal = _is_on(_find(levels[level], "isLgl"))

        def write(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            form = "decimal" if is_legal else _get(_find(levels.get(at), "numFmt"), "val")
            return _write_number(counts.get(at, _read_start(levels.get(at))), form)

        return join_words(re.sub("%([1-9])", write, text))


def _write_number(number: int, form: str) -> str:
    """A number in a format of Word; in figures where the format has none of ours."""
    kind = form.lower().removeprefix("lower").removeprefix("upper")
    if kind == "none":
        return ""
    if kind == "letter":  # z is followed by aa
        word = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif kind == "roman":
        word = ""
        for letters, value in zip(_ROMAN, _VALUES, strict=True):
            word, number = word + letters * (number // value), number % value
    else:
        return f"{number:02}" if kind == "decimalzero" else str(number)
    return word.upper() if form.startswith("upper") else word


def _write_formula(element: Element) -> str:
    """A formula in one line, such as `√(a^2+b^2)/2`."""
    name = _name(element)
    if name == "t":
        return element.text or ""
    children = [(each, _write_formula(child)) for each, child in _list_children(element) if each not in _NO_TEXT]
    inside: dict[str, list[str]] = defaultdict(list)
    for each, text in children:
        inside[each].append(text)
    joined: dict[str, str] = defaultdict(str, {each: "".join(texts) for each, texts in inside.items()})
    part = {each: text if _PLAIN.fullmatch(text) else f"({text})" for each, text in joined.items()}
    signs = {"sub": "_", "sup": "^", "lim": "^" if name == "limUpp" else "_"}
    scripts = "".join(sign + part[each] for each, sign in signs.items() if joined[each])

    def find_sign(setting: str, default: str) -> str:
        found = _find(element, f"{name}Pr", setting)
        return default if found is None else _get(found, "val")

    match name:
        case "f":
            return f"{part.get('num', '')}/{part.get('den', '')}"
        case "sSup" | "sSub" | "sSubSup":
            return part.get("e", "") + scripts
        case "limLow" | "limUpp":
            return joined["e"] + scripts
        case "nary":
            return f"{find_sign('chr', '∫')}{scripts} {joined['e']}"
        case "sPre":
            return scripts + joined["e"]
        case "rad":
            return f"{joined['deg']}√{part.get('e', '')}"
        case "d":
            return find_sign("begChr", "(") + find_sign("sepChr", "|").join(inside["e"]) + find_sign("endChr", ")")
        case "func":
            return f"{joined['fName']} {part.get('e', '')}"
        case "acc":
            return joined["e"] + find_sign("chr", "\N{COMBINING CIRCUMFLEX ACCENT}")
        case "m":
            return f"[{'; '.join(inside['mr'])}]"
        case "mr" | "eqArr":
            return (", " if name == "mr" else "; ").join(inside["e"])
    return "".join(text for _, text in children)


# ---------------------------------------------------------------- elements


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _get(element: Element | None, name: str) -> str:
    """The value of an attribute; empty without it."""
    attributes = () if element is None else element.attrib.items()
    return next((value for each, value in attributes if each.rpartition("}")[2] == name), "")


def _find(element: Element | None, *path: str) -> Element | None:
    for name in path:
        element = next((child for child in element if _name(child) == name), None) if element is not None else None
    return element


def _list_children(element: Element) -> Iterator[tuple[str, Element]]:
    """The children with their names; of several forms of one thing the first."""
    for child in element:
        name = _name(child)
        if name == "AlternateContent":
            for form in child[:1]:
                yield from _list_children(form)
        else:
            yield name, child


def _list_inside(element: Element, wanted: str) -> Iterator[Element]:
    """The outermost elements of this name."""
    for name, child in _list_children(element):
        if name == wanted:
            yield child
        elif name not in _NO_TEXT:
            yield from _list_inside(child, wanted)


def _list_chain(style: str, styles: dict[str, Element]) -> list[tuple[str, Element]]:
    """A style and those that it is based on."""
    chain: dict[str, Element] = {}
    while style not in chain and style in styles:
        chain[style] = styles[style]
        style = _get(_find(chain[style], "basedOn"), "val")
    return list(chain.items())


def _is_on(element: Element | None) -> bool:
    return element is not None and _get(element, "val") not in ("0", "false", "off")


def _read_number(element: Element | None, default: int = 0) -> int:
    return int(_get(element, "val") or default)


def _read_start(level: Element | None) -> int:
    return _read_number(_find(level, "start"), 1)


def _read_level(properties: Element | None, style: str = "") -> int:
    """The level of a heading; 0 for other paragraphs."""
    if (outline := _find(properties, "outlineLvl")) is not None:
        return (_read_number(outline) + 1) % 10
    found = _HEADING.match(style)
    return int(found[1]) if found else int(style == "title")


def _join_blocks(blocks: Iterable[_Block]) -> str:
    text, was_item = [""], False
    for block, is_item in blocks:
        if block:
            text += ["\n" if was_item and is_item else "\n\n", block]
            was_item = is_item
    return "".join(text[2:])
