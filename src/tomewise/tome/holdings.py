"""What a tome holds: its documents, its layers with what they failed to take in, and the system that suits it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tomewise.errors import count_noun
from tomewise.events import shorten
from tomewise.language.fences import oneline
from tomewise.memory.grounds import find_grounds
from tomewise.store.contract import Store
from tomewise.store.lookups import read_by_path, read_setting
from tomewise.store.records import BUILDS, LEFT_OUT, DocumentRecord
from tomewise.systems.advice import Recommendation, recommend_system
from tomewise.types import Condition, Coverage, DocumentId, Failure, Noun, PassageId, Scope, Source, Unread
from tomewise.types.place import name_document
from tomewise.types.plain import list_values

_NAMED = 3  # of what was not read
_LONGEST = 100  # characters of a name with its reason
_NO_TEXT = ("has the unsupported suffix", "is a link", "is empty")  # how reasons begin of files that hold none to read
_SCANNED = Condition("scanned_pages", ">=", 1)
_PARTLY_READ = Condition("left_out", "!=", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCounts(Noun):
    """How many nodes a layer has, and how many it failed to take in."""

    nodes: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPart(Noun):
    """Passages of a document, by their positions, that a layer failed to take in."""

    layer: str
    document: DocumentId
    passages: tuple[int, ...]
    reason: str
    count: int
    """Failed nodes; each counts once, so they add up to `failed` of the layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents(Noun):
    """What a tome holds: what `tome show --json` prints."""

    tome: str
    """Its address."""
    embedder: str | None
    passage_tokens: int
    overlap: int
    bytes: int
    cache_bytes: int
    layers: Mapping[str, LayerCounts]
    documents: tuple[DocumentRecord, ...]
    replies: Mapping[str, Mapping[str, Any]]
    """By layer, what became of the replies of the model."""
    flags: Mapping[str, Mapping[str, Any]]
    """By layer, model and kind, statements that their texts do not support: the `count` and a few as `examples`."""
    networks: Mapping[str, Any]
    """By layer, what it says of its network."""
    failed: tuple[FailedPart, ...]
    unread: tuple[Unread, ...]
    """What was left out when it was added."""
    recommended: Recommendation | None
    """The system that suits it as it is; None if it is empty."""


def read_contents(store: Store, model: str) -> Contents:
    """What a tome holds, with the system that is recommended for it with this model."""
    documents = store.documents()
    tokens = int(read_setting(store, "passage_tokens") or 0)
    return Contents(
        tome=store.address,
        embedder=read_setting(store, "embedder"),
        passage_tokens=tokens,
        overlap=int(read_setting(store, "overlap") or 0),
        bytes=store.size(),
        cache_bytes=store.cache_size(),
        layers={layer: LayerCounts(**counts) for layer, counts in store.layers().items()},
        documents=tuple(documents),
        replies=list_records(store, "replies"),
        flags=list_records(store, "flags"),
        networks=list_records(store, "network"),
        failed=tuple(_list_failures(store)),
        unread=tuple(list_unread(store)),
        recommended=recommend_system([record.passages for record in documents], tokens, model),
    )


def list_unread(store: Store, within: Scope | None = None, failed: int | None = None) -> Iterator[Unread]:
    """What of a scope was not read when it was added: parts of documents, and files beside those that are all in it.

    Of an answer, whose steps `failed` so many times, only files that may hold text.
    """
    scope = within or Scope()
    files = read_by_path(store, LEFT_OUT)
    if files and within:
        inside = {record.id for record in store.documents(within)}
        outside = [record.source for record in store.documents() if record.id not in inside]
        files = {
            folder: own
            for folder, own in files.items()
            if not any(source.startswith(f"{folder}/") for source in outside)
        }
    reasons = [(name, why) for own in files.values() for name, why in own.items()]
    lost = [(name, why) for name, why in reasons if failed is None or not why.startswith(_NO_TEXT)]
    scanned, partly = (
        [
            (name_document(record.id), write(record.metadata[each.field]))
            for record in store.documents(replace(scope, where=(*scope.where, each)))
        ]
        for each, write in ((_SCANNED, lambda pages: f"p. {str(pages).strip('[]')}"), (_PARTLY_READ, join_parts))
    )
    for what, count, found, mend in (
        ("partly scanned document", len(scanned), scanned, "recognise the text (OCR) and `tome add` again"),
        ("partly read document", len(partly), partly, "look into the file"),
        ("unread file", len(lost), lost, "mend and `tome add` again, or `--exclude`"),
        ("failed step", failed, [], "`--fresh` asks the model again"),
    ):
        if count:
            first = tuple(shorten(f"{oneline(name)}: {why}", _LONGEST) for name, why in found[:_NAMED])
            yield Unread(what=what, count=count, names=first, mend=mend)


def join_parts(parts: object) -> str:
    """The values of a field as an enumeration."""
    *first, last = map(str, list_values(parts))
    return f"{', '.join(first)} and {last}" if first else last


def list_losses(store: Store, documents: Sequence[DocumentId]) -> dict[DocumentId, str]:
    """What was seen in each of these documents when it was read, and left out; for those of which anything was."""
    losses: dict[DocumentId, str] = {}
    for record in store.documents(documents):
        pages = len(list_values(record.metadata.get(_SCANNED.field, ())))
        scanned = [count_noun(pages, "scanned page")] if pages else []
        if parts := [*list_values(record.metadata.get(_PARTLY_READ.field, ())), *scanned]:
            losses[record.id] = join_parts(parts)
    return losses


def list_guesses(store: Store, documents: Sequence[DocumentId]) -> dict[DocumentId, str]:
    """The encodings of those of these documents whose encoding was guessed."""
    from tomewise.reading.decode import ENCODING, GUESSED  # late: who looks at a tome does not read files

    guesses = ((record.id, str(record.metadata.get(ENCODING, ""))) for record in store.documents(documents))
    return {document: guess for document, guess in guesses if guess.endswith(GUESSED)}


@dataclass(slots=True, eq=False)
class ReadLedger:
    """What was read of a scope: passages that a search or a reading gave out, or that a model was shown.

    Several threads may write it.
    """

    passages: set[PassageId] = field(default_factory=set)
    failed: set[PassageId] = field(default_factory=set)
    """Passages without a usable reply. One that is read later is read."""

    def add(self, passages: Iterable[PassageId], failed: Iterable[PassageId] = ()) -> None:
        """Note what was read, and what failed."""
        self.passages.update(passages)
        self.failed.update(failed)

    def describe(self, store: Store, within: Scope | None) -> Coverage:
        """How much of the scope that is, and what nobody can have read."""
        keys = store.keys_within(within)
        found = store.find(self.passages)
        read = {each.key for each in found.values()}
        inside = read if keys is None else read.intersection(keys.tolist())
        return Coverage(
            passages=store.count_passages() if keys is None else len(keys),
            read=len(inside),
            unread=tuple(list_unread(store, within, len(self.failed - self.passages))),
        )


def list_records(store: Store, name: str) -> dict[str, Any]:
    """What the layers record under this name, for those that do."""
    return {layer: record[name] for layer, record in store.notes(BUILDS).items() if name in record}


def _list_failures(store: Store) -> list[FailedPart]:
    """The failures of all layers, by layer, document and reason, with the positions of the passages concerned."""
    positions: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    counts: Counter[tuple[str, str, str]] = Counter()
    for layer, counted in store.layers().items():
        for failure in locate_failures(store.intake(layer).failed, store) if counted["failed"] else ():
            for source in failure.sources:
                positions[layer, source.document, failure.reason].add(source.position)
            first = next((source.document for source in failure.sources), "")
            counts[layer, first, failure.reason] += 1
    return [
        FailedPart(
            layer=layer,
            document=document,
            passages=tuple(sorted(positions[layer, document, reason])),
            reason=reason,
            count=counts[layer, document, reason],
        )
        for layer, document, reason in sorted({*positions, *counts})
    ]


def locate_failures(failed: Mapping[int, str], store: Store) -> tuple[Failure, ...]:
    """Each failed node, with its reason, and the passages that it rests on; none for a node that is gone."""
    nodes = store.nodes_at(failed)
    grounds = {key: find_grounds(store, [key], node.layer)[key] for key, node in nodes.items()}
    passages = store.passages({source for sources in grounds.values() for source in sources})
    return tuple(
        Failure(
            node=key,
            reason=reason,
            sources=tuple(
                Source(document=passage.document, passage=passage.id, position=passage.position)
                for source in grounds.get(key, ())
                if (passage := passages.get(source))
            ),
        )
        for key, reason in failed.items()
    )
