"""Results as one Parquet file, for data frames."""

from __future__ import annotations

from pathlib import Path

from tomewise.errors import MissingDependency
from tomewise.evaluate.records import list_records
from tomewise.evaluate.results import Results


def write_parquet(results: Results, path: Path) -> None:
    """Write a line for each row, see `list_records`. Raises MissingDependency without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependency("writing Parquet needs pyarrow: pip install 'tomewise[eval]'") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(list_records(results)), path)
