"""Texts that are verified over HTTP: what comes back, what bounds them, and what a judge may cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import OpenAIServer, reply_with
from tests.server.served import NOVEL, Served, read_code, serve_novel

VERIFY = f"{NOVEL}/verify"
TEXT = "Ada Marsh put out the light at nine. The clerk forged the letter in June. Penguins hold a congress."


def test_each_statement_comes_with_its_support_and_its_quotes(served: Served) -> None:
    answer = served.post(VERIFY, {"text": TEXT}).json()
    assert [each["support"] for each in answer["statements"]] == ["quoted", "contradicted", "none"]
    assert [TEXT[each["start"] : each["end"]] for each in answer["statements"]] == [
        each["text"] for each in answer["statements"]
    ]
    quote = answer["statements"][0]["quotes"][0]
    assert (quote["document"], quote["text"]) == ("light", "Ada Marsh put out the light at nine.")
    assert (answer["system"], answer["support"], answer["cost"]["calls"]) == ("verify", "none", 0)


def test_a_text_is_verified_within_the_documents_that_are_named(served: Served) -> None:
    found = served.post(VERIFY, {"text": TEXT, "documents": ["letter"]}).json()
    assert [each["support"] for each in found["statements"]] == ["none", "contradicted", "none"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": " "}, 400, "usage"),
        ({"text": "w" * 100_001}, 400, "usage"),
        ({"text": " ".join(f"B{number}." for number in range(2_001))}, 400, "usage"),
        ({"text": TEXT, "system": "hybrid"}, 400, "usage"),
        ({"text": TEXT, "judge": True}, 400, "usage"),
        ({"text": TEXT, "documents": ["ligh"]}, 404, "unknown_name"),
        ({"text": TEXT, "model": "openai:nobody"}, 404, "unknown_name"),
    ],
)
def test_what_cannot_be_verified_is_refused(served: Served, body: dict[str, Any], status: int, code: str) -> None:
    assert read_code(served.post(VERIFY, body)) == (status, code)


def test_a_judge_is_asked_within_the_budget_of_the_server(tmp_path: Path) -> None:
    verdicts = [{"number": 1, "reasoning": "r", "verdict": "contradicted"}]
    with (
        OpenAIServer(lambda _: reply_with(json.dumps({"verdicts": verdicts}))) as model,
        serve_novel(tmp_path, "--budget", "1 calls", model=model) as served,
    ):
        judged = served.post(VERIFY, {"text": TEXT, "judge": True}).json()
        assert [each["support"] for each in judged["statements"]] == ["quoted", "contradicted", "contradicted"]
        assert judged["cost"]["calls"] == 1
        long = " ".join(f"Penguin {number} holds a congress." for number in range(12))
        assert read_code(served.post(VERIFY, {"text": long, "judge": True})) == (402, "budget")
        assert served.post(VERIFY, {"text": long}).status_code == 200
