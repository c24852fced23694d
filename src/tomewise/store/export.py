"""A tome as JSON lines in canonical order: equal memories give equal lines, whatever their history and their store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tomewise.store.records import BUILDS, PASSAGES, SESSIONS, SETTINGS
from tomewise.types.place import write_places

if TYPE_CHECKING:
    from tomewise.store.contract import Snapshot, Store
    from tomewise.types import Node, NodeId, Passage

_DECIMALS = 5  # the last bits of weights that are cosines differ between machines
# Signs that JSON leaves as they are, but that end a line, or steer a terminal.
_ODD = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_DOCUMENT = ("id", "title", "source", "text", "metadata")
_PASSAGE = ("id", "document", "position", "start", "end", "text")  # the document has the title
_OWN = "identity"  # the setting that belongs to one file alone
_NODE = ("id", "layer", "level", "position", "text", "data")  # the edges have the sources


def export(store: Store) -> Iterator[str]:
    """Settings, documents, nodes, edges, sessions, and which nodes have vectors; no keys, version numbers and vectors.

    Vectors are left out because the texts and the embedder determine them, except for the last bits.
    """
    with store.snapshot() as whole:
        for name, value in whole.notes(SETTINGS).items():
            if name != _OWN:
                yield _make_line("setting", key=name, value=value)
        for record in whole.documents():
            document = whole.document(record.id)
            fields = _select_fields(document, _DOCUMENT)
            yield _make_line("document", **fields, digest=record.digest, characters=len(document.text))
        nodes = {key: node for layer in whole.layers() for key, node in whole.nodes(layer).items()}
        passages = whole.passages()
        for fields in sorted(_list_nodes(nodes, passages), key=lambda fields: (fields["layer"], fields["id"])):
            yield _make_line("node", **fields)
        ids = {key: node.id for key, node in nodes.items()}
        lines = [*_write_spaces(whole, ids), *_write_intake(whole, ids)]
        lines += [_make_line("session", **{**record, "name": name}) for name, record in whole.notes(SESSIONS).items()]
    yield from sorted(lines)


def _list_nodes(nodes: Mapping[int, Node], passages: Mapping[int, Passage]) -> Iterator[dict[str, Any]]:
    for passage in passages.values():
        yield {
            **_select_fields(passage, _PASSAGE),
            "layer": PASSAGES,
            "level": 0,
            "data": write_places(passage.place, passage.marks),
        }
    for key, node in nodes.items():
        if key not in passages:
            yield {**_select_fields(node, _NODE), "document": None, "start": None, "end": None}


def _write_spaces(whole: Snapshot, ids: Mapping[int, NodeId]) -> Iterator[str]:
    for name in whole.versions():
        kind, _, space = name.partition("/")
        if kind == "vectors":
            for key in whole.arrays([name])[name].keys.tolist():
                yield _make_line("vector", space=space, node=ids[key])
        elif kind == "edges":
            for a, b, weight in whole.arrays([name])[name].rows.tolist():
                yield _make_line("edge", space=space, a=ids[a], b=ids[b], weight=round(weight, _DECIMALS))


def _write_intake(whole: Snapshot, ids: Mapping[int, NodeId]) -> Iterator[str]:
    for layer in whole.layers().keys() | whole.notes(BUILDS).keys():
        intake = whole.intake(layer)
        for key, failure in (*((key, "") for key in intake.done), *intake.failed.items()):
            yield _make_line("intake", layer=layer, node=ids[key], failure=failure)


def _select_fields(noun: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(noun, name) for name in names}


def _make_line(kind: str, /, **fields: Any) -> str:
    return write_line({**fields, "kind": kind})


def write_line(fields: Mapping[str, Any]) -> str:
    """A JSON object that is one line everywhere, equal for equal fields."""
    line = json.dumps(fields, ensure_ascii=False, sort_keys=True)
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
