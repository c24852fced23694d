"""`tome config`: every setting with its value and its origin; `set` and `unset` change one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tomewise.settings import Settings, load


@pytest.fixture
def own(here, tmp_path, monkeypatch) -> Path:
    """The user's file."""
    monkeypatch.delenv("TOMEWISE_SYSTEM", raising=False)
    path = tmp_path / "config" / "tomewise" / "tomewise.toml"
    path.parent.mkdir(parents=True)
    return path


def read_rows(command, *words):
    rows = json.loads(command(*words, "config", "--json").out)["settings"]
    return {row["name"]: (row["value"], row["origin"]) for row in rows}


def test_every_setting_is_listed_with_its_origin(command, here, own, monkeypatch):
    assert set(read_rows(command)) == set(Settings.__dataclass_fields__)
    assert command("config", "set", "timeout", "30").code == 0
    assert command("config", "set", "models.answer", "openai:gpt-4o").code == 0
    (here / "tomewise.toml").write_text("limit = 4\n")
    monkeypatch.setenv("TOMEWISE_SYSTEM", "naive")
    rows = read_rows(command, "-m", "other.tome")
    assert rows["tome"] == ("other.tome", "option --tome")
    assert rows["system"] == ("naive", "TOMEWISE_SYSTEM")
    assert rows["limit"] == (4, str(here / "tomewise.toml"))
    assert rows["timeout"] == (30.0, str(own))
    assert rows["models.answer"] == ("openai:gpt-4o", str(own))
    assert rows["model"] == ("extractive", "default")
    shown = command("config").out
    assert "TOMEWISE_SYSTEM" in shown
    assert "30" in shown
    assert "TOMEWISE_SYSTEM comes first and says naive" in command("config", "set", "system", "hybrid").out
    monkeypatch.setenv("TOMEWISE_MODEL", "extractive")
    assert read_rows(command)["models"] == (None, "default"), "a model from a nearer place replaces those by role"
    assert load().models == {}


def test_set_keeps_the_comments_of_the_file_and_unset_takes_a_value_back(command, own):
    own.write_text('# mine\nlimit = 2  # slow machine\n\n[models]  # by role\nprobe = "openai:a"  # cheap\n')
    assert command("config", "set", "system", "naive").code == 0
    assert command("config", "set", "models.answer", "openai:gpt-4o").code == 0
    text = own.read_text()
    assert "# mine\nlimit = 2  # slow machine" in text
    assert '[models]  # by role\nprobe = "openai:a"  # cheap' in text
    assert (load().system, load().models) == ("naive", {"probe": "openai:a", "answer": "openai:gpt-4o"})
    assert command("config", "unset", "models.probe").code == 0
    assert command("config", "unset", "models.answer").code == 0
    assert command("config", "unset", "system").code == 0
    assert load() == Settings(limit=2)
    assert "models" not in own.read_text()


def test_models_that_are_written_as_one_text_are_changed_too(command, own):
    own.write_text('models = "answer=openai:a probe=openai:b"\n')
    assert command("config", "set", "models.gist", "openai:c").code == 0
    assert command("config", "unset", "models.answer").code == 0
    assert load().models == {"probe": "openai:b", "gist": "openai:c"}
    assert command("config", "set", "models", "answer=openai:a probe=openai:b").code == 0
    assert load().models == {"answer": "openai:a", "probe": "openai:b"}


def test_what_is_not_there_cannot_be_unset(command, own):
    own.write_text("limit = 2\n")
    for name in ("limit.x", "models.answer", "models.", "models", "x.y", ""):
        ran = command("config", "unset", name)
        assert (ran.code, own.read_text()) == (2, "limit = 2\n")
        assert "does not set" in ran.err


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("limt", "3", "did you mean 'limit'?"),
        ("max_token", "3", "did you mean 'max_tokens'?"),
        ("limit", "0", "limit must be a whole number from 1 up"),
        ("timeout", "soon", "timeout must be a number"),
        ("system", "combrag", "did you mean 'comorag'?"),
        ("system", "comorag cyles=2", "cycles"),
        ("model", "gpt-4o-mini", "did you mean 'openai:gpt-4o-mini'?"),
        ("model", "openai/gpt-4o", "did you mean 'openai:gpt-4o'?"),
        ("model", "opnai:gpt-4o", "did you mean 'openai'?"),
        ("models.answer", "antropic:claude", "did you mean 'anthropic'?"),
        ("models.anwser", "openai:gpt-4o", "did you mean 'answer'?"),
        ("models.answer", "gpt-4o-mini", "did you mean 'openai:gpt-4o-mini'?"),
        ("models", "openai:gpt-4o", "models must be a table of roles"),
        ("embedder", "bundeld", "did you mean 'bundled'?"),
        ("base_url", "localhost:8000", "is not the address of a model server"),
        ("prompts", "nowhere", "does not exist"),
        ("tome", " ", "tome has no value"),
    ],
)
def test_a_bad_value_is_refused_and_nothing_is_written(command, own, name, value, part):
    ran = command("config", "set", name, value)
    assert (ran.code, ran.out) == (2, "")
    assert part in ran.err
    assert not own.exists()


def test_a_misspelt_prompt_file_is_named_with_the_nearest_role(command, here, own):
    (here / "prompts").mkdir()
    (here / "prompts" / "anwser.md").write_text("hello")
    assert "did you mean 'answer'?" in command("config", "set", "prompts", "prompts").err
    (here / "prompts" / "anwser.md").rename(here / "prompts" / "answer.md")
    assert command("config", "set", "prompts", "prompts").code == 0
    assert load().prompts == str(here / "prompts"), "the user's file counts in every folder"


def test_keys_are_refused_and_never_printed(command, own):
    refused = command("config", "set", "OPENAI_API_KEY", "sk-abcdefghijklmnop1")
    assert refused.code == 2
    assert "keys stand in the environment alone" in refused.err
    set_it = command("config", "set", "base_url", "https://user:hunter2hunter2@example.org/v1")
    listed = command("config")
    as_json = command("config", "--json")
    texts = [ran.out + ran.err for ran in (refused, set_it, listed, as_json)]
    assert not any("hunter2" in text or "sk-abc" in text for text in texts)
    assert "example.org/v1" in listed.out


def test_unset_names_the_nearest_and_removes_what_is_no_setting(command, own):
    own.write_text("limt = 3\ntimeout = 3\n")
    assert "did you mean 'timeout'?" in command("config", "unset", "timeuot").err
    assert "'limt' is not a setting" in command("config").err
    assert command("config", "unset", "limt").code == 0
    assert load().timeout == 3
    own.write_text('"a.b" = 1\ntimeout = 3\n')
    assert command("config", "unset", "a.b").code == 0
    assert own.read_text() == "timeout = 3\n"


def test_a_file_that_cannot_be_read_is_left_as_it_is(command, own):
    own.write_text("limit = ")
    ran = command("config", "set", "limit", "3")
    assert ran.code == 2
    assert "cannot be read" in ran.err
    assert own.read_text() == "limit = "


def test_what_you_set_in_a_folder_is_trusted_there(command, here, own):
    ran = command("config", "set", "--here", "system", "naive")
    assert f"trusted {here}" in ran.out
    assert load().system == "naive"
    free = command("config", "set", "--here", "limit", "2", "--json")
    file = str(here / "tomewise.toml")
    assert json.loads(free.out) == {"setting": "limit", "value": 2, "file": file, "trusted": True}
    command("config", "unset", "--here", "system")
    assert load() == Settings(limit=2)


def test_a_folder_that_was_not_trusted_stays_so(command, here, own):
    text = 'model = "openai:gpt-4o"\n'
    (here / "tomewise.toml").write_text(text)
    refused = command("config", "set", "--here", "system", "naive")
    assert refused.code == 2
    assert "tome trust" in refused.err
    assert (here / "tomewise.toml").read_text() == text
    listed = json.loads(command("config", "--json").out)
    assert "tome trust" in listed["refused"][0]
    assert {"name": "model", "value": "extractive", "origin": "default"} in listed["settings"]
    assert "not used:" in command("config").out
    assert command("config", "unset", "--here", "model").code == 0, "to delete a line needs no trust"
    assert command("trust", "--list").out == ""


@pytest.mark.parametrize("name", ["base_url", "embedder_base_url"])
def test_a_folder_may_not_say_where_keys_are_sent(command, here, own, name):
    ran = command("config", "set", "--here", name, "http://localhost:8000/v1")
    assert ran.code == 2
    assert "your key would be sent there" in ran.err
    assert not (here / "tomewise.toml").exists()


def test_the_user_file_may_be_a_link(command, own, tmp_path):
    kept = tmp_path / "dotfiles.toml"
    kept.write_text("limit = 2\n")
    own.symlink_to(kept)
    command("config", "set", "limit", "5")
    assert own.is_symlink()
    assert "limit = 5" in kept.read_text()


def test_the_default_system_answers_builds_and_searches(command, here, own):
    (here / "a.txt").write_text("The keeper, Ada Marsh, put out the light at nine.")
    command("add", "a.txt")
    command("config", "set", "system", "naive limit=1")
    assert json.loads(command("ask", "Who put out the light?", "--json").out)["system"] == "naive limit=1"
    assert len(json.loads(command("search", "the light", "--json").out)) == 1
    assert "naive limit=1 needs no layers" in command("build").out
    rows = {row["name"]: row["default"] for row in json.loads(command("systems", "--json").out)}
    assert [name for name, default in rows.items() if default] == ["naive"]
    assert json.loads(command("ask", "Who?", "--system", "hybrid", "--json").out)["system"] == "hybrid"
    begun = command("ask", "--session", "s", "Who put out the light?", "--json")
    assert json.loads(begun.out)["system"] == "naive limit=1"
