"""The events of our loops, as one table: by its name what happened, the fields of its detail, and one line about it.

`make_event` makes an `Event` of the table, with its detail as plain data. A loop from outside may yield any other
`Event`, so readers ask `is_event` whether one is of the table, or read with `read_common` what any event may say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeAlias

from pydantic import StrictFloat, StrictStr, TypeAdapter, ValidationError

from tomewise.errors import UsageError
from tomewise.types import Event, Evidence, Place, Rewrite, write_plain

Row: TypeAlias = Mapping[str, Any]  # of a working memory, as plain values
_LONGEST = 300  # characters of one value in a summary
_NOTHING = "nothing to note"
# The words of ComoRAG's paper for three kinds of memory, as settings and stored events have them.
_PLAIN_LAYERS = {"veridical": "passages", "semantic": "summaries", "episodic": "episodes"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table."""

    about: str
    """What happened."""
    fields: Mapping[str, str]
    """The fields of the detail: by name a form and a sentence, as "list of texts: what was noted".

    A field of an `optional` form may be null or left out. Pieces of evidence, objects, have the fields of `PIECE`."""
    summarize: Callable[..., str]
    """One line for people, from the fields."""


# ---------------------------------------------------------------- making events


def make_event(name: str, step: int = 0, **fields: Any) -> Event:
    """The event of this name; evidence, places and dataclasses in its fields become plain data.

    Raises UsageError for a name or a field that the table does not have, and without a field that is not optional.
    """
    kind = EVENTS.get(name)
    if kind is None:
        raise UsageError(f"no event {name!r} is in the table: yield an `Event` for one of your own")
    if unknown := fields.keys() - kind.fields.keys():
        raise UsageError(f"the event {name!r} has no field {min(unknown)!r}: it has {', '.join(kind.fields)}")
    absent = kind.fields.keys() - fields.keys()
    if missing := [field for field in absent if not kind.fields[field].startswith("optional ")]:
        raise UsageError(f"the event {name!r} needs the field {min(missing)!r}: state it")
    detail = json.loads(json.dumps(fields, default=_write_noun))
    return Event(name=name, step=step, summary=kind.summarize(**detail), detail=detail)


def report_retrieved(shown: Sequence[Evidence], found: Sequence[Evidence], step: int = 0) -> Event:
    """The event of the evidence that is shown out of all that was found."""
    return make_event("retrieved", step, evidence=shown, found=len(found), cut=len(found) - len(shown))


def _write_noun(noun: Any) -> Any:
    if not isinstance(noun, Evidence):
        return write_plain(noun)
    values = {name: getattr(noun, name) for name in PIECE}
    return {name: value for name, value in values.items() if value is not None}


def list_facts(**facts: object) -> str:
    """A summary line of named values, as "probe: who, layer: tree". Of a list it says the length.

    Empty values are left out, long ones are cut.
    """
    shown = {name.replace("_", " ").strip(): value for name, value in facts.items() if value not in (None, "")}
    values = {name: len(value) if isinstance(value, list | tuple) else value for name, value in shown.items()}
    return ", ".join(f"{name}: {shorten(value)}" for name, value in values.items())


def shorten(value: object, length: int = _LONGEST) -> str:
    """The value as one line of at most `length` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def name_layers(layers: str) -> str:
    """The names of layers, separated by commas, in plain words."""
    return ", ".join(_PLAIN_LAYERS.get(name, name) for name in layers.split(", "))


# ---------------------------------------------------------------- reading events


def is_event(event: Event, *names: str) -> bool:
    """Whether it is one of these events of the table, with all its fields: one from outside may lack them."""
    if event.name not in names:
        return False
    fields = EVENTS[event.name].fields
    return all(_has_form(event.detail.get(name), about.partition(":")[0]) for name, about in fields.items())


def _has_form(value: object, form: str) -> bool:
    if form.startswith("optional "):
        return value is None or _has_form(value, form.removeprefix("optional "))
    if form.startswith("list of "):
        item = form.removeprefix("list of ").removesuffix("s")
        return isinstance(value, list) and all(_has_form(each, item) for each in value)
    return isinstance(value, _FORMS[form])


_FORMS: Mapping[str, type | UnionType] = {
    "text": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "object": dict,
    "piece": dict,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonFields:
    """The fields of `detail` that mean the same in every event (see `Event`), as far as an event has them.

    Of evidence an event does not say on which passages it rests, so that its `sources` are empty.
    """

    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    pool: tuple[Row, ...] = ()


def read_common(event: Event) -> CommonFields:
    """What any event says. What has another form, which is possible in an event from outside, is left out."""
    lists = {name: event.detail.get(name) for name in ("evidence", "notes", "pool")}
    items = {name: value if isinstance(value, list | tuple) else () for name, value in lists.items()}
    return CommonFields(
        evidence=tuple(_read_piece(row) for row in items["evidence"] if isinstance(row, dict)),
        notes=tuple(map(str, items["notes"])),
        pool=tuple(row for row in items["pool"] if isinstance(row, dict)),
    )


def _read_piece(row: Row) -> Evidence:
    words: dict[str, Any] = {name: str(row.get(name) or "") for name in ("layer", "title", "text")}
    return Evidence(
        id=_read(StrictStr, row.get("id"), ""),
        score=_read(StrictFloat, row.get("score"), 0.0),
        place=_read(Place, row.get("place"), Place()),
        rewrite=_read(Rewrite, row.get("rewrite"), None),
        sources=(),
        **words,
    )


def _read(form: Any, value: object, default: Any) -> Any:
    try:
        return _make_reader(form).validate_python(value)
    except ValidationError:
        return default


_make_reader = cache(TypeAdapter[Any])


# ---------------------------------------------------------------- how events are summarized


def _list_fields(*fields: str, **labelled: str) -> Callable[..., str]:
    """What sums up an event by the values of these fields, then of others under labels of their own."""
    labels = {**{field: field for field in fields}, **labelled}
    return lambda **detail: list_facts(**{label: detail[field] for label, field in labels.items()})


def _summarize_attempt(*, failed: bool, **fields: Any) -> str:
    named = {name: fields.get(name) for name in ("answer", "choice", "missing", "shown", "cut", "kept")}
    return list_facts(**{**named, "answer": "declined" if failed else named["answer"]})


def _summarize_wait(seconds: float, reason: str, asked: float | None = None, next: int = 0, tries: int = 0) -> str:
    lead = f"try {next} of {tries} in" if tries else "waiting up to"
    return f"{lead} {seconds:.0f} s{', as the server asks' if asked else ''}: {reason}"


def _summarize_ledger(pool: Sequence[Row]) -> str:
    kinds = Counter(row["kind"] for row in pool)
    return list_facts(questions=kinds["question"], facts=kinds["fact"], inferences=kinds["inference"])


# ---------------------------------------------------------------- the table

PIECE: Mapping[str, str] = {
    "id": "text: its id",
    "layer": "text: the node layer that holds it, such as `passages` or `facts:…`",
    "score": "number: compares the pieces of one search; higher is better",
    "title": "text: the title of its document",
    "place": "object: where it stands in its document: `chapter` (list of texts), `page`, `last_page`, `slide`, `row`, "
    "`last_row`, `cell`, `time` and `speaker`, as far as the source says them",
    "text": "text: its words",
    "rewrite": "optional object: the rewritten question that found it: its `text`, the `name` that was put into it and "
    "the id of the passage that gave the name, `source`; left out where the question itself found it",
}
"""The fields of a piece of evidence in a detail."""

_NEW = "list of pieces: what is new"
_NOT_SHOWN = "integer: how many of them did not fit"
_SHOWN = "list of texts: the ids of the evidence that the model saw"
_CHUNK = 'text: where it stands, as "story.md, parts 12 to 30 of 59"'
_NOTE = "optional list of texts: the note, as a list of one text; left out by a loop that keeps no note"
_QUERY = "text: what was searched with"
_REGION = "`local`, around some points, `global`, beyond all, or `everywhere`, the question itself"
_RETRIEVED = {
    "evidence": "optional list of pieces: what is shown, the best first; left out of a cut trace",
    "found": "integer: how many pieces were found",
    "cut": _NOT_SHOWN,
}
_ATTEMPT = {
    "answer": "text: the answer; empty if the model declined",
    "choice": "optional text: the letter of the chosen option; null without options",
    "failed": "boolean: whether the model declined",
    "missing": "text: what the evidence lacks, in the words of the model",
    "shown": _SHOWN,
    "cut": "integer: how many pieces of evidence did not fit",
    "notes": "list of texts: the notes that the model saw",
    "kept": "text: why the loop goes on although there is an answer; empty where it does not",
}
ATTEMPTS = ("tried", "forced", "answered from points", "answered")
"""The events that say what an answering call was shown."""

EVENTS: Mapping[str, Kind] = {
    # Searching.
    "retrieved": Kind(
        "Evidence that a model is shown, out of what was found; the rest was cut for want of room.",
        _RETRIEVED,
        _list_fields("found", "cut"),
    ),
    "looked up": Kind(
        "Pages that were looked up, with their passages.",
        {
            **_RETRIEVED,
            "pages": "list of texts: the ids of the pages that were looked up",
            "gists": "integer: how many pages the model could choose from",
            "all_pages": "integer: how many pages there are",
            "reasoning": "text: why the model chose these, in its own words",
        },
        _list_fields("pages", of="all_pages", reasoning="reasoning"),
    ),
    "searched": Kind(
        "What is new of what a search found.",
        {"query": _QUERY, "evidence": _NEW, "collected": "integer: how many pieces all searches found so far"},
        _list_fields("query", new="evidence", collected="collected"),
    ),
    "looked": Kind(
        "A look into documents with a tool, and what came of it.",
        {
            "tool": "text: `find`, `search`, `read` or `outline`, or what the model wrote in its place",
            "kind": "text: what a find looks for: words, name, value or pattern; empty for words, and for other tools",
            "what": "text: what is looked for; of a reading, which part; empty for all",
            "document": "text: the document, as the model named it; empty for all",
            "result": "text: what came of it, in lines: counts, or why it was refused",
            "evidence": "list of pieces: what the model is shown of it",
        },
        lambda tool, what, document, result, **_: list_facts(
            tool=tool, what=what, document=document, result=result.partition("\n")[0]
        ),
    ),
    "noted": Kind(
        "What a model notes of looks, and which of their passages it keeps.",
        {
            "notes": "list of texts: the note; none where it notes nothing",
            "kept": "list of texts: the ids of the passages",
            "finished": "boolean: whether it wants no further look",
        },
        lambda notes, kept, finished: list_facts(
            note=" ".join(notes) or _NOTHING, kept=kept, finished="yes" if finished else None
        ),
    ),
    "recalled": Kind(
        "What is new of what a probe found in one layer.",
        {
            "probe": "text: the probe that was searched with",
            "layer": "text: the layer that was searched, by the name that the system has for it",
            "evidence": _NEW,
        },
        lambda probe, layer, evidence: (
            list_facts(probe=probe, in_=name_layers(layer)) + ("" if evidence else ", nothing new")
        ),
    ),
    "explored": Kind(
        "What was found for one concern.",
        {
            "subquery": _QUERY,
            "place": f"text: {_REGION}",
            "points": "list of texts: the ids of the points around which was searched",
            "narrowed_to": "optional integer: how many entities a local search was narrowed to; left out by others",
            "left_out": "optional integer: how many entities a global search left out; left out by a local one",
            "entities": "list of texts: the names of the entities from which the search went out",
            "evidence": "list of pieces: what was found: relations, then passages",
            "relations": "integer: how many of these are relations",
        },
        lambda subquery, place, entities, evidence, relations, **_: list_facts(
            subquery=subquery,
            place=place,
            entities="; ".join(entities),
            relations=relations,
            passages=len(evidence) - relations,
        ),
    ),
    "reports chosen": Kind(
        "The reports about communities that are read.",
        {
            "reports": "list of texts: the titles of the reports",
            "batches": "integer: in how many calls they are read",
            "rated": "integer: how many reports were rated to choose these; 0 where none were",
        },
        lambda reports, batches, rated: list_facts(reports=reports, batches=batches, rated=rated or None),
    ),
    "points found": Kind(
        "What a batch of reports says on the question.",
        {
            "reports": "list of texts: the titles of the reports in the batch",
            "notes": "list of texts: the points",
        },
        _list_fields("reports", points="notes"),
    ),
    "followed up": Kind(
        "What a smaller question brought, and what shall be asked next.",
        {
            "query": "text: the smaller question",
            "score": "integer: how much the answer helps with the question, 0 to 100",
            "notes": "list of texts: the answer; none where the evidence says nothing",
            "evidence": "list of pieces: what was found for it",
            "follow_ups": "list of texts: the questions that shall be asked next",
        },
        _list_fields("query", "score", "follow_ups"),
    ),
    # Steps of loops.
    "stopped": Kind(
        "Why a loop goes no further, and what its working memory holds then.",
        {
            "reason": "text: why, in words",
            "pool": "optional list of objects: the rows of the working memory; left out by a loop without one",
        },
        _list_fields("reason"),
    ),
    "skipped": Kind(
        "A reply of a model, or a part of one, that could not be used.",
        {"reason": "text: why it could not be used"},
        _list_fields("reason"),
    ),
    "chosen": Kind(
        'The system that goes on, or "none".',
        {
            "chosen": "text: the name of the system, or of the memory that is searched",
            "because": "text: why it was chosen",
            "passed_over": "object: what was not chosen, each with the reason",
            "build_would_help": "list of texts: the systems whose build would help, to answer or to search",
        },
        lambda chosen, because, passed_over, build_would_help: list_facts(
            chosen=chosen,
            because=because,
            passed_over="; ".join(f"{way} ({why})" for way, why in passed_over.items()),
            build_would_help=", ".join(build_would_help),
        ),
    ),
    "thought": Kind(
        "One sentence of reasoning.",
        {
            "thought": "text: the sentence",
            "concludes": "boolean: whether it states the answer, so that the loop ends",
        },
        _list_fields("thought"),
    ),
    "decided": Kind(
        "The next smaller question, whether it is searched for, and its answer where it is not.",
        {
            "reasoning": "text: why, in the words of the model",
            "finished": "boolean: whether the model knows enough to answer",
            "subquestion": "text: the next smaller question",
            "search": "boolean: whether it is searched for although it has an answer",
            "answer": "text: its answer where nothing is searched",
        },
        lambda finished, subquestion, search, answer, reasoning: list_facts(
            decision="finished" if finished else "search" if search or not answer else "from memory",
            subquestion=subquestion,
            answer=answer,
            reasoning=reasoning,
        ),
    ),
    "found": Kind(
        "The answer to a smaller question; empty if none was found.",
        {"answer": "text: the answer", "asked": "text: the smaller question"},
        lambda answer, asked: list_facts(subquestion=asked, answer=answer or "not found"),
    ),
    # Attempts to answer.
    "tried": Kind("An attempt after which the loop may go on.", _ATTEMPT, _summarize_attempt),
    "forced": Kind("The attempt of a model that may not decline any more.", _ATTEMPT, _summarize_attempt),
    "answered from points": Kind(
        "The last attempt of a loop whose working memory is a hypergraph.",
        {
            **_ATTEMPT,
            "points": "integer: how many points the working memory holds",
            "vertices_per_point": "number: the entities of a point, on average",
            "pool": "list of objects: the points, as rows",
        },
        lambda points, vertices_per_point, **attempt: (
            f"{_summarize_attempt(**attempt)}, points: {points}, vertices per point: {vertices_per_point}"
        ),
    ),
    "answered": Kind(
        "The answer from what a reader wrote down.",
        {
            "evidence": "optional list of pieces: the passages that the answering role saw; left out of a cut trace",
            "shown": "list of texts: the ids of the passages that these rest on",
            "notes": "list of texts: what the reader wrote down",
            "cut": "integer: how many notes and quotations did not fit",
            "answer": _ATTEMPT["answer"],
            "failed": _ATTEMPT["failed"],
            "missing": "text: what the evidence lacks, and what was not read",
        },
        lambda answer, failed, missing, notes, cut, evidence=(), **_: list_facts(
            answer="declined" if failed else answer, missing=missing, shown=evidence, notes=notes, cut=cut
        ),
    ),
    "answer_part": Kind(
        "What is new of an answer while a model writes it. It is streamed, and no trace has it.",
        {"text": "text: the new words", "replace": "boolean: whether they take the place of all parts before"},
        lambda text, replace: shorten(text),
    ),
    # Probing, with a pool.
    "probed": Kind(
        "The probes that a model thought of.",
        {"probes": "list of texts: the questions that memory is searched with next"},
        lambda probes: list_facts(probes="; ".join(probes) or "none"),
    ),
    "encoded": Kind(
        "What the evidence of one probe means.",
        {
            "probe": "text: the probe",
            "layer": "text: the layers that its evidence came from, separated by commas",
            "cue": "text: what the evidence says on the question; empty for nothing",
            "support": "list of texts: the ids of the evidence that the cue rests on",
        },
        lambda probe, layer, cue, support: list_facts(
            probe=probe, in_=name_layers(layer), cue=cue or _NOTHING, rests_on=support or None
        ),
    ),
    "fused": Kind(
        "What the cues of earlier steps say together.",
        {"cue": "text: one text in place of the earlier cues; empty for nothing"},
        lambda cue: list_facts(cue=cue or _NOTHING),
    ),
    "updated": Kind(
        "What the pool holds now.",
        {
            "units": "integer: how many searches the pool remembers, each with its cue",
            "nodes": "integer: how many pieces of evidence it holds",
        },
        _list_fields(searches_remembered="units", passages_summaries_and_episodes="nodes"),
    ),
    # The loop `evolve`, with a hypergraph.
    "planned": Kind(
        "Whether the memory suffices, and which concerns are open.",
        {
            "sufficient": "boolean: whether the points suffice for an answer",
            "reasoning": "text: why, in the words of the model",
            "concerns": "list of objects: what to search for: each `concern`, what is not known yet, with its "
            f"`subquery`, the `points` to search around, by their ids, and the `place`: {_REGION}",
        },
        lambda sufficient, concerns, **_: list_facts(
            sufficient="yes" if sufficient else "no",
            subqueries="; ".join(f"{each['subquery']} ({each['place']})" for each in concerns) or "none",
        ),
    ),
    "evolved": Kind(
        "Points that changed.",
        {
            "inserted": "list of objects: the new points",
            "updated": "list of objects: the points with a new text",
            "shown": _SHOWN,
            "cut": "integer: how many pieces of evidence did not fit",
            "notes": "list of texts: the texts of these points",
        },
        lambda inserted, updated, notes, **_: list_facts(inserted=inserted, updated=updated, says=" ".join(notes)),
    ),
    "merged": Kind(
        "Points that were made from others.",
        {
            "merged": "list of objects: the new points, each with its `parts`",
            "notes": "list of texts: the texts of the new points",
        },
        lambda merged, notes: list_facts(
            merged="; ".join(f"{row['parts']} into {row['point']}" for row in merged) or "nothing",
            says=" ".join(notes),
        ),
    ),
    # Reading, with a ledger or a note.
    "divided": Kind(
        "How much there is to read.",
        {
            "chunks": "integer: the chunks that are read, one after another",
            "tokens": "integer: the tokens of all of them",
        },
        _list_fields("chunks", "tokens"),
    ),
    "reading planned": Kind(
        "What to look for while reading.",
        {
            "questions": "list of texts: the questions that the text has to answer",
            "nets": "list of texts: wide questions, for facts of which nobody can know yet that they matter",
        },
        lambda questions, nets: list_facts(questions="; ".join(questions), nets="; ".join(nets)) or "no questions",
    ),
    "extracted": Kind(
        "The facts of a chunk.",
        {
            "chunk": _CHUNK,
            "notes": "list of texts: the facts",
            "not_found": "integer: how many facts quote words that the chunk does not have",
        },
        lambda chunk, notes, not_found: list_facts(chunk=chunk, facts=notes, not_found=not_found or None),
    ),
    "read": Kind(
        "The note after a chunk.",
        {"chunk": _CHUNK, "notes": _NOTE},
        lambda chunk, notes=(): list_facts(chunk=chunk, note=" ".join(notes)),
    ),
    "unread": Kind(
        "A chunk without a usable reply, and the note as it was before, where there is one.",
        {"chunk": _CHUNK, "notes": _NOTE},
        lambda chunk, notes=(): list_facts(chunk=chunk, note=" ".join(notes)),
    ),
    "ledger updated": Kind(
        "What the ledger holds.",
        {
            "pool": "list of objects: all entries, each with its `text` and its `kind`, `question`, `fact` or "
            "`inference`; the last two have a `label`, by which others cite them, and `replaced_by`, the label of the "
            "inference that overtook them"
        },
        _summarize_ledger,
    ),
    "recovered": Kind(
        "What is read again for questions that are open after the whole text was read.",
        {"open": "integer: how many questions are open", "tokens": "integer: how many tokens are read again"},
        _list_fields("open", "tokens"),
    ),
    # Around a loop.
    "context lowered": Kind(
        "Less evidence is shown than usual, since the model reads slowly.",
        {
            "context": "integer: the tokens of evidence that are shown at most",
            "usual": "integer: as many as there would be",
            "reads": "number: the tokens of a prompt that the model was measured to read in a second",
        },
        lambda context, usual, reads: (
            f"{context:,} tokens of evidence in place of {usual:,}: the model reads {reads:,.0f} a second (the setting "
            "`context` of the system says how many)"
        ),
    ),
    "rephrased": Kind(
        "A follow-up question, and how it stands alone.",
        {"asked": "text: the question as it was asked", "question": "text: the question as it is answered"},
        lambda asked, question: list_facts(asked=asked, question="unchanged" if question == asked else question),
    ),
    "resumed": Kind(
        "What a session brings to its next question.",
        {
            "session": "text: the name of the session",
            "question": "integer: the number of the question in it, from 1",
            "memory": "text: the kind of its working memory; empty without one",
            "known": "list of texts: the notes that it brings",
            "forgotten": "list of texts: the notes that went with their sources",
        },
        lambda session, question, known, forgotten, **_: list_facts(
            session=session, question=question, known=known, forgotten=forgotten or None
        ),
    ),
    "session": Kind(
        "What an answer took from its session, and what the session dropped after it.",
        {
            "notes": "list of texts: the notes of earlier questions that the answering call saw",
            "passages": "list of texts: the ids of passages of earlier questions that it saw",
            "dropped": "list of texts: the notes and questions for which there was no room, or whose sources are gone",
        },
        lambda notes, passages, dropped: list_facts(
            notes_taken=notes, passages_taken=passages, dropped="; ".join(dropped)
        ),
    ),
    "waiting": Kind(
        "A wait before a request is tried again, or for a server that says nothing.",
        {
            "seconds": "number: how long at most",
            "asked": "optional number: how many seconds the server asks to wait",
            "reason": "text: what the server replied, or why it is waited for",
            "next": "optional integer: the number of the try that follows, from 2",
            "tries": "optional integer: how many tries there are at most",
        },
        _summarize_wait,
    ),
    "asked again": Kind(
        "A model is asked once more at once, in another way.",
        {"change": "text: the other way", "reason": "text: why"},
        lambda change, reason: f"asked again {change}: {shorten(reason)}",
    ),
    "fallbacks": Kind(
        "How many steps fell back on a simpler one.",
        {"counts": "object: how often, by the kind of step"},
        lambda counts: list_facts(**counts),
    ),
}
"""All events of our loops and around them, by name."""
