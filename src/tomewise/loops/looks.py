"""The tools with which a model looks into documents: find, search, read and outline. They ask no model.

Each result is a line, further lines where the tool has some, and evidence. Of evidence the first pieces are shown, as
many as have room; the line says how many there are. All tools keep to the scope of the question.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from tomewise.errors import UsageError, count_noun, suggest
from tomewise.events import shorten
from tomewise.language.fences import oneline
from tomewise.language.labels import find_number, read_label
from tomewise.language.roles import Looked, LookOut
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import EXTRACTS, PASSAGE, fold, measure_pieces
from tomewise.loops.last_prompt import DEPTH
from tomewise.recall.hits import find_in_documents
from tomewise.recall.outline import find_part, list_headings, make_outline
from tomewise.recall.ranking import take_fitting
from tomewise.store.records import DocumentRecord
from tomewise.types import Evidence, FindKind, Hits, NodeId, Quote, Retriever, Scope, content_id
from tomewise.types.place import name_document

TOOLS = ("find", "search", "read", "outline")
_OF_ONE = ("read", "outline")  # tools that look at one document
_PLACES = 20  # of a find that are shown
_COUNTED = 5  # documents, chapters and the like whose counts are stated
_LISTED, _HEADINGS = 20, 12  # documents in a list, and headings in it
_SECTIONS, _SPEAKERS = 60, 12  # in an outline
_LONGEST, _LONGEST_NAME = 500, 60  # characters of what is looked for, and of a name that is shown
_PER_TOKEN = 10  # characters: a text with more is not read at once
_GAP = " … "
_SENTENCE_END = re.compile(r"[.!?…](?=\s)")  # in a name; a note that is too long keeps its last sentence


@dataclass(frozen=True, slots=True)
class Look:
    """A look that can be taken, as it was `written`; without a `record` at all documents in scope."""

    written: LookOut
    tool: str
    kind: FindKind
    record: DocumentRecord | None

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for looks that bring the same."""
        what = self.written.what if self.kind == "pattern" else fold(self.written.what)
        return self.tool, self.kind, what, self.record.id if self.record else ""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a look: a `line`, more `lines`, and the evidence that is shown.

    `ranking` is all that a search found, or the passages of a find; `count` what a find counted, in words. They are
    empty for other tools.
    """

    look: LookOut
    line: str
    lines: Sequence[str] = ()
    shown: Sequence[Evidence] = ()
    ranking: Sequence[Evidence] = ()
    count: str = ""
    refused: bool = False

    def describe(self, *, in_full: bool) -> Looked:
        """The look with its line, or with all lines."""
        return Looked(**self.look.model_dump(), result="\n".join([self.line, *(self.lines if in_full else ())]))


@dataclass(frozen=True, eq=False)
class Tools:
    """The tools for one question. `names` are those that there are, `records` the documents in its scope.

    `recall` searches, where that is a tool.
    """

    desk: Desk
    recall: Retriever | None
    names: Sequence[str]
    within: Scope | None
    records: Sequence[DocumentRecord]

    def list_documents(self) -> tuple[list[str], int]:
        """A line for each of the first documents, with their first headings if they are few; and how many more."""
        listed = self.records[:_LISTED]
        most = _HEADINGS // max(1, len(listed)) if "outline" in self.names else 0
        lines = []
        for record in listed:
            headings = list_headings(record, self.desk.store, most) if most else []
            sizes = f"{count_noun(record.characters, 'character')}, {count_noun(record.passages, 'part')}"
            lines.append("; ".join([f"{name_record(record)}, {sizes}", *map(_cut, headings)]))
        return lines, len(self.records) - len(listed)

    def read_look(self, written: LookOut) -> Look:
        """The look that a reply asks for. Raises UsageError for one that no tool takes."""
        kinds: tuple[FindKind, ...] = get_args(FindKind)
        tool = next((name for name in self.names if written.tool.lower().startswith(name)), "")
        kind: FindKind = next((kind for kind in kinds if kind == written.kind.lower()), "words")
        if not tool:
            raise UsageError(f"no tool is named {_cut(written.tool)!r}: {', '.join(self.names)}")
        if tool == "find" and kind != (written.kind.lower() or kind):
            raise UsageError(f"no kind is named {_cut(written.kind)!r}: {', '.join(kinds)}")
        if len(written.what) > _LONGEST or not (written.what or tool in _OF_ONE):
            raise UsageError(f"`what` has {len(written.what):,} characters: 1 to {_LONGEST} can be looked for")
        record = self._find_document(written.document) if written.document or tool in _OF_ONE else None
        return Look(written, tool, kind, record)

    def _find_document(self, name: str) -> DocumentRecord:
        """The document in scope of this label, title or name, or of which this is a part of the name.

        A number is a label only where no document is named so: "Chapter 3" is not the third.
        """
        label = read_label(name)
        number = find_number(label, "D")
        labelled = self.records[number - 1 : number] if number and number <= _LISTED else []
        if labelled and label.startswith("D"):
            return labelled[0]
        if not name and len(self.records) == 1:
            return self.records[0]
        wanted = fold(name)
        for found in (
            [each for each in self.records if wanted in (fold(each.id), fold(each.title), fold(name_record(each)))],
            labelled if name.strip().isdecimal() else [],
            [each for each in self.records if wanted and wanted in fold(f"{each.id} {each.title}")],
            labelled,
        ):
            if len(found) > 1:
                raise UsageError(
                    f"{_cut(name)!r} fits {len(found)} documents: give more of the name of one, or a label"
                )
            if found:
                return found[0]
        raise UsageError(f"no document is named {_cut(name)!r}: {suggest(name, map(name_record, self.records))}")

    async def take(self, look: Look, room: int, seen: Collection[NodeId]) -> Result:
        """Take a look; what it shows has `room` tokens. A search passes over passages that were `seen`.

        What a tool refuses gives a result that says so.
        """
        try:
            if look.tool == "search" and self.recall:
                ranking = await self.recall.retrieve(look.written.what, DEPTH, within=self._narrow(look))
                return await asyncio.to_thread(self.show_found, look.written, ranking, room, seen)
            if look.record and look.tool in _OF_ONE:
                tool = self._read if look.tool == "read" else self._outline
                return await asyncio.to_thread(tool, look.record, look.written, room)
            return await asyncio.to_thread(self._find, look, room)
        except UsageError as error:
            return refuse(look.written, error)

    def show_found(
        self, written: LookOut, ranking: Sequence[Evidence], room: int, seen: Collection[NodeId] = ()
    ) -> Result:
        """The result of a search."""
        new = [piece for piece in ranking if piece.id not in seen]
        shown = self._fit(new, room)
        line = (
            f"{count_noun(len(ranking), 'passage')} found; shown before: {len(ranking) - len(new)}, now: {len(shown)}"
        )
        return Result(written, line, shown=shown, ranking=ranking)

    def _fit(self, pieces: Sequence[Evidence], room: int) -> list[Evidence]:
        return take_fitting(pieces, room, lambda texts: measure_pieces(texts, self.desk.count))

    def _narrow(self, look: Look) -> Scope | None:
        if look.record is None:
            return self.within
        return replace(self.within or Scope(), documents=frozenset({look.record.id}))

    def _find(self, look: Look, room: int) -> Result:
        scope = self._narrow(look)
        hits = find_in_documents(
            self.desk.store, scope, [look.written.what], look.kind, case=False, limit=_PLACES, skip=0
        )
        by_passage: dict[NodeId, list[Quote]] = {}
        for quote in hits.quotes:
            by_passage.setdefault(quote.passage, []).append(quote)
        passages = self.desk.fetch(list(by_passage), scope)
        shown = self._fit(passages, room)
        if len(shown) < len(passages) or len(hits.quotes) < hits.total:
            shown = self._fit([self._extract(by_passage[piece.id]) for piece in passages], room)
        places = sum(len(by_passage[piece.sources[0]]) for piece in shown)
        counted = _describe_counts(hits)
        inside = f" in {name_record(look.record)}" if look.record else ""
        count = f"find {look.kind} {_cut(look.written.what)!r}{inside}: {counted}"
        return Result(look.written, f"{counted}; shown: {places}", shown=shown, ranking=passages, count=count)

    def _extract(self, quotes: Sequence[Quote]) -> Evidence:
        """The words around these places of one passage."""
        first = quotes[0]
        spans: list[tuple[int, int]] = []
        for quote in quotes:
            start, end = quote.start - len(quote.before), quote.end + len(quote.after)
            if spans and start <= spans[-1][1]:
                start, end = spans.pop()[0], end
            spans.append((start, end))
        text = _GAP.join(self.desk.store.text_between(first.document, *span) for span in spans)
        return Evidence(
            id=content_id("extract", first.passage, text),
            layer=EXTRACTS,
            kind=PASSAGE,
            text=text,
            score=0.0,
            sources=(first.passage,),
            title=first.title,
            place=first.place,
        )

    def _read(self, record: DocumentRecord, written: LookOut, room: int) -> Result:
        store = self.desk.store
        start, end = find_part(written.what, record, store) if written.what else (0, record.characters)
        until = min(end, start + _PER_TOKEN * room)
        passages = store.passages(documents=[record.id], between=(start, until)).values()
        pieces = self.desk.fetch([passage.id for passage in passages], self.within)
        shown = self._fit(pieces, room)
        parts = {passage.id: passage.position + 1 for passage in passages}
        numbers = [parts[piece.id] for piece in pieces]
        if not shown:
            return Result(written, "no part has room" if pieces else "no part of this is within the scope")
        first, last = numbers[0], numbers[len(shown) - 1]
        line = f"parts {first} to {last} of {record.passages}"
        if last - first >= len(shown):
            line += f", without {last - first + 1 - len(shown)} beyond the scope"
        if until < end or len(shown) < len(pieces):
            line += f"; it goes on with part {[*numbers, max(parts.values()) + 1][len(shown)]}"
        return Result(written, line, shown=shown)

    def _outline(self, record: DocumentRecord, written: LookOut, room: int) -> Result:
        outline = make_outline(record, self.desk.store)
        sizes = {"character": outline.characters, "line": outline.lines, "page": outline.pages}
        line = ", ".join(count_noun(count, name) for name, count in sizes.items() if count)
        lines = [
            f"{'  ' * (len(each.chapter) - 1)}{_cut(each.chapter[-1])}{f', page {each.page}' if each.page else ''}, "
            f"{count_noun(each.end - each.start, 'character')}"
            for each in outline.sections[:_SECTIONS]
        ]
        if outline.speakers:
            lines.append(f"Who speaks, in characters: {_list_counts([*outline.speakers.items()], _SPEAKERS)}")
        headings = f"{count_noun(len(outline.sections), 'heading')}, listed: {min(_SECTIONS, len(outline.sections))}"
        return Result(written, f"{line}; {headings}", lines)


def refuse(written: LookOut, error: UsageError) -> Result:
    """The result of a look that cannot be taken."""
    return Result(written, f"not taken: {error}", refused=True)


def name_record(record: DocumentRecord) -> str:
    """The title of a document, or the last part of its name, on a short line."""
    return _cut(record.title or name_document(record.id))


def _cut(text: str) -> str:
    return shorten(oneline(text), _LONGEST_NAME)


def _describe_counts(hits: Hits) -> str:
    """How many places there are, by document, and by what else their sources say."""
    also = f" (found as: {', '.join(map(_cut, hits.wanted))})" if len(hits.wanted) > 1 else ""
    named = {
        name: [(name_document(what) if name == "document" else what.split(" › ")[-1], count) for what, count in counts]
        for name, counts in hits.counts.items()
    }
    return "; ".join(
        [f"{hits}{also}", *(f"by {name}: {_list_counts(counts, _COUNTED)}" for name, counts in named.items())]
    )


def _list_counts(counts: Sequence[tuple[str, int]], most: int) -> str:
    more = f", and {len(counts) - most} more" if len(counts) > most else ""
    names = (_SENTENCE_END.sub("", _cut(what)) for what, _ in counts[:most])
    return ", ".join(f"{name} {count:,}" for name, (_, count) in zip(names, counts, strict=False)) + more
