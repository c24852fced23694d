"""`tome models`: providers with their keys, models with their prices."""

from __future__ import annotations

import json


def test_providers_say_whether_their_key_is_set(command, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-the-user")
    ran = command("models", "--json")
    keys = {row["name"]: row["has_key"] for row in json.loads(ran.out)["providers"]}
    assert (keys["anthropic"], keys["openai"]) == (True, False)
    shown = command("models").out
    assert "OPENAI_API_KEY" in shown
    assert "a-key-of-the-user" not in ran.out + shown


def test_the_prices_of_a_provider(command):
    rows = {row["name"]: row for row in json.loads(command("models", "openai", "--json").out)}
    assert (rows["openai:gpt-4o-mini"]["input"], rows["openai:gpt-4o-mini"]["output"]) == (0.15, 0.6)
    shown = command("models", "openai").out
    assert "openai:gpt-4o-mini" in shown
    assert shown.index("openai:gpt-4.1") < shown.index("openai:ada"), "models of today come first"
    assert "did you mean 'openai'" in command("models", "opnai").err


def test_the_shell_completion_is_offered(command):
    assert "--install-completion" in command("--help").out
