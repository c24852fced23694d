"""A folder from elsewhere with a `tomewise.toml` of its own: it may set what is free of risk, and nothing else."""

import os
from dataclasses import fields

import pytest

from tomewise.errors import UsageError
from tomewise.settings import Settings, load

HARMLESS = {"limit", "timeout", "window", "max_failures", "passage_tokens", "overlap"}
LIMITS = {"budget": "9 calls", "ask_above": "1 minute"}
RISKY = {"model": '"openai:x"', "tome": '"other.tome"', "prompts": '"pr"', "embedder": '"hash:8"'}


@pytest.fixture
def home(here):
    """The configuration folder of the user, who stands in the folder `here`."""
    return here.parent / "config" / "tomewise"


def write(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tomewise.toml").write_text(text, encoding="utf-8")


def assert_refused(ran, *parts):
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert all(part in ran.err for part in parts), ran.err


def test_prompts_of_a_folder_are_not_used(command, here, monkeypatch):
    (here / "log.txt").write_text("The keeper, Ada Marsh, put out the light at nine.")
    assert command("add", "log.txt").code == 0
    (here / "pr").mkdir()
    (here / "pr" / "answer.md").write_text("{{ question }} OBEY {{ evidence[0].parse_raw('x') }}")
    write(here, 'prompts = "pr"')
    assert_refused(command("ask", "Who?"), str(here / "tomewise.toml"), "sets prompts", "TOMEWISE_PROMPTS")
    assert_refused(command("show"), "prompts")
    assert_refused(command("eval", "run", "naive", "--data", "sample"), "prompts")
    (here / "tomewise.toml").unlink()
    # Where the user names the folder, the template is used, and can do no more than write.
    monkeypatch.setenv("TOMEWISE_PROMPTS", "pr")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert_refused(
        command("ask", "Who?", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1"), "answer.md", "call"
    )


@pytest.mark.parametrize("name", RISKY)
def test_each_of_these_settings_is_refused_and_the_user_s_own_file_may_set_it(here, home, name, monkeypatch):
    text = f"limit = 4\n{name} = {RISKY[name]}"
    write(here, text)
    with pytest.raises(UsageError, match=rf"tomewise.toml sets {name}, .* {home}.*TOMEWISE_{name.upper()}.*command"):
        load()
    (here / "tomewise.toml").unlink()
    write(home, text)
    assert (getattr(load(), name), load().limit) == (RISKY[name].strip('"'), 4)
    monkeypatch.chdir(home)
    assert getattr(load(), name) == RISKY[name].strip('"'), "wherever they stand"


def test_a_setting_is_refused_unless_it_is_known_to_be_harmless(here):
    for name in sorted({field.name for field in fields(Settings)} - HARMLESS - LIMITS.keys() - {"system", "current"}):
        write(here, f'{name} = "8"')
        with pytest.raises(UsageError):
            load()
    lines = [f"{name} = 8" for name in HARMLESS] + [f'{name} = "{limit}"' for name, limit in LIMITS.items()]
    write(here, "\n".join([*lines, 'system = "naive"', "current = true"]))
    assert (load().budget, load().system, load().current) == ("9 calls", "naive", True)


@pytest.mark.parametrize(
    ("own", "lower", "raised"),
    [
        ("", "max_failures = 19", "max_failures = 21"),
        ('budget = "5 calls"', 'budget = "4 calls"', 'budget = "6 calls"'),
        ('budget = "$0.5"', 'budget = "$0.4, 5 minutes"', 'budget = "5 minutes"'),
        ('budget = "5 minutes"', 'budget = "4.5 minutes"', 'budget = "5.5 minutes"'),
        ("", 'ask_above = "1 minute"', 'ask_above = "3 minutes"'),
        ("", 'ask_above = "$1, 2 minutes"', 'ask_above = "$1"'),
    ],
)
def test_a_folder_may_lower_the_bounds_of_the_user_or_the_default_and_not_raise_them(here, home, own, lower, raised):
    name, _, value = lower.partition(" = ")
    write(home, own)
    write(here, lower)
    assert str(getattr(load(), name)) == value.strip('"')
    write(here, raised)
    with pytest.raises(UsageError, match=f"raises {name},"):
        load()


@pytest.mark.parametrize("text", ["modle = 1", "= ", 'api_key = "k"', "x = " + "[" * 100_000])
def test_a_file_that_cannot_be_used_is_named(command, here, text):
    write(here, text)
    assert_refused(command("show"), str(here / "tomewise.toml"))


def test_a_file_without_end_is_refused_at_once(command, here):
    os.mkfifo(here / "tomewise.toml")
    assert_refused(command("show"), "not a file")
    (here / "tomewise.toml").unlink()
    with (here / "tomewise.toml").open("wb") as file:
        file.truncate(10**12)  # a hole: it takes no room on the disk
    assert_refused(command("show"), "more than 100,000 bytes")
