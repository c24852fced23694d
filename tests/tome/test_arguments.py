"""Arguments of a wrong type: an error that names the argument, says its value, and what it should be."""

from __future__ import annotations

from typing import Any

import pytest

from tomewise import Document, Tome
from tomewise.errors import ReadingError, UsageError
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question

LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine.")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"passage_tokens": "x"}, "passage_tokens should be a valid integer, not 'x'"),
        ({"limit": True}, "limit should be a valid integer, not True"),
        ({"timeout": "30"}, "timeout should be a valid number, not '30'"),
        ({"model": 3}, "model must be a name or a LanguageModel, not 3"),
        ({"models": {"anwser": ScriptedModel({})}}, "did you mean 'answer'"),
        ({"models": ["openai:a"]}, "models should be a table of roles"),
        ({"embedder": 3}, "embedder must be a name or an Embedder, not 3"),
        ({"passge_tokens": 64}, "'passge_tokens' is not a setting: did you mean 'passage_tokens'"),
    ],
)
def test_settings_are_checked_before_a_file_is_opened(here, given, message):
    objects = {name: value for name, value in given.items() if name in ("model", "embedder")}
    with pytest.raises(UsageError, match=message):
        Tome.open(**objects, settings=given if not objects else None)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "positional", "named", "message"),
    [
        ("ask", (Question(text=3),), {}, "question must be a text, not 3"),
        ("ask", ("x",), {"options": "ab"}, 'options must be a list of texts such as \\["a", "b"\\], not \'ab\''),
        ("ask", ("x",), {"force": "no"}, "force must be True or False, not 'no'"),
        ("ask", ("x",), {"documents": 3}, "documents must be a list of texts"),
        ("ask", ("x",), {"where": [3]}, "where must be a condition such as"),
        ("ask", ("x",), {"within": "log"}, "within must be a Scope, not 'log'"),
        ("ask_many", ("x",), {}, "put this one into a list"),
        ("search", ("x",), {"limit": "3"}, "limit must be a whole number from 1 up, not '3'"),
        ("add", ({"text": "x"},), {}, "a source must be a path or a Document"),
        ("add", (Document(id=3, text="x"),), {}, "the id of a document must be a text, not 3"),
        ("remove", (3,), {}, "document must be a name"),
        ("session", (3,), {}, "a session cannot be named 3"),
        ("ask", ("x",), {"systm": "naive"}, "'systm' is not an argument: did you mean 'system'"),
        ("ask", ("x",), {"limit": 3}, "'limit' is not an argument: a setting goes into `settings`"),
    ],
)
def test_an_argument_of_another_type_is_named(here, method: str, positional: Any, named: Any, message: str):
    with Tome.open(embedder="hash") as tome:
        with pytest.raises(UsageError, match=message):
            getattr(tome, method)(*positional, **named)
        if method == "ask":
            with pytest.raises(UsageError, match=message):
                tome.session("s").ask(*positional, **named)


@pytest.mark.parametrize("path", ["word " * 2000, "x" * 5000, "a\0b"], ids=["words", "long", "zero"])
def test_a_path_that_cannot_be_is_refused_by_name(here, path):
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        with pytest.raises(ReadingError, match=path[:1]):
            tome.add(path)
        assert list(tome.add(path, LOG, keep_going=True).failed) == [path]
        with pytest.raises(ReadingError, match=r"pass a text as Document\(id="):
            tome.add("The keeper put out the light.")
