"""Every place of a text, parts of documents, and tables, over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, reply_with
from tests.server.served import NOVEL, Served, read_code, serve_novel

FIND = f"{NOVEL}/find"


def test_each_place_comes_with_its_line_and_all_are_counted(served: Served) -> None:
    hits = served.post(FIND, {"wanted": ["light", "letter"], "limit": 1}).json()
    assert hits["total"] == sum(count for _, count in hits["counts"]["document"]) > len(hits["quotes"]) == 1
    hit = hits["quotes"][0]
    assert hit["text"].lower() in ("light", "letter")
    assert hits["coverage"]["read"] == hits["coverage"]["passages"]
    only = served.post(FIND, {"wanted": ["light"], "documents": ["light"]}).json()
    assert [name for name, _ in only["counts"]["document"]] == ["light"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"wanted": []}, 400, "usage"),
        ({"wanted": ["("], "kind": "pattern"}, 400, "usage"),
        ({"wanted": ["a"], "kind": "regex"}, 400, "usage"),
        ({"wanted": ["a"], "limit": 10_001}, 400, "usage"),
        ({"wanted": ["a"], "documents": ["ligh"]}, 404, "unknown_name"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(served: Served, body: dict[str, Any], status: int, code: str) -> None:
    assert read_code(served.post(FIND, body)) == (status, code)


def test_a_document_is_outlined_and_read_in_part(served: Served) -> None:
    outline = served.http.get(f"{NOVEL}/outline", params={"document": "light"}).json()
    assert outline["characters"] == len(served.http.get(f"{NOVEL}/text", params={"document": "light"}).json()["text"])
    read = served.http.get(f"{NOVEL}/text", params={"document": "light", "part": "characters 0-7"}).json()
    assert (read["start"], read["end"]) == (0, 7)
    refused = served.http.get(f"{NOVEL}/text", params={"document": "light", "part": "page 3"})
    assert read_code(refused) == (404, "unknown_name")


def test_a_table_is_collected_within_the_budget_of_the_server(tmp_path: Path) -> None:
    rows = {"rows": [{"quote": "Ada Marsh put out the light at nine.", "cells": ["Ada Marsh"]}]}
    body = {"asked": "all keepers", "columns": ["who"], "documents": ["light"]}
    with (
        OpenAIServer(lambda _: reply_with(json.dumps(rows))) as model,
        serve_novel(tmp_path, "--budget", "1 calls", model=model) as served,
    ):
        table = served.post(f"{NOVEL}/collect", body).json()
        assert [row["cells"][0]["text"] for row in table["rows"]] == ["Ada Marsh"]
        assert table["all_read"]
        assert read_code(served.post(f"{NOVEL}/collect", {**body, "figures": ["median who"]})) == (400, "usage")
        assert read_code(served.post(f"{NOVEL}/collect", {**body, "columns": ["a:b"]})) == (400, "usage")


def test_an_open_scope_knows_what_of_it_was_read(served: Served) -> None:
    opened = served.post(f"{NOVEL}/scopes", {"documents": ["light", "letter"]}).json()
    assert (opened["documents"], opened["coverage"]["read"]) == (2, 0)
    scope = {"scope": opened["id"]}
    assert served.post(f"{NOVEL}/find", {"wanted": ["the"], **scope}).json()["coverage"]["passages"] == 2
    answer = served.post(f"{NOVEL}/ask", {"question": "Who put out the light?", "system": "naive", **scope}).json()
    assert answer["resolved"]
    shown = served.http.get(f"{NOVEL}/scopes/{opened['id']}").json()
    assert (shown["coverage"]["read"], shown["coverage"]["all_read"]) == (2, True)
    refused = served.post(f"{NOVEL}/find", {"wanted": ["the"], "documents": ["light"], **scope})
    assert read_code(refused) == (400, "usage")
    assert read_code(served.post(f"{NOVEL}/find", {"wanted": ["the"], "scope": "x"})) == (404, "unknown_name")


def test_what_a_session_showed_and_what_was_read_counts_in_the_scope(served: Served) -> None:
    opened = served.post(f"{NOVEL}/scopes", {"documents": ["light", "letter"]}).json()
    scope = {"scope": opened["id"]}

    def count_read() -> int:
        read: int = served.http.get(f"{NOVEL}/scopes/{opened['id']}").json()["coverage"]["read"]
        return read

    def read_text(document: str, **scope: str) -> Any:
        return served.http.get(f"{NOVEL}/text", params={"document": document, **scope})

    text = read_text("light", **scope).json()
    assert (text["start"], text["end"], count_read()) == (0, text["characters"], 1)
    letters = served.post(f"{NOVEL}/scopes", {"documents": ["letter"]}).json()
    assert read_code(read_text("light", scope=letters["id"])) == (400, "usage")
    assert read_code(read_text("light", scope="x")) == (404, "unknown_name")
    asked = {"question": "Who put out the light?", "system": "naive", "session": "keepers", **scope}
    assert served.post(f"{NOVEL}/ask", asked).json()["resolved"]
    assert count_read() == 2
