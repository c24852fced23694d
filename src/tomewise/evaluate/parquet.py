"""Results as one Parquet file, for data frames."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tomewise.errors import MissingDependency
from tomewise.evaluate.results import Results, score_row
from tomewise.evaluate.rows import Row, make_question_record

_NESTED = ("citations", "evidence", "events", "texts", "versions", "fallbacks")


def list_records(results: Results) -> list[dict[str, Any]]:
    """One record a row: the question, the answer, the scores (`score:NAME`) and the costs.

    Nested values (evidence, events, usage by role) are JSON text.
    """
    about = results.about
    names = (*about.metrics, *about.judges)
    return [_make_record(row, names, score_row(row, about)) for row in results.rows]


def _make_record(row: Row, columns: Sequence[str], scores: Mapping[str, float | None]) -> dict[str, Any]:
    item, prediction, usage = row.item, row.prediction, dict(row.usage)
    roles = usage.pop("roles", {})
    return {
        "key": row.key,
        "system": row.system,
        **make_question_record(item),
        "supporting": list(item.supporting),
        "answer": prediction.answer,
        "choice": prediction.choice,
        "ranked": [passage.document for passage in prediction.ranked],
        "shown": [passage.document for passage in prediction.shown],
        "ranked_by": row.ranked_by,
        "resolved": row.resolved,
        "forced": row.forced,
        "supported": row.supported,
        "missing": row.missing,
        "cycles": row.cycles,
        "error": row.error,
        "asked": row.asked,
        "characters": row.characters,
        **{f"score:{name}": scores.get(name) for name in columns},
        **usage,
        "roles": json.dumps(roles),
        "slices": json.dumps(dict(item.slices)),
        **{name: json.dumps(getattr(row, name)) for name in _NESTED},
    }


def write_parquet(results: Results, path: Path) -> None:
    """Write a line for each row, see `list_records`. Raises MissingDependency without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("writing Parquet needs pyarrow: pip install 'tomewise[eval]'") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(list_records(results)), path)
