"""`terminal.model_options`: the options of the model and its bounds, as one parameter of a command."""

from __future__ import annotations

import pytest

from tomewise.errors import UsageError
from tomewise.settings import Settings
from tomewise.terminal.model_options import UNSTATED, ModelOptions


def test_what_is_stated_takes_the_place_of_settings() -> None:
    settings = Settings(model="openai:y", base_url="http://a", max_calls=5)
    assert UNSTATED.choose(settings) == settings
    chosen = ModelOptions(model=["extractive", "answer=openai:x"], max_calls=0).choose(settings)
    assert (chosen.model, dict(chosen.models)) == ("extractive", {"answer": "openai:x"})
    assert (chosen.base_url, chosen.max_calls) == ("http://a", 0)
    with pytest.raises(UsageError, match="two models"):
        ModelOptions(model=["a", "b"]).choose(settings)


def test_the_options_are_listed_as_words() -> None:
    stated = ModelOptions(model=["a", "answer=b"], max_tokens=7)
    assert stated.list_options() == [("--model", "a"), ("--model", "answer=b"), ("--max-tokens", "7")]
    assert stated.list_options("max_tokens") == [("--max-tokens", "7")]
    assert UNSTATED.list_options() == []
