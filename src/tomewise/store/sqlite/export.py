"""A tome as JSON lines in canonical order: equal memories give equal lines, whatever their history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from tomewise.store.sqlite.schema import documents, edges, intake, meta, nodes, vectors

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore

_DECIMALS = 5  # the last bits of weights that are cosines differ between machines


def export(store: SqliteStore) -> Iterator[str]:
    """Settings, documents, nodes, edges, and which nodes have vectors; no keys, no version numbers, no vectors.

    Vectors are left out because the texts and the embedder determine them, except for the last bits.
    """
    with store.read() as connection:
        for row in connection.execute(select(meta).where(meta.c.key != "identity").order_by(meta.c.key)).mappings():
            yield _line("setting", **row)
        columns = [column for column in documents.c if column.name != "key"]
        for row in connection.execute(select(*columns).order_by(documents.c.id)).mappings():
            yield _line("document", **{**row, "metadata": json.loads(row["metadata"])})
        columns = [column for column in nodes.c if column.name not in ("key", "document")]
        joined = select(*columns, documents.c.id.label("document"))
        joined = joined.outerjoin(documents, documents.c.key == nodes.c.document).order_by(nodes.c.layer, nodes.c.id)
        for row in connection.execute(joined).mappings():
            yield _line("node", **{**row, "data": json.loads(row["data"])})
        ids = {row.key: row.id for row in connection.execute(select(nodes.c.key, nodes.c.id))}
        lines = [
            _line("edge", space=space, a=ids[a], b=ids[b], weight=round(weight, _DECIMALS))
            for space, a, b, weight in connection.execute(select(edges.c.space, edges.c.a, edges.c.b, edges.c.weight))
        ]
        lines += [
            _line("vector", space=space, node=ids[key])
            for space, key in connection.execute(select(vectors.c.space, vectors.c.key))
        ]
        lines += [
            _line("intake", layer=layer, node=ids[key], failure=failure)
            for layer, key, failure in connection.execute(select(intake.c.layer, intake.c.node, intake.c.failure))
        ]
    yield from sorted(lines)


def _line(kind: str, **fields: Any) -> str:
    return json.dumps({"kind": kind, **fields}, ensure_ascii=False, sort_keys=True)
