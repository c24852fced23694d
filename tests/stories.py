"""Documents whose passages are given one by one, or that are one passage with a title."""

from __future__ import annotations

from tomewise.store.records import SETTINGS
from tomewise.store.sql.sql_store import SqlStore
from tomewise.types import Document, Embedder, Passage, content_id


def put_texts(store: SqlStore, embedder: Embedder, name: str, *texts: str) -> list[int]:
    """Add a document of so many passages, embedded. Returns their keys."""
    whole = " ".join(texts)
    passages, start = [], 0
    for position, text in enumerate(texts):
        end = start + len(text)
        node = content_id("p", name, start, end, text)
        passages.append(Passage(id=node, document=name, position=position, start=start, end=end, text=text, title=""))
        start = end + 1
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(embedder.dimensions))
        keys = change.put_document(Document(id=name, text=whole), content_id("d", whole), passages)
        change.put_vectors("passages", keys, embedder.embed([passage.content for passage in passages]))
    return keys


def put_titled(store: SqlStore, embedder: Embedder, document: Document) -> int:
    """Add a document as one passage with the document's title, embedded. Returns its key."""
    passage = Passage(
        id=f"p-{document.id}",
        document=document.id,
        position=0,
        start=0,
        end=len(document.text),
        text=document.text,
        title=document.title,
    )
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(embedder.dimensions))
        keys = change.put_document(document, content_id("d", document.text), [passage])
        change.put_vectors("passages", keys, embedder.embed([passage.content]))
    return keys[0]
