"""Passages and nodes from the rows of the table `nodes`."""

from __future__ import annotations

from typing import Any

from tomewise.store.sqlite.decode import Fields, Misfit
from tomewise.store.sqlite.passage_data import read_passage_data
from tomewise.types import Node, Passage


def make_passage(row: dict[str, Any]) -> Passage:
    """The passage of a row, which is used up. Raises Misfit for one without a place in its document."""
    if row["start"] is None or row["end"] is None:
        raise Misfit("nodes", "a passage without a place in its document")
    return Passage(**read_passage_data(row.pop("data")), **row)


def make_node(row: dict[str, Any]) -> Node:
    """The node of a row, without its sources."""
    return Node(**{**row, "data": Fields(row["data"], row["id"])}, sources=())
