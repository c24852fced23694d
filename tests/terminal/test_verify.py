"""`tome verify`: files of any format and standard input, what is printed, and what is refused."""

import io
import json
import sys

import pytest
from tests.language.openai_server import OpenAIServer, reply_with

DRAFT = "# Notes\n\nAda Marsh put out the light at nine. Ada Marsh [b]sold[/b] 4,711 boats.\n"
COUNT = "2 statements: 1 quoted, 0 inferred, 0 contradicted, 1 unsupported"


@pytest.fixture
def draft(log_in_tome):
    path = log_in_tome.with_name("draft.md")
    path.write_text(DRAFT)
    return path


def test_a_file_is_printed_with_marks_and_a_count_at_the_end(command, draft):
    ran = command("verify", draft)
    assert ran.code == 0
    assert "Ada Marsh put out the light at nine. [1]" in ran.out
    assert "[b]sold[/b] 4,711 boats. [unsupported]" in ran.out
    assert ran.out.endswith(f"{COUNT}\n")
    assert "guess" not in ran.out
    assert "answer" not in ran.out


def test_what_programs_and_editors_get(command, read_json, draft):
    answer = read_json("verify", draft)
    assert [each["support"] for each in answer["statements"]] == ["quoted", "none"]
    assert answer["text"] == DRAFT
    printed = command("verify", draft, "--markdown").out
    assert "at nine. [^1]" in printed
    assert COUNT in printed


def test_only_what_is_supported_is_shown_where_that_is_wanted(command, draft):
    shown = command("verify", draft, "--only-supported").out
    assert "boats" not in shown
    assert "Not shown: 1 statement without support." in shown


def test_front_matter_is_no_statement_and_pages_are_read_as_they_are_added(command, read_json, draft):
    draft.write_text(f"---\ntitle: A made up title of 1850\n---\n{DRAFT}")
    assert len(read_json("verify", draft)["statements"]) == 2
    page = draft.with_name("draft.html")
    page.write_text("<html><body><script>Penguins();</script><p>Ada Marsh put out the light at nine.</p></body></html>")
    assert [each["text"] for each in read_json("verify", page)["statements"]] == [
        "Ada Marsh put out the light at nine."
    ]


def test_standard_input_is_verified_within_the_documents_that_are_named(command, read_json, draft, monkeypatch):
    harbour = draft.with_name("harbour.txt")
    harbour.write_text("Zed Quill dredged the harbour.")
    assert command("add", harbour).code == 0
    for name, support in (("harbour.txt", "none"), ("log.txt", "quoted")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Ada Marsh put out the light at nine.")))
        assert [each["support"] for each in read_json("verify", "-", "--document", name)["statements"]] == [support]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.md"], "nowhere.md"),
        (["empty.md"], "empty"),
        (["draft.md", "--judge"], "none is set: name one, as --model ollama:qwen3"),
        (["draft.md", "--document", "nothing"], "nothing"),
        (["draft.md", "--json", "--markdown"], "give one of the two"),
    ],
)
def test_what_cannot_be_verified_is_refused_with_a_sentence(command, draft, words, says):
    draft.with_name("empty.md").write_text(" \n")
    ran = command("verify", *words)
    assert ran.code != 0
    assert ran.out == ""
    assert says in ran.err


def test_a_model_judges_once(command, draft):
    verdicts = [{"number": 1, "reasoning": "r", "verdict": "contradicted"}]
    with OpenAIServer(lambda _: reply_with(json.dumps({"verdicts": verdicts}))) as server:
        words = ("verify", draft, "--judge", "--model", "openai:test", "--base-url", server.url)
        first, printed = command(*words).out, command(*words).out
    assert len(server.requests) == 1, "the second time its reply is kept"
    assert "boats. [contradicted by 1]" in first
    assert printed.endswith("2 statements: 1 quoted, 0 inferred, 1 contradicted, 0 unsupported\n")
