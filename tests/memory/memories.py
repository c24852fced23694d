"""What the tests of memory share: stores of short texts, layers that are built in them, and what they then hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tomewise.language.cached import Cache
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import Wrapped
from tomewise.memory.building import build
from tomewise.store.contract import Store
from tomewise.store.lookups import read_sources
from tomewise.store.records import PASSAGES, SETTINGS
from tomewise.testing import HashEmbedder, document_of, put_document
from tomewise.types import Document, Layer, LayerReport, Passage, Place, Progress, content_id

EMBEDDER = HashEmbedder(32)
TOPICS = ("the tide and the harbour pilot", "a ledger of grain and barley", "the school bell and the teacher")


def ignore_progress(_: Progress) -> None:
    pass


def put_text(store: Store, name: str, text: str) -> None:
    """Add or replace a document of one passage."""
    put_document(store, EMBEDDER, document_of(name, text))


def put_documents(store: Store, *texts: str) -> None:
    """Add a document of one passage for each text: d0, d1, and so on."""
    for number, text in enumerate(texts):
        put_text(store, f"d{number}", text)


def put_passages(store: Store, name: str, *texts: str, chapters: Sequence[tuple[str, ...]] = ()) -> list[int]:
    """Add a document of one line for each passage, which may stand in chapters. Returns the keys of the passages."""
    passages, start = [], 0
    for position, text in enumerate(texts):
        spot = {"document": name, "position": position, "start": start, "end": start + len(text), "text": text}
        place = Place(chapter=chapters[position] if chapters else ())
        passages.append(Passage(id=content_id("p", *spot.values()), place=place, **spot))  # type: ignore[arg-type]
        start += len(text) + 1
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(EMBEDDER.dimensions))
        keys = change.put_document(Document(id=name, text="\n".join(texts)), content_id("d", *texts), passages)
        change.put_vectors(PASSAGES, keys, EMBEDDER.embed([passage.content for passage in passages]))
    return keys


def put_numbered(store: Store, numbers: Iterable[int], write: Callable[[int], str]) -> None:
    """Add or replace the documents of these numbers; their names have the order of the numbers."""
    for number in numbers:
        put_text(store, f"d{number:03}", write(number))


def remove_numbered(store: Store, numbers: Iterable[int]) -> None:
    remove_documents(store, *(f"d{number:03}" for number in numbers))


def remove_documents(store: Store, *names: str) -> None:
    with store.write() as change:
        for name in names:
            change.remove_document(name)


async def build_layers(layers: Iterable[Layer], store: Store) -> list[LayerReport]:
    return await build(list(layers), store, ignore_progress)


async def build_layer(layer: Layer, store: Store) -> LayerReport:
    (report,) = await build_layers([layer], store)
    return report


def keep_replies(model: Any, store: Store) -> Wrapped:
    """The model as a kit gives it to layers: a reply that the store has is not asked for again."""
    return Wrapped(model, Cache(Prompts(), store.calls))


def list_texts(store: Store, layer: str, level: int = 0) -> list[str]:
    return [node.text for node in store.nodes(layer).values() if node.level == level]


def find_ground(store: Store, layer: str) -> dict[str, list[str]]:
    """The texts of the passages from which the nodes of a layer were made, by the texts of the nodes."""
    nodes, passages = store.nodes(layer), store.passages()
    return {
        nodes[key].text: [passages[source].text for source in sources]
        for key, sources in read_sources(store, nodes, layer).items()
    }
