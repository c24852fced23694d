"""Answers, evidence and passages as an MCP client sees them: neutral texts, each short enough for one reply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tomewise.language.fences import fence, oneline
from tomewise.place import as_plain_data, describe_place, read_plain_data
from tomewise.server.mcp_documents import cut_text, show_name, show_plain
from tomewise.server.mcp_results import (
    AnswerResult,
    DocumentEntry,
    EntityResult,
    NearPassage,
    Piece,
    QuotedText,
    SearchResult,
    TextResult,
)
from tomewise.store.records import DocumentRecord
from tomewise.types import Passage

_ITEM_BYTES = 4_000  # of one text among several, so that at least one fits into a reply
_MOST_SOURCES = 20  # passages that are named for one piece of evidence


def show_answer(whole: Mapping[str, Any]) -> AnswerResult:
    """The answer in the form of `tome ask --json`; the texts that documents and models wrote are neutral."""
    return AnswerResult(
        **{name: whole[name] for name in _SAME},
        answer=cut_text(whole["answer"], _ITEM_BYTES),
        missing=cut_text(whole["missing"], _ITEM_BYTES // 4),
        citations=[show_citation(citation) for citation in whole["citations"]],
        nearest=[show_near(passage) for passage in whole["nearest"]],
        rest="",
    )


_SAME = (
    "choice", "resolved", "forced", "supported", "system", "model", "dropped_quotes", "derived_quotes", "usage"
)  # fmt: skip


def show_citation(citation: Mapping[str, Any]) -> QuotedText:
    """A citation of `tome ask --json`."""
    return QuotedText.model_validate({**citation, **_neutralise(citation, "quote")})


def show_near(passage: Mapping[str, Any]) -> NearPassage:
    """A passage of `tome.reports.nearest_json`."""
    return NearPassage.model_validate({**passage, **_neutralise(passage, "text")})


def show_passage(passage: Passage) -> NearPassage:
    """A passage of the store."""
    return NearPassage(
        document=show_name(passage.document),
        passage=passage.id,
        position=passage.position,
        title=show_name(passage.title),
        place=show_plain(as_plain_data(passage.place)),
        text=cut_text(passage.text, _ITEM_BYTES),
    )


def show_piece(piece: Mapping[str, Any]) -> Piece:
    """A piece of `tome search --json`."""
    sources = [{**source, "document": show_name(source["document"])} for source in piece["sources"][:_MOST_SOURCES]]
    rewrite = cut_text(piece["rewrite"]["text"], _ITEM_BYTES // 4) if piece["rewrite"] else ""
    return Piece.model_validate({**piece, **_neutralise(piece, "text"), "sources": sources, "rewrite": rewrite})


def show_record(record: DocumentRecord) -> DocumentEntry:
    """A document without its text; large metadata is left out."""
    metadata = show_plain(record.metadata)
    return DocumentEntry(
        id=show_name(record.id),
        title=show_name(record.title),
        characters=record.characters,
        passages=record.passages,
        metadata=metadata if len(str(metadata)) <= _ITEM_BYTES // 2 else {},
    )


def write_answer(result: AnswerResult) -> str:
    """The answer, what it lacks, and its quotations between tags."""
    head = f"{result.choice}. {result.answer}" if result.choice else result.answer
    lines = [head if result.resolved else f"Declined. {head}".strip(), f"Supported: {result.supported}"]
    lines += [f"Missing: {oneline(result.missing)}"] if result.missing else []
    quotes = [
        _fence_source(citation, citation.quote, start=citation.start, end=citation.end) for citation in result.citations
    ]
    return "\n".join([*lines, *quotes, *write_passages(result.nearest)])


def write_pieces(result: SearchResult) -> str:
    """Each piece of evidence between tags."""
    return "\n".join(_fence_piece(piece) for piece in result.pieces) or "Nothing was found."


def write_text(result: TextResult) -> str:
    """A part of a document between tags."""
    where = {"start": result.start, "end": result.end, "of": result.characters}
    return fence(result.text, "text", document=result.document, title=result.title, **where)


def write_entity(result: EntityResult) -> str:
    """The facts, one a line, and the passages, each between tags."""
    facts = [fence("\n".join(oneline(fact.text) for fact in result.facts), "evidence", kind="facts")]
    similar = [fence("\n".join(result.similar), "names")]
    return "\n".join(
        [*(similar if result.similar else []), *(facts if result.facts else []), *write_passages(result.passages)]
    )


def write_passages(passages: Iterable[NearPassage]) -> list[str]:
    """Each passage between tags."""
    return [_fence_source(passage, passage.text) for passage in passages]


def _fence_source(source: QuotedText | NearPassage, text: str, **more: object) -> str:
    place = describe_place(read_plain_data(source.place), source.position + 1)
    names = {"passage": source.passage, "document": source.document, "title": source.title, "place": place}
    return fence(text, "passage", **names, **more)


def _fence_piece(piece: Piece) -> str:
    sources = " ".join(source.passage for source in piece.sources)
    place = describe_place(read_plain_data(piece.place))
    names = {"layer": piece.layer, "passages": sources, "title": piece.title, "place": place}
    return fence(piece.text, "evidence", **names, rewrite=piece.rewrite)


def _neutralise(source: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The texts of plain data that documents bring: names, place, and the field `text`."""
    names = {name: show_name(source[name]) for name in ("document", "title") if name in source}
    return {**names, "place": show_plain(source["place"]), text: cut_text(source[text], _ITEM_BYTES)}
