"""The README is true: its Python runs, its commands run, and every command and option it names exists and has help."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys

import pytest
import typer
from tests.language.openai_server import OpenAIServer, reply_with
from tests.texts import REPOSITORY, prose

from tomewise import errors
from tomewise.embedding.hash import HashEmbedder
from tomewise.settings import Settings
from tomewise.systems.registry import DEFAULT, SYSTEMS
from tomewise.terminal import commands, program

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(commands.app).commands


def every_command(commands):
    """All commands, those of groups included."""
    for command in commands.values():
        yield command
        yield from every_command(getattr(command, "commands", {}))


def list_names(words):
    """The command that a line names, and what follows."""
    command, rest = COMMANDS[words[0]], words[1:]
    while rest and hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


ROW = re.compile(r"^\| `([^|]+)` ?(?:\(default\) )?\|", re.MULTILINE)


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def shell_lines():
    """The words of every command of the README in console blocks and indented lines, prompts and comments apart."""
    indented = re.findall(r"^    ((?:tome|make|pip) .*)", README, re.MULTILINE)
    typed = [line.removeprefix("$ ") for line in "".join(blocks("console")).splitlines() if line.startswith("$ ")]
    for line in [*typed, *indented]:
        for part in line.split(" && "):
            yield shlex.split(part, comments=True)


def lines():
    """The arguments of every command line of `tome`."""
    return [words[1:] for words in shell_lines() if words[0] == "tome"]


def section(title):
    return README.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.fixture(autouse=True)
def files(here, monkeypatch):
    """What the README's examples read, and the weightless embedder in place of the bundled one."""
    (here / "novel.txt").write_text(prose(1) + " Ada Marsh forged the letter. The keeper put out the light.")
    (here / "notes").mkdir()
    (here / "notes" / "one.md").write_text("# One\n\nThe doctor was away in May.")
    (here / "corpus.jsonl").write_text(json.dumps({"id": "r1", "title": "A row", "text": "The widow kept the coin."}))
    monkeypatch.setattr("tomewise.embedding.bundled.BundledMiniLM", lambda: HashEmbedder(384))
    return here


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python(number, capsys):
    exec(compile(blocks("python")[number], f"README.md, Python {number}", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


# What other tests run: the first word of a line, or the first word after `tome`.
RUN_ELSEWHERE = {
    "pip": "tests/newcomer installs and runs the first block",
    "make": ".ci/run runs the targets",
    "export": "sets a variable, as the test of lines with a model does; of `tome`, tests/terminal/test_moving.py",
    "import": "tests/terminal/test_moving.py",
    "reembed": "tests/tome/test_reembedding.py",
    "weights": "tests/newcomer and tests/embedding/test_weights.py",
    "serve": "tests/server/served.py starts it",
    "eval": "test_lines_of_experiments_run",
}


def test_every_line_is_run_by_a_test():
    assert {words[0] for words in shell_lines()} <= {"tome", *RUN_ELSEWHERE}
    assert len(lines()) > 30


def test_console_lines_run(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Who forged the letter?\n"))  # for `tome chat`
    ran = []
    for words in lines():
        if "--model" in words or words[0] in RUN_ELSEWHERE:
            continue
        assert program.run(words) == 0, (words, capsys.readouterr().err)
        ran.append(words[0])
    assert {"add", "ask", "build", "chat", "clean", "log", "mcp", "sessions", "systems"} <= set(ran)


def test_lines_with_a_model_run(capsys, monkeypatch):
    reply = json.dumps({"reasoning": "It says so.", "answer": "Because of the storm", "quotes": []})
    named = [words for words in lines() if "--model" in words]
    assert len(named) >= 3
    assert program.run(["add", "novel.txt"]) == 0
    with OpenAIServer(lambda _: reply_with(reply)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "a-key-for-this-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for words in named:
            local = [server.url if word.startswith("http://localhost") else word for word in words]
            capsys.readouterr()
            assert program.run([*local, "--fresh"]) == 0, (words, capsys.readouterr().err)
            assert "Because of the storm" in capsys.readouterr().out


def test_lines_of_experiments_run(capsys, here):
    experiments = [words for words in lines() if words[0] == "eval"]
    folder = here.parent / "shared" / "data" / "musique"  # which the README names from beside it
    folder.mkdir(parents=True)
    rows = [{"id": f"p{number}", "title": f"Part {number}", "text": prose(number, 6)} for number in range(4)]
    question = {"id": "i1", "question": "Who forged it?", "answers": ["Ada"], "supporting": ["p1"], "type": "bridge"}
    (folder / "corpus.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (folder / "questions.jsonl").write_text(json.dumps(question))
    for words in experiments:
        assert program.run(words) == 0, (words, capsys.readouterr().err)
    assert [words[1] for words in experiments] == ["run", "run", "report", "compare"]
    assert list((here / "plots").iterdir())


def test_every_line_names_commands_and_options_that_exist():
    for words in lines():
        command, rest = list_names(words)
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("-") and len(word) > 1} <= known, words


def test_every_command_and_option_in_the_text_exists():
    named = set(re.findall(r"`tome ([a-z]+)", README))
    assert named <= set(COMMANDS)
    common = {"--debug", "--version", "--help"}
    everything = common | {
        option
        for command in every_command(COMMANDS)
        for part in command.params
        for option in (*part.opts, *part.secondary_opts)
    }
    assert set(re.findall(r"`(--?[a-z][a-z-]*)", README)) <= everything


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_has_help(name):
    for command in every_command({name: COMMANDS[name]}):
        assert command.help
        assert command.help.strip().endswith((".", ")"))
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"tome {name}: {parameter.name} has no help"
    assert program.run([name, "--help"]) == 0


def test_the_table_of_systems_names_what_there_is():
    named = set(ROW.findall(section("Systems")))
    assert named == set(SYSTEMS)
    assert f"`{DEFAULT}` (default)" in section("Systems")


def test_the_table_of_settings_names_what_there_is():
    named = [name for row in ROW.findall(section("Settings")) for name in row.replace("`", "").split(", ")]
    assert sorted(named) == sorted(Settings.__dataclass_fields__)
    defaults = Settings()
    assert f"{defaults.limit}, {defaults.timeout:g}" in section("Settings")


def test_the_keys_of_an_answer_are_those_that_are_printed(capsys):
    assert program.run(["add", "novel.txt"]) == 0
    capsys.readouterr()
    assert program.run(["ask", "Who forged the letter?", "--json", "--trace"]) == 0
    answer = json.loads(capsys.readouterr().out)
    table = section("What `tome ask --json` prints")
    for key in (*answer, *answer["citations"][0], *answer["usage"]):
        assert f"`{key}`" in table, key
    top = [name for row in ROW.findall(table) for name in row.replace("`", "").split(", ")]
    assert set(top) == set(answer) - {"answer", "events", "trace"}


def test_exit_codes():
    text = " ".join(section("What `tome ask --json` prints").split())
    for error, words in (
        (errors.UsageError, "for a request that is wrong"),
        (errors.ReadingError, "for a source that cannot be read"),
        (errors.StoreError, "for the tome"),
        (errors.MissingDependency, "for something not installed"),
        (errors.ModelError, "for the model"),
        (errors.BudgetExceeded, "for a budget that is used up"),
    ):
        assert f"{error.exit_code} {words}" in text
    assert f"{program.INTERRUPTED} after Ctrl-C" in text


def test_extras_that_are_named_exist():
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    for extra in re.findall(r"tomewise\[([a-z-]+)\]", README):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def test_make_targets_that_are_named_exist():
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^    )make ([a-z]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
