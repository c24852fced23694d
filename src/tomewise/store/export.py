"""A tome as JSON lines in canonical order: equal memories give equal lines, whatever their history and their store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tomewise.place import write_places
from tomewise.store.records import PASSAGES

if TYPE_CHECKING:
    from tomewise.store.contract import Snapshot, Store

_DECIMALS = 5  # the last bits of weights that are cosines differ between machines
# Signs that JSON leaves as they are, but that end a line, or steer a terminal.
_ODD = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_DOCUMENT = ("id", "title", "source", "text", "metadata")
_PASSAGE = ("id", "document", "position", "start", "end", "text")  # the document has the title
_NODE = ("id", "layer", "level", "position", "text", "data")  # the edges have the sources


def export(store: Store) -> Iterator[str]:
    """Settings, documents, nodes, edges, sessions, and which nodes have vectors; no keys, version numbers and vectors.

    Vectors are left out because the texts and the embedder determine them, except for the last bits.
    """
    with store.snapshot() as whole:
        for name, value in sorted(whole.settings()):
            yield _make_line("setting", key=name, value=value)
        for document, digest in sorted(whole.documents(), key=lambda pair: pair[0].id):
            fields = _select_fields(document, _DOCUMENT)
            yield _make_line("document", **fields, digest=digest, characters=len(document.text))
        for fields in sorted(_list_nodes(whole), key=lambda fields: (fields["layer"], fields["id"])):
            yield _make_line("node", **fields)
        lines = [
            _make_line("edge", space=space, a=a, b=b, weight=round(weight, _DECIMALS))
            for space, a, b, weight in whole.edges()
        ]
        lines += [_make_line("vector", space=space, node=node) for space, node in whole.vectors()]
        lines += [_make_line("session", **{**record, "name": name}) for name, record in whole.sessions()]
        lines += [
            _make_line("intake", layer=layer, node=node, failure=failure) for layer, node, failure in whole.intake()
        ]
    yield from sorted(lines)


def _list_nodes(whole: Snapshot) -> Iterator[dict[str, Any]]:
    for passage in whole.passages():
        yield {
            **_select_fields(passage, _PASSAGE),
            "layer": PASSAGES,
            "level": 0,
            "data": write_places(passage.place, passage.marks),
        }
    for node in whole.nodes():
        yield {**_select_fields(node, _NODE), "document": None, "start": None, "end": None}


def _select_fields(noun: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(noun, name) for name in names}


def _make_line(kind: str, /, **fields: Any) -> str:
    return write_line({**fields, "kind": kind})


def write_line(fields: Mapping[str, Any]) -> str:
    """A JSON object that is one line everywhere, equal for equal fields."""
    line = json.dumps(fields, ensure_ascii=False, sort_keys=True)
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
