"""The command `tome`: what it prints, what it refuses, and what it stores."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.language.openai_server import OpenAIServer, reply_with
from tests.patience import NEVER, SOON
from tests.texts import prose

from tomewise.errors import UnknownName
from tomewise.store.rights import work_alone
from tomewise.store.sql.schema import FORMAT
from tomewise.tome.tome import Tome

LOG = "The keeper, Ada Marsh, put out the light at nine. Nobody asked her why."


@pytest.fixture
def log(here):
    path = here / "log.txt"
    path.write_text(LOG)
    return path


@pytest.fixture
def log_in_tome(command, log):
    assert command("add", log).code == 0
    return log


def assert_one_line(ran, code, *parts):
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert ran.err.startswith("tome: ")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    for part in parts:
        assert part in ran.err


def start(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "tomewise", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


# ---------------------------------------------------------------- the main job


def test_a_graph_of_relations_is_built_and_asked(command, here):
    (here / "log.txt").write_text("Ada Marsh met Tom Hale at Skerry.")
    given = here / "given.jsonl"
    rows = [
        {"kind": "passage", "index": 0, "text": "Ada Marsh met Tom Hale at Skerry."},
        {"kind": "relation", "head": "ADA MARSH", "tail": "TOM HALE", "description": "They wed.", "passages": [0]},
    ]
    given.write_text("\n".join(map(json.dumps, rows)))
    assert command("add", "log.txt").code == 0
    built = command("build", "--system", "associative extraction=relations", "--extractions", given)
    assert (built.code, built.err) == (0, "")
    assert "graph:passages-relations" in built.out
    assert "They wed." in command("export").out
    asked = command("ask", "Who met Tom Hale?", "--system", "associative extraction=relations", "--json")
    assert "Ada Marsh" in json.loads(asked.out)["answer"]


def test_from_a_file_to_a_cited_answer(command, log):
    added = command("add", log)
    assert (added.code, added.err) == (0, "")
    assert "added 1 document: log.txt" in added.out
    asked = command("ask", "Who put out the light?", "--json")
    answer = json.loads(asked.out)
    assert list(answer) == [
        "text", "choice", "resolved", "forced", "supported", "missing", "system", "model", "citations",
        "quotations", "dropped_quotes", "derived_quotes", "usage", "session", "lagging", "kept", "within", "nearest",
        "answer",
    ]  # fmt: skip
    assert "Ada Marsh" in answer["answer"]
    assert (answer["system"], answer["model"], answer["resolved"]) == ("hybrid", "extractive", True)
    cited = answer["citations"][0]
    assert set(cited) == {"document", "passage", "position", "start", "end", "quote", "title", "place"}
    text = command("show", cited["document"]).out.removesuffix("\n")
    assert text == LOG
    assert text[cited["start"] : cited["end"]] == cited["quote"]
    usage = answer["usage"]
    parts = {"calls", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost", "model_seconds"}
    assert set(usage) == parts | {"own_seconds", "depth", "kept", "roles"}
    assert all(set(role) == parts for role in usage["roles"].values())
    assert usage["calls"] == sum(role["calls"] for role in usage["roles"].values()) == 1


def test_the_answer_for_people_names_the_model_and_the_passages(command, log_in_tome):
    ran = command("ask", "Who put out the light?")
    assert "Ada Marsh" in ran.out
    assert "log.txt, part 1, characters" in ran.out
    assert "No model is set: these sentences are nearest to an answer." in ran.out
    assert "tome config set model" in ran.err
    assert "tome config" not in ran.out, "a notice is not part of what is quoted"


def test_a_declined_question_shows_what_is_nearest(command, log_in_tome):
    question = "Who painted the harbour of Sker?"
    ran = command("ask", question)
    assert ran.code == 0
    assert ran.out.startswith("No model is set, and nothing here seems to answer this (nothing here names Sker).")
    assert "“The keeper, Ada Marsh, put out the light" in ran.out
    declined = json.loads(command("ask", question, "--json").out)
    assert (declined["answer"], declined["resolved"], declined["forced"]) == ("", False, False)
    assert (declined["supported"], declined["citations"]) == ("none", [])
    assert [(near["position"], near["text"]) for near in declined["nearest"]] == [(0, LOG)]
    where = {"id", "document", "passage", "position", "start", "end", "title", "place"}
    assert set(declined["nearest"][0]) == {*where, "text"}
    forced = json.loads(command("ask", question, "--json", "--force").out)
    assert (forced["resolved"], forced["forced"], forced["nearest"]) == (True, False, [])


def test_multiple_choice(command, log_in_tome):
    options = ("--option", "the doctor", "--option", "Ada Marsh, the keeper")
    answer = json.loads(command("ask", "Who put out the light?", *options, "--json").out)
    assert (answer["choice"], answer["quotations"][0]["option"]) == ("B", "B")
    assert answer["answer"].startswith("The keeper, Ada Marsh, put out the light")
    assert "→ option B\n" in command("ask", "Who put out the light?", *options).out


@pytest.mark.parametrize("system", ["naive", "hybrid", "full_context"])
def test_every_system_answers_with_a_trace(command, log_in_tome, system):
    answer = json.loads(command("ask", "Who put out the light?", "-s", system, "--trace", "--json").out)
    assert answer["system"] == system
    assert answer["trace"][0]["name"] == "retrieved"
    assert answer["trace"][0]["detail"]["cut"] == 0
    shown = command("ask", "Who put out the light?", "-s", system, "--trace").out
    assert "retrieved" in shown


def test_full_context_says_what_it_cut(command, here, monkeypatch):
    (here / "long.txt").write_text(prose(1, 30_000))
    command("add", "long.txt")
    event = json.loads(command("ask", "Who?", "-s", "full_context", "--trace", "--json").out)["trace"][0]
    assert 0 < event["detail"]["cut"] < event["detail"]["found"]
    assert len(event["detail"]["evidence"]) + event["detail"]["cut"] == event["detail"]["found"]
    out = command("ask", "Who?", "-s", "full_context").out
    assert f"{event['detail']['cut']:,} of {event['detail']['found']:,} passages did not fit" in out


def test_show_has_the_metadata_of_documents(command, here):
    metadata = {"year": 1911, "tags": ["sea", "log"]}
    (here / "corpus.jsonl").write_text(json.dumps({"id": "a", "text": "The tide turned.", **metadata}))
    command("add", "corpus.jsonl")
    assert "tags=sea log, year=1911" in command("show").out
    assert json.loads(command("show", "--json").out)["documents"][0]["metadata"] == metadata
    assert json.loads(command("show", "a", "--json").out)["metadata"] == metadata


def test_show_add_remove_systems_and_export_print_json(command, log_in_tome, here):
    (here / "more.txt").write_text("Tom Hale rowed to the island in May.")
    added = json.loads(command("add", "more.txt", log_in_tome, "--json").out)
    assert added == {
        "added": [str(here / "more.txt")], "replaced": [], "unchanged": [str(log_in_tome)], "removed": [],
        "passages": 1, "skipped": {}, "moved": [], "failed": {}, "lagging": None,
    }  # fmt: skip
    shown = json.loads(command("show", "--json").out)
    assert [record["id"] for record in shown["documents"]] == [str(log_in_tome), str(here / "more.txt")]
    assert shown["embedder"] == "hash"
    assert json.loads(command("show", "more.txt", "--json").out)["text"].startswith("Tom Hale")
    assert all(json.loads(line)["kind"] for line in command("export").out.splitlines())
    removed = json.loads(command("remove", "more.txt", "--json").out)
    more = str(here / "more.txt")
    assert removed == {"document": more, "passages": 1, "derived": 0, "documents": [more]}
    systems = json.loads(command("systems", "--json").out)
    assert {"naive", "hybrid", "full_context"} <= {row["name"] for row in systems}
    assert [row["name"] for row in systems if row["default"]] == ["hybrid"]
    rows = {row["name"]: row for row in systems}
    assert rows["hipporag2"]["ablations"] == ["without recognition"]
    assert "recognition of facts by a model" in rows["comorag"]["deviations"]
    assert rows["hybrid"]["ablations"] == ["without rewriting", "without comparisons"]
    assert rows["hybrid"]["deviations"] == ""
    assert "build: 1 a passage · question: 1 + 1 calls" in command("systems").out
    shown = command("systems", "hipporag2").out
    assert "without recognition" in shown
    assert "Deviations: only the best `seeded` passages are seeds" in shown


def test_build_of_a_system_without_layers(command, log_in_tome):
    assert json.loads(command("build", "--json").out)["layers"] == []
    assert "ask right away" in command("build").out
    assert json.loads(command("build", "--estimate", "--json").out)["total"]["calls"] == 0


@pytest.mark.parametrize("option", ["--extractions", "--again"])
def test_an_estimate_is_not_of_a_build_with_other_input(command, log_in_tome, option):
    refused = command("build", "--system", "hgmem", "--estimate", option, "log.txt")
    assert_one_line(refused, 2, f"does not count what {option} changes", "leave one of the two out")


def test_a_system_with_settings_has_its_own_layers_and_name(command, log_in_tome):
    assert command("build", "--system", "comorag").code == 0
    named = ("--system", "comorag stride=1 levels=2 cycles=0")
    assert_one_line(
        command("ask", "Who put out the light?", *named), 4, "episodes:stride=1,levels=2 (1 to take in)", "'comorag"
    )
    built = json.loads(command("build", *named, "--json").out)
    assert built["layers"][-1]["layer"] == "episodes:stride=1,levels=2"
    assert json.loads(command("build", *named, "--estimate", "--json").out)["total"]["calls"] == 0
    answer = json.loads(command("ask", "Who put out the light?", *named, "--json").out)
    assert (answer["system"], answer["usage"]["calls"]) == (named[1], 1)
    ablated = json.loads(command("ask", "Who?", "--system", "comorag:without both", "--json", "--trace").out)
    assert [event["name"] for event in ablated["trace"]].count("tried") == 1
    assert_one_line(command("ask", "Who?", "--system", "comorag:all"), 2, "names 7 systems")


@pytest.mark.parametrize("place", ["before", "behind"])
def test_the_option_for_the_memory_comes_before_or_after_the_subcommand(command, log, here, place):
    def on(name, *rest):
        return command("-m", name, *rest) if place == "before" else command(*rest, "-m", name)

    assert on("b.tome", "add", log).code == 0
    assert (here / "b.tome").exists()
    assert not (here / "memory.tome").exists()
    assert "Ada" in on("b.tome", "ask", "Who put out the light?").out


def test_standard_input(here):
    arguments = [sys.executable, "-m", "tomewise", "add", "-", "--embedder", "hash", "--json"]
    ran = subprocess.run(arguments, input=LOG, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["added"][0].startswith("stdin-")
    nothing = subprocess.run(arguments, input="", capture_output=True, text=True)
    assert nothing.returncode == 3
    assert "standard input is empty" in nothing.stderr


def test_help_and_version_need_no_arguments(command):
    assert command("--version").out.startswith("tome 0.")
    for arguments in ((), ("--help",), ("-h",)):
        ran = command(*arguments)
        assert ran.code == 0
        assert "Usage: tome" in ran.out


def test_markup_and_control_characters_of_documents_have_no_effect(command, here):
    title = "[red]An [/] odd [bold]title[/bold] :smile: \\"
    text = "The [link=x]keeper[/link], Ada [Marsh], put out the light at nine \x1b[31m. Nobody asked [/] why. \\"
    (here / "[x].jsonl").write_text(json.dumps({"id": "[/b]", "title": title, "text": text}))
    assert "added 1 document: b]" in command("add", "[x].jsonl").out
    assert title in command("show").out
    for arguments in (("ask", "Who put out the light?"), ("ask", "Who put out the light?", "--trace")):
        out = command(*arguments).out
        assert "Ada [Marsh]" in out
        assert title in out
        assert "\x1b" not in out
    assert "removed [/b]" in command("remove", "[/b]").out


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("empty.txt", b"", "empty.txt is empty"),
        ("blank.txt", b" \n\t ", "white space"),
        ("program.txt", bytes(range(256)) * 20, "program.txt is binary"),
        ("broken.txt", "Ein Haus für müde Füchse, schön. ".encode() * 9 + b"\xff\xfe", "save it again as UTF-8"),
        ("rows.jsonl", b'{"text": "fine"}\n{"title": "no text"}\n', "line 2"),
        ("rows.jsonl", b"not JSON\n", "line 1"),
    ],
)
def test_a_source_that_cannot_be_read_is_named_and_nothing_is_lost(command, log_in_tome, here, name, content, part):
    (here / name).write_bytes(content)
    assert_one_line(command("add", here / name), 3, part)
    assert str(log_in_tome) in command("show").out
    with Tome.open("memory.tome") as tome, pytest.raises(Exception, match=part) as raised:
        tome.add(here / name)
    assert raised.value.exit_code == 3


def test_a_missing_path(command, here):
    assert_one_line(command("add", "nope.txt"), 3, "nope.txt does not exist")


def test_what_was_read_before_a_source_that_cannot_be_read_is_kept(command, log):
    ran = command("add", log, "nope.txt")
    assert (ran.code, "nope.txt does not exist" in ran.err) == (3, True)
    assert "unchanged 1 document" in command("add", log).out


def test_undecodable_bytes_in_a_legacy_encoding_are_understood(command, here):
    (here / "alt.txt").write_bytes("Die Küche war leer, und die Tür stand offen. Überall Möbel.".encode("cp1252"))
    assert command("add", "alt.txt").code == 0
    assert "Küche" in command("show", "alt.txt").out


def test_the_same_file_twice_is_recognised(command, log_in_tome):
    before = command("export").out
    assert "unchanged 1 document: log.txt" in command("add", log_in_tome).out
    assert "0 new passages" in command("add", log_in_tome, log_in_tome).out
    assert command("export").out == before


def test_a_changed_file_replaces_and_says_so(command, log_in_tome):
    log_in_tome.write_text(LOG.replace("Ada Marsh", "Ida Poe"))
    assert "replaced 1 document: log.txt" in command("add", log_in_tome).out
    assert "Ida Poe" in command("ask", "Who put out the light?").out
    assert command("show", "log.txt").out.count("Ada Marsh") == 0


def test_a_folder_reports_what_it_passed_over(command, here, log):
    folder = here / "notes"
    folder.mkdir()
    (folder / "good.md").write_text("# Notes\n\nThe tide turned at nine.")
    (folder / "[bad].txt").write_bytes(b"\0\1\2")
    ran = command("add", "notes")
    assert ran.code == 0
    assert "passed over [bad].txt" in ran.out
    assert "binary" in ran.out


@pytest.mark.parametrize("words", [("ask", "Who?"), ("show",), ("add", "log.txt"), ("remove", "log.txt")])
def test_a_file_that_is_not_a_tome(command, log, here, words):
    (here / "memory.tome").write_text("I am a text")
    assert_one_line(command(*words), 4, "memory.tome", "-m")
    assert (here / "memory.tome").read_text() == "I am a text"


def test_an_sqlite_file_that_is_no_tome(command, log, here):
    with closing(sqlite3.connect(here / "memory.tome")) as connection:
        connection.execute("CREATE TABLE mine (x)")
    assert_one_line(command("add", log), 4, "not a tome")
    assert_one_line(command("ask", "Who?"), 4, "not a tome")


def test_a_folder_is_not_a_tome(command, log, here):
    (here / "memory.tome").mkdir()
    assert_one_line(command("add", log), 4, "folder")


def test_a_tome_from_a_newer_version(command, log_in_tome, here):
    with closing(sqlite3.connect(here / "memory.tome")) as file:
        file.execute(f"PRAGMA user_version = {FORMAT + 7}")
    for words in (("ask", "Who?"), ("add", log_in_tome), ("show",)):
        assert_one_line(command(*words), 4, "newer", str(FORMAT + 7), "upgrade")


def test_a_damaged_tome(command, log_in_tome, here):
    raw = bytearray((here / "memory.tome").read_bytes())
    raw[2000:] = os.urandom(len(raw) - 2000)
    (here / "memory.tome").write_bytes(raw)
    assert_one_line(command("ask", "Who put out the light?"), 4, "memory.tome")


def test_a_locked_tome_can_be_asked_and_not_written(command, log_in_tome, here, monkeypatch):
    monkeypatch.setattr("tomewise.store.sql.database.BUSY_SECONDS", 0.1)
    (here / "more.txt").write_text("Tom Hale rowed to the island.")
    with closing(sqlite3.connect(here / "memory.tome", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert_one_line(command("add", "more.txt"), 4, "written by another program", "try again")
        assert_one_line(command("remove", log_in_tome), 4, "written by another program")
        asked = command("ask", "Who put out the light?", "--json")
        assert "Ada Marsh" in json.loads(asked.out)["answer"]
        assert "trace" in asked.err
    assert command("add", "more.txt").code == 0


def test_a_second_writer_gets_an_error_at_once(command, log_in_tome):
    with Tome.open("memory.tome") as tome, work_alone(tome.store, "build"):
        assert_one_line(command("add", log_in_tome), 4, "this program has another build under way")
        second_process = start("add", log_in_tome)
        assert "written by another program: try to add again" in second_process.communicate(timeout=SOON)[1]
        assert second_process.returncode == 4


def test_another_embedder_is_refused_by_name(command, log_in_tome):
    assert_one_line(command("add", log_in_tome, "--embedder", "hash:64"), 4, "made with embedder hash, not hash:64")
    assert_one_line(command("add", log_in_tome, "--passage-tokens", "99"), 4, "passage tokens 256, not 99")
    assert_one_line(command("add", log_in_tome, "--overlap", "9"), 4, "overlap 0, not 9")


def test_an_unknown_embedder_offers_the_nearest_and_fixes_nothing(command, log):
    assert_one_line(command("add", log, "--embedder", "bundeld"), 2, "'bundled'")
    assert command("add", log, "--embedder", "hash:64").code == 0


def test_an_add_that_failed_fixes_no_settings(command, log):
    assert_one_line(command("add", "nope.txt", "--embedder", "hash:32", "--passage-tokens", "60"), 3)
    assert command("add", log, "--embedder", "hash:64").code == 0
    assert json.loads(command("show", "--json").out)["embedder"] == "hash:64"


@pytest.mark.parametrize("size", [8, 9000])
def test_passages_of_impossible_sizes(command, log, size):
    assert_one_line(command("add", log, "--passage-tokens", size), 2, str(size))


@pytest.mark.parametrize("words", [("ask", "Who?"), ("build",)])
def test_an_unknown_system_offers_the_nearest(command, log_in_tome, words):
    assert_one_line(command(*words, "--system", "hybird"), 2, "did you mean 'hybrid'?")


def test_no_key_for_the_model_names_the_variable(command, log_in_tome):
    assert_one_line(command("ask", "Who?", "--model", "openai:gpt-4o-mini"), 6, "OPENAI_API_KEY")
    assert_one_line(command("ask", "Who?", "--model", "gpt-4o-mini"), 2, "provider:model")


def test_a_model_server_that_is_not_there(command, log_in_tome):
    ran = command("ask", "Who?", "--model", "openai:x", "--base-url", "ftp://nowhere")
    assert_one_line(ran, 2, "ftp://nowhere")


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question(command, log_in_tome, question):
    assert_one_line(command("ask", question), 2, "the question is empty")


@pytest.mark.parametrize("words", [["Who\udcff?"], ["Who?", "--instructions", "\udcff"]])
def test_a_question_of_broken_bytes(command, log_in_tome, words):
    assert_one_line(command("ask", *words), 2, r"'Who\udcff?'" if len(words) == 1 else r"'\udcff'")


@pytest.mark.parametrize("options", [["one"], ["one", " "], [str(number) for number in range(27)]])
def test_options_that_do_not_make_a_choice(command, log_in_tome, options):
    words = [word for option in options for word in ("--option", option)]
    assert_one_line(command("ask", "Which?", *words), 2, "option")


def test_asking_where_nothing_is(command, here):
    assert_one_line(command("ask", "Who?"), 4, "found no tome", "tome -m")
    assert not (here / "memory.tome").exists()
    Tome.open("memory.tome", embedder="hash").close()
    assert_one_line(command("ask", "Who?"), 4, "holds no document", "tome add")


def test_names_that_fit_no_document_or_several(command, log_in_tome, here):
    for folder in ("a", "b"):
        (here / folder).mkdir()
        (here / folder / "same.txt").write_text(prose(ord(folder), 3))
        command("add", here / folder / "same.txt")
    assert_one_line(command("remove", "same.txt"), 2, "did you mean 'a/same.txt' or 'b/same.txt'?")
    assert_one_line(command("show", "same.txt"), 2, "fits 2 documents", "whole id")
    assert_one_line(command("remove", "nobody"), 2, "no document 'nobody'", "tome show")
    assert_one_line(command("show", "nobody"), 2, "no document 'nobody'")
    assert_one_line(command("remove", ""), 2, "empty")
    assert command("remove", "a/same.txt").code == 0
    assert command("remove", "b/../b/same.txt").code == 0
    with Tome.open("memory.tome") as tome, pytest.raises(UnknownName):
        tome.remove("same.txt")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("nosuch",), "nosuch"),
        (("ask",), "question"),
        (("ask", "x", "--nosuch"), "--nosuch"),
        (("add",), "PATH"),
        (("ask", "x", "--max-calls", "-1"), "--max-calls"),
        (("log", "many"), "number"),
    ],
)
def test_a_call_that_is_wrong(command, words, part):
    assert_one_line(command(*words, embedder=None), 2, part, "--help")


def test_a_limit_that_is_used_up(command, log_in_tome):
    assert_one_line(command("ask", "Who?", "--max-calls", "0"), 7, "limit of 0 calls")


@pytest.mark.parametrize("words", [("--debug", "ask", ""), ("ask", "", "--debug")])
def test_debug_shows_the_traceback_and_keeps_the_code(command, log_in_tome, words):
    ran = command(*words)
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert ran.err.splitlines()[-1].startswith("tome: the question is empty")


def test_a_bug_of_ours_is_one_line_too(command, log_in_tome, monkeypatch):
    def raise_bug(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("tomewise.systems.registry.Variant.wire", raise_bug)
    assert_one_line(command("ask", "Who?"), 1, "ZeroDivisionError: oops", "--debug")
    ran = command("--debug", "ask", "Who?")
    assert ran.code == 1
    assert "Traceback" in ran.err


def test_a_closed_pipe_is_not_an_error(command, here):
    (here / "long.txt").write_text(prose(3, 20_000))
    command("add", "long.txt")
    export = f"{sys.executable} -m tomewise export | head -1"
    ran = subprocess.run(export, shell=True, capture_output=True, text=True)
    assert ran.stdout.count("\n") == 1
    assert ran.stderr == ""


# ---------------------------------------------------------------- a line of 20 MB, and Ctrl-C


def test_one_line_of_20_mb_without_a_space(command, here):
    (here / "line.txt").write_text("abcdefghij" * 2_000_000)
    assert json.loads(command("add", "line.txt", "--json").out)["passages"] > 5000


def interrupt(process):
    """Interrupt the process, which ends soon; return its standard error."""
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=SOON)[1]


@pytest.mark.parametrize("after", [0.0, 0.7])
def test_ctrl_c_ends_an_add_and_keeps_what_was_finished(command, here, after):
    folder = here / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text(prose(1))
    (folder / "b.txt").write_text("abcdefghij " * 4_000_000)
    with Tome.open("memory.tome", embedder="hash") as tome:
        process = start("add", "texts")
        while not tome.documents():
            time.sleep(0.01)
    time.sleep(after)
    err = interrupt(process)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert "a.txt" in command("show").out
    assert "b.txt" not in command("show").out


def test_ctrl_c_ends_an_ask_of_a_model_that_hangs(log_in_tome):
    with OpenAIServer(lambda _: reply_with("{}", delay=NEVER)) as server:
        process = start("ask", "Who?", "--model", "openai:x", "--base-url", server.url, OPENAI_API_KEY="k")
        assert server.arrived.wait(SOON)
        err = interrupt(process)
    assert process.returncode == 130
    assert err == "tome: interrupted; what was finished is kept\n"


def test_a_real_server_answers_with_what_it_read(command, log_in_tome, monkeypatch):
    quotes = [{"label": "E1", "quote": "put out the light"}, {"label": "E1", "quote": "not in the text"}]
    reply = reply_with(json.dumps({"answer": "Ada", "quotes": quotes}))
    with OpenAIServer(lambda _: reply) as server:
        words = ("ask", "Who?", "--model", "openai:x", "--base-url", server.url)
        answer = json.loads(command(*words, "--json").out)
        out = command(*words).out
    assert answer["answer"] == "Ada"
    assert [cited["quote"] for cited in answer["citations"]] == ["put out the light"]
    assert answer["dropped_quotes"] == 1
    assert (answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]) == (100, 20)
    assert "1 quotation(s) of the model are in no passage" in out
    assert Path("memory.tome").exists()
