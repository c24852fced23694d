"""What rows hold: each column takes values of its own type, and nothing else passes for one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tomewise.errors import StoreError
from tomewise.store.sql.row_values import (
    Fields,
    Misfit,
    RowNumber,
    RowObject,
    RowText,
    RowVector,
    RowWhole,
    decode_plain,
    decode_vector,
    describe_value,
    stack_vectors,
)

FITS: list[tuple[Any, list[Any], list[Any]]] = [
    (RowText("t"), ["", "x"], [None, 1, 1.5, b"x"]),
    (RowWhole("t"), [0, -1, 2**62], [None, 1.5, "1", b"1"]),
    (RowWhole("t", may_be_empty=True), [0, None], ["", 1.5]),
    (RowNumber("t"), [0, 1.5], [None, float("nan"), float("inf"), "1"]),
    (RowVector("t"), [b"", np.ones(3, np.float32).tobytes()], [b"abc", None, "text", b"\xff" * 8]),
    (RowObject("t"), ["{}", '{"a": [1]}', '{"a": "\\u00e9"}'], ["[]", "5", "", "{", None, b"{}", '{"a": "\\ud800"}']),
    (RowObject("t", (("again", str, str),)), ["{}", '{"again": "x"}', '{"b": 5}'], ['{"again": 5}', '{"again": null}']),
    (RowObject("t", (("writes", list, str),)), ['{"writes": ["x"]}'], ['{"writes": [5]}', '{"writes": "x"}']),
    (RowObject("t", (("replies", dict, int),)), ['{"replies": {"a": 1}}'], ['{"replies": {"a": "x"}}']),
]


@pytest.mark.parametrize(("column", "good", "bad"), FITS, ids=lambda value: type(value).__name__)
def test_a_column_gives_values_of_its_type_alone(column: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        given = column.process_result_value(value, None)
        assert given == (json.loads(value) if isinstance(column, RowObject) else value)
    for value in bad:
        with pytest.raises(Misfit):
            column.process_result_value(value, None)


def test_json_that_is_too_deep_is_a_misfit() -> None:
    with pytest.raises(Misfit):
        RowObject("t").process_result_value('{"a": ' + "[" * 100_000, None)


def test_a_field_that_a_node_lacks_is_damage_of_the_tome() -> None:
    fields = Fields({"head": "Ida"}, "f1")
    assert (fields["head"], fields.get("tail"), dict(fields)) == ("Ida", None, {"head": "Ida"})
    with pytest.raises(StoreError, match=r"the row of 'f1' in the table nodes has no 'tail'"):
        fields["tail"]


def test_vectors_are_decoded_and_must_be_of_one_width() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert decode_vector(rows[0].tobytes()).tolist() == [0, 1, 2]
    assert stack_vectors(row.tobytes() for row in rows).tolist() == rows.tolist()
    with pytest.raises(Misfit, match="several widths"):
        stack_vectors([rows[0].tobytes(), rows.tobytes()])


def test_errors_of_numpy_name_the_table() -> None:
    with pytest.raises(Misfit) as caught, decode_plain("edges"):
        np.array([["x"]], np.int64)
    assert caught.value.table == "edges"


def test_values_are_described_in_a_few_words() -> None:
    assert [describe_value(value) for value in (None, b"abc", 5, "\x1b")] == ["nothing", "3 bytes", "5", r"'\x1b'"]
    assert len(describe_value("x" * 1000)) == 40
