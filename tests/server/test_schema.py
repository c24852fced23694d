"""Every reply is as /openapi.json says, whatever is asked (Schemathesis; `bench/schema.py` asks more)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.schema_cases import check_operations, serve_filled

EXAMPLES = 6  # of each operation


def test_replies_are_as_the_schema_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve_filled(tmp_path) as served:
        counts = check_operations(served, EXAMPLES)
        assert counts.total() >= 200
        assert set(counts) == {
            f"{method.upper()} {path}"
            for path, methods in served.http.get("/openapi.json").json()["paths"].items()
            for method in methods
        }
