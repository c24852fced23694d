"""The difference of two exports of a small tome, before and after one of its documents changed: run, not written."""

from __future__ import annotations

import json
from collections import Counter
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from tomewise import Document, Tome

_LOG = "The keeper, Ada Marsh, put out the light at nine. Ada Marsh lived at the harbour."
_BEFORE = "Ada Marsh wrote to Tom Reed in May. Tom Reed forged the letter."
_AFTER = "Ada Marsh wrote to Tom Reed in May. Lena Hart forged the letter."
_SHOWN = ("document", "node")


def write_export_difference() -> str:
    """A listing of the documents and nodes that differ, and a line on all other rows."""
    with TemporaryDirectory() as folder, Tome.open(Path(folder) / "small.tome", embedder="hash") as tome:
        before = _build(tome, Document(id="log", text=_LOG), Document(id="letter", text=_BEFORE))
        after = _build(tome, Document(id="letter", text=_AFTER))
        with Tome.open(Path(folder) / "new.tome", embedder="hash") as new:
            fresh = _build(new, Document(id="letter", text=_AFTER), Document(id="log", text=_LOG))
    assert fresh == after, "the export of a changed tome differs from that of a new one"
    lines = [line for line in unified_diff(before, after, n=0, lineterm="") if line[:3] not in ("---", "+++", "@@ ")]
    shown = [line[0] + " " + _shorten(json.loads(line[1:])) for line in lines if _read_kind(line) in _SHOWN]
    others = Counter(line[0] + _read_kind(line) for line in lines if _read_kind(line) not in _SHOWN)
    kinds = sorted({name[1:] for name in others})
    rest = ", ".join(f"{others['-' + kind]} and {others['+' + kind]} of {kind}" for kind in kinds)
    kept = len(after) - sum(line[0] == "+" for line in lines)
    return "\n".join(
        ["```diff", *shown, "```", "", f"Other rows that went and came: {rest}. Rows that stayed: {kept}.", ""]
    )


def _build(tome: Tome, *documents: Document) -> list[str]:
    tome.add(*documents)
    tome.build("associative")
    return list(tome.memory.export())


def _read_kind(line: str) -> str:
    return str(json.loads(line[1:])["kind"])


def _shorten(row: dict[str, str]) -> str:
    return f"{row.get('layer', row['kind'])} {row['id']}: {row['text']}"
