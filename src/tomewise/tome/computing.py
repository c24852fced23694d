"""What code does where a question asks for all: it counts words, collects a list, and finds what the question names."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice

from tomewise.errors import BudgetExceeded, ModelError, ModelUnavailable, UsageError, count_noun
from tomewise.loops.escalate import Escalate
from tomewise.loops.evidence import load_passages
from tomewise.recall.hits import find_in_documents
from tomewise.recall.ranking import as_evidence
from tomewise.run import current_run
from tomewise.store.contract import Store
from tomewise.store.records import DocumentRecord
from tomewise.systems.kit import Kit, System
from tomewise.text.alignment import fold
from tomewise.text.finding import Finder, make_finder
from tomewise.text.lexicon import MONTH, WEEKDAY
from tomewise.text.names import JOINING, find_mentions, find_word_before, opens_sentence
from tomewise.tome.collected import Row
from tomewise.tome.collecting import fill_table, plan_table
from tomewise.tome.holdings import list_unread
from tomewise.types import Answer, Coverage, DocumentId, Evidence, Question, Quote, Scope, Statement, Unread
from tomewise.types.place import name_document
from tomewise.types.proof import STRENGTHS

_SHOWN = 3  # hits that are quoted
_NAMES, _WORDS = 10, 8  # names of a question that are looked for, and the words of one
_TIME = re.compile(f"{MONTH}|{WEEKDAY}")
_BEFORE_NO_NAME = frozenset("in as a an auf als ein eine en un une".split())  # "in English", "as JSON", "a SWOT"
_GERMAN = frozenset(
    """der das den dem des und ist sind wurde wurden wie welche welcher welches über im zum zur wer wo wann warum
    ein eine einen einer alle allen aller für aus nenne gib zeige fasse zusammen beschreibe erkläre""".split()
)


def let_compute(system: System, kit: Kit) -> System:
    """The system; one that can count, collect and narrow does it in the documents of the kit."""
    if not isinstance(system.loop, Escalate):
        return system
    store = kit.store
    count, collect, narrow = partial(count_words, store), partial(collect_rows, kit), partial(find_named, store)
    return replace(system, loop=replace(system.loop, count=count, collect=collect, narrow=narrow))


async def count_words(store: Store, question: Question, item: str) -> Answer | None:
    """How often an item stands in the documents in scope, or those of its words that the question has.

    None where it has none, also with another ending: then they are the model's own. And None where they stand apart
    in it, as two names do: those are not one thing to count. Nor is a part of a document counted.
    """
    if (within := question.within) and (within.entities is not None or within.without_entities):
        return None
    asked, written = fold(question.text).line, fold(item)
    words = item.strip(" \"'“”„«».")
    if written.line.rstrip() not in asked:
        spans = zip(written.words, written.starts, written.ends, strict=True)
        words = " ".join(item[start:end] for word, start, end in spans if len(word) > 1 and f" {word}" in asked)
    if not words or fold(words).line.rstrip() not in asked:
        return None
    find = partial(find_in_documents, kind="words", case=False, limit=_SHOWN, skip=0)
    try:
        hits = await asyncio.to_thread(find, store, question.within, [words])
    except UsageError:
        return None
    documents = len(hits.counts.get("document", ())) or len(store.documents(question.within))
    times = count_noun(hits.total, "time")
    text = f"\u201c{words}\u201d stands {times} in {count_noun(documents, 'document')}"
    return Answer(
        text=text,
        statements=(Statement(text=text, end=len(text), support="quoted", quotes=hits.quotes),),
        evidence=await asyncio.to_thread(_list_evidence, store, hits.quotes),
        claimed="full",
        reach="count",
        item=words,
        coverage=Coverage(read=hits.coverage.read),
    )


async def collect_rows(kit: Kit, question: Question, item: str) -> Answer | None:
    """What all passages in scope say of an item, in one line each, and how many there are.

    None where nothing is found, or where a model gave no usable plan.
    """
    store, report = kit.store, current_run().on_progress
    try:
        planned = replace(await plan_table(question.text, (), (), kit.model), within=question.within)
    except (ModelUnavailable, BudgetExceeded):
        raise
    except (ModelError, UsageError):
        return None
    table, *_ = await fill_table(planned, store, kit.model, report)
    if not table.rows:
        return None
    text = f"{len(table.rows):,}:"
    statements: list[Statement] = []
    for row in table.rows:
        statement = _write_row(row, len(text) + len("\n- "))
        statements.append(statement)
        text += f"\n- {statement.text}"
    known = set(list_unread(store, question.within, 0))
    lost = Unread(what="row that nothing proves", count=table.dropped_quotes, mend="`--fresh` asks the model again")
    pairs = Unread(what="pair of rows that may be one", count=len(table.doubtful), mend="look at both")
    unread = [*(each for each in table.coverage.unread if each not in known), lost, pairs]
    quotes = [quote for row in table.rows for quote in row.quotes]
    return Answer(
        text=text,
        statements=tuple(statements),
        evidence=await asyncio.to_thread(_list_evidence, store, quotes),
        claimed="full",
        reach="list",
        item=item,
        coverage=Coverage(read=table.coverage.read, unread=tuple(each for each in unread if each.count)),
    )


async def find_named(store: Store, question: Question) -> tuple[Scope, tuple[str, ...]] | None:
    """The documents that alone hold what the question names, such as "Project Heron", and those names.

    That is the title, the id or the file name of a document, as it is written, in two words or more: the documents that
    have it or hold it. And a name of which each word that stands nowhere in small letters stands in the same document,
    alone there. None where nothing counts, or all documents do, and in a scope of entities.
    """
    return await asyncio.to_thread(_find_named, store, question)


def _find_named(store: Store, question: Question) -> tuple[Scope, tuple[str, ...]] | None:
    within = question.within or Scope()
    records = [record for record in store.documents(within) if record.passages]
    if len(records) < 2 or within.entities is not None or within.without_entities:
        return None
    titles, text = _take_titles(records, question.text)
    names = list(islice(_list_names(text), _NAMES))
    words = {word for name, _ in names for word in name}
    ends = {" ".join(name[start:]) for name, _ in names for start in range(len(name))}
    exact = {*titles, *map(str.lower, words)}
    holders = _find_holders(
        store, records, [*((each, True) for each in exact), *((each, False) for each in words | ends)]
    )
    named = {title: found | holders[title, True] for title, found in titles.items()}
    capitals = not _GERMAN.isdisjoint(text.lower().split())  # which all nouns have
    for name, opens in names:
        start = next((start for start in range(len(name)) if holders[" ".join(name[start:]), False]), len(name))
        rest = name[start:]  # without "Summarise" of "Summarise Project Heron"
        if len(rest) <= capitals or (opens and len(name) == 1):
            continue
        chief = [word for word in rest if word not in JOINING]
        proper = [word for word in chief if not holders[word.lower(), True]] or chief
        if len(found := frozenset[DocumentId]().union(*(holders[word, False] for word in proper))) == 1:
            named[" ".join(rest)] = found
    documents = frozenset[DocumentId]().union(*named.values())
    return (replace(within, documents=documents), tuple(named)) if 0 < len(documents) < len(records) else None


def _take_titles(records: Iterable[DocumentRecord], text: str) -> tuple[dict[str, frozenset[DocumentId]], str]:
    """The titles, ids and file names in a text with the documents that have them, and the text without these.

    The longest come first, since one may be a part of another.
    """
    called = defaultdict[str, set[DocumentId]](set)
    for record in records:
        for title in (record.title, record.id, name_document(record.id)):
            called[title].add(record.id)
    taken: dict[str, frozenset[DocumentId]] = {}
    for title in sorted(called, key=len, reverse=True):
        if title in text and len(fold(title).words) > 1:
            rest = re.sub(rf"(?<![\w/]){re.escape(title)}(?!\w)", " , ", text)
            if rest != text:
                taken[title], text = frozenset(called[title]), rest
    return taken, text


def _list_names(text: str) -> Iterator[tuple[list[str], bool]]:
    """The words of each name in a text, and whether it opens a sentence; no time, no language or form of a reply."""
    for mention in find_mentions(text):
        words = mention.text.split()
        if mention.kind not in ("name", "title") or len(words) > _WORDS or _TIME.fullmatch(words[-1]):
            continue
        if find_word_before(text, mention).lower() not in _BEFORE_NO_NAME:
            yield words, mention.kind == "name" and opens_sentence(text, mention.start)


def _find_holders(
    store: Store, records: Iterable[DocumentRecord], wanted: Iterable[tuple[str, bool]]
) -> Mapping[tuple[str, bool], set[DocumentId]]:
    """The documents that hold words in their text, title or file name, with or without regard to capitals."""
    finders: dict[tuple[str, bool], Finder] = {}
    for words, case in wanted:
        with suppress(ValueError):  # no word to look for
            finders[words, case] = make_finder(words, case=case)
    holders = defaultdict[tuple[str, bool], set[DocumentId]](set)
    for record in records if finders else ():
        text = "\n".join((store.document(record.id).text, record.title, name_document(record.id)))
        for key, find in finders.items():
            if any(True for _ in find(text)):
                holders[key].add(record.id)
    return holders


def _write_row(row: Row, start: int) -> Statement:
    """A row as a statement, with the weakest support of its cells."""
    cells = [cell for cell in row.cells if cell.text]
    text = ", ".join(cell.text for cell in cells)
    support = min((cell.support for cell in cells), key=STRENGTHS.index)
    return Statement(text=text, start=start, end=start + len(text), support=support, quotes=row.quotes)


def _list_evidence(store: Store, quotes: Iterable[Quote]) -> tuple[Evidence, ...]:
    passages = load_passages(store, dict.fromkeys(quote.passage for quote in quotes))
    return tuple(as_evidence(passage, 1.0) for passage in passages.values())
