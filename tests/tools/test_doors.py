from __future__ import annotations

import json
import urllib.request
from typing import Any

from tools.doors import PlayedModel

SCHEMA = {
    "type": "object",
    "properties": {
        "supported": {"enum": ["full", "none"]},
        "quotes": {"type": "array", "items": {"$ref": "#/$defs/Quote"}},
        "resolved": {"type": "boolean"},
    },
    "$defs": {
        "Quote": {"type": "object", "properties": {"label": {"type": "string"}, "quote": {"type": "string"}}},
    },
}
PROMPT = '<passage label="E7">Ada Marsh put out the light at nine.</passage>'


def ask(model: PlayedModel, prompt: str) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    body = json.dumps({"messages": [{"role": "user", "content": prompt}], "response_format": form}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{model.address}/chat/completions", body)) as reply:
        return json.loads(json.load(reply)["choices"][0]["message"]["content"])


def test_a_played_model_fills_the_schema_with_words_of_the_prompt_and_notes_each_request() -> None:
    with PlayedModel() as model:
        reply = ask(model, PROMPT)
        assert ask(model, PROMPT) == reply
        ask(model, "Something else.")
        assert len(model.take_requests()) == 2
        assert model.take_requests() == []
    assert reply["supported"] in ("full", "none")
    assert all(quote["label"] == "E7" and quote["quote"] in PROMPT for quote in reply["quotes"])
    assert len(reply["quotes"]) == 2
