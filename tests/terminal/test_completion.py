"""What the shell completes: names of systems, documents, layers, sessions and settings."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tomewise.terminal.commands import app

LOG = "The keeper, Ada Marsh, put out the light at nine. Nobody asked her why."


@pytest.fixture
def complete(monkeypatch):
    """What bash offers for the last word of a line."""

    def run(line: str) -> list[str]:
        words = line.split(" ")
        environment = {"_TOME_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        ran = CliRunner().invoke(app, [], prog_name="tome", env=environment)
        assert ran.stderr == ""
        return ran.stdout.split()

    return run


@pytest.fixture
def story(command, here):
    (here / "log.txt").write_text(LOG)
    command("-m", "b.tome", "add", "log.txt")
    command("-m", "b.tome", "build", "--system", "associative")
    command("-m", "b.tome", "ask", "--session", "keeper", "Who put out the light?")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tome ask --system rap", ["raptor"]),
        ("tome config set system cosm", ["cosmir"]),
        ("tome config set max_", ["max_failures"]),
        ("tome config unset models.ans", ["models.answer"]),
    ],
)
def test_systems_settings_and_roles(complete, line, offered):
    assert complete(line) == offered


def test_what_the_named_tome_or_that_of_the_settings_holds(complete, story, here, monkeypatch):
    assert complete("tome -m b.tome remove lo") == [], "a part of an id removes nothing"
    assert complete(f"tome -m b.tome remove {here}/l") == [f"{here}/log.txt"]
    assert complete("tome ask -m b.tome --document log") == ["log.txt"]
    assert complete("tome build -m b.tome --again gr") == ["graph:passages-triples"]
    assert complete("tome ask -m b.tome --session k") == ["keeper"]
    assert complete("tome sessions -m b.tome ke") == ["keeper"]
    monkeypatch.setenv("TOMEWISE_TOME", "b.tome")
    assert complete("tome show lo") == ["log.txt"]


@pytest.mark.parametrize("line", ["tome show lo", "tome show -m no/where.tome lo", "tome show -m log.txt lo"])
def test_without_a_tome_there_is_nothing_to_complete(complete, here, line):
    (here / "log.txt").write_text(LOG)
    assert complete(line) == []
    assert [path.name for path in here.iterdir()] == ["log.txt"]
    (here / "tomewise.toml").write_text("limit = ")
    assert complete(line) == [], "settings that cannot be read complete nothing"


def test_a_name_that_a_shell_would_obey_is_not_offered(command, complete, here):
    obeyed = (
        "$(touch made)",
        "`touch made`",
        ";touch made",
        "(e:'touch made':)",
        "*",
        "'",
        "\u202egpj",
        "\x1b]52;c;eA==",
    )
    names = [*(f"x{name}" for name in obeyed), "xylophone"]
    (here / "rows.jsonl").write_text("\n".join(json.dumps({"id": name, "text": LOG + name}) for name in names))
    command("add", "rows.jsonl")
    assert complete("tome show x") == complete("tome remove x") == ["xylophone"]
