"""Results as one Parquet file, for data frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tomewise.errors import MissingDependency
from tomewise.evaluate.results import Results
from tomewise.evaluate.rows import Row
from tomewise.evaluate.table import scores

_NESTED = ("citations", "evidence", "events", "texts", "versions", "fallbacks")


def write_parquet(results: Results, path: Path) -> None:
    """One line a row: what was asked, answered, scored (column `score:NAME`) and spent.

    What is nested (evidence, events, usage by role) is JSON text. Raises MissingDependency without pyarrow.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("writing Parquet needs pyarrow: pip install 'tomewise[eval]'") from error
    about = results.about
    named = (*about.metrics, *about.judges)
    flat = [_flat(row, {name: scores([row], name, name in about.judges) for name in named}) for row in results.rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(flat), path)


def _flat(row: Row, found: dict[str, Any]) -> dict[str, Any]:
    item, said, usage = row.item, row.prediction, dict(row.usage)
    roles = usage.pop("roles", {})
    return {
        "key": row.key,
        "system": row.system,
        "id": item.id,
        "question": item.question.text,
        "options": list(item.question.options),
        "answers": list(item.answers),
        "correct": item.correct,
        "supporting": list(item.supporting),
        "answer": said.answer,
        "choice": said.choice,
        "ranked": [passage.document for passage in said.ranked],
        "shown": [passage.document for passage in said.shown],
        "resolved": row.resolved,
        "forced": row.forced,
        "supported": row.supported,
        "missing": row.missing,
        "cycles": row.cycles,
        "error": row.error,
        "asked": row.asked,
        "characters": row.characters,
        **{
            f"score:{name}": None if value is None or value[0] != value[0] else value[0]
            for name, value in found.items()
        },
        **usage,
        "roles": json.dumps(roles),
        "slices": json.dumps(dict(item.slices)),
        **{name: json.dumps(getattr(row, name)) for name in _NESTED},
    }
