"""`POST .../find`: every place of a text, over HTTP."""

from typing import Any

import pytest
from tests.server.served import NOVEL, Served, read_code

FIND = f"{NOVEL}/find"


def test_each_place_comes_with_its_line_and_all_are_counted(served: Served) -> None:
    hits = served.post(FIND, {"wanted": ["light", "letter"], "limit": 1}).json()
    assert hits["total"] == sum(hits["counts"]["document"].values()) > len(hits["quotes"]) == 1
    hit = hits["quotes"][0]
    assert hit["text"].lower() in ("light", "letter")
    assert hits["coverage"]["read"] == hits["coverage"]["passages"]
    only = served.post(FIND, {"wanted": ["light"], "documents": ["light"]}).json()
    assert set(only["counts"]["document"]) == {"light"}


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
