"""`tome config`: every setting with its value and its origin; `set` and `unset` change one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tomewise.language.price_list import find_price, read_own_prices
from tomewise.language.spec import ModelSpec
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
    assert set(read_rows(command)) == set(Settings.__dataclass_fields__) - {"api_key", "on"}
    assert command("config", "set", "models.answer", "openai:gpt-4o").code == 0
    (here / "tomewise.toml").write_text("limit = 4\n")
    monkeypatch.setenv("TOMEWISE_SYSTEM", "naive")
    rows = read_rows(command, "-m", "other.tome")
    assert rows["tome"] == ("other.tome", "option --tome")
    assert rows["system"] == ("naive", "TOMEWISE_SYSTEM")
    assert rows["limit"] == (4, str(here / "tomewise.toml"))
    assert rows["models.answer"] == ("openai:gpt-4o", str(own))
    assert rows["model"] == ("extractive", "default")
    assert "TOMEWISE_SYSTEM" in command("config").out
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


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("limt", "3", "did you mean 'limit'?"),
        ("system", "combrag", "did you mean 'comorag'?"),
        ("model", "gpt-4o-mini", "did you mean 'openai:gpt-4o-mini'?"),
        ("models.anwser", "openai:gpt-4o", "did you mean 'answer'?"),
        ("base_url", "localhost:8000", "is not the address of a model server"),
    ],
)
def test_a_bad_value_is_refused_and_nothing_is_written(command, own, name, value, part):
    ran = command("config", "set", name, value)
    assert (ran.code, ran.out) == (2, "")
    assert part in ran.err
    assert not own.exists()


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


def test_a_file_that_cannot_be_read_is_left_as_it_is(command, own):
    own.write_text("limit = ")
    ran = command("config", "set", "limit", "3")
    assert ran.code == 2
    assert "cannot be read" in ran.err
    assert own.read_text() == "limit = "


def test_a_folder_is_given_what_is_free_of_risk(command, here, own):
    set_it = command("config", "set", "--here", "limit", "2", "--json")
    file = str(here / "tomewise.toml")
    assert json.loads(set_it.out) == {"setting": "limit", "value": 2, "file": file}
    assert command("config", "set", "--here", "system", "naive").code == 0
    assert (load().system, load().limit) == ("naive", 2)
    command("config", "unset", "--here", "system")
    assert load() == Settings(limit=2)


def test_a_file_of_a_folder_that_sets_more_is_not_used_until_the_line_is_gone(command, here, own):
    text = 'model = "openai:gpt-4o"\n'
    (here / "tomewise.toml").write_text(text)
    refused = command("config", "set", "--here", "system", "naive")
    assert (refused.code, "sets model" in refused.err) == (2, True)
    assert (here / "tomewise.toml").read_text() == text
    listed = json.loads(command("config", "--json").out)
    assert "sets model" in listed["refused"][0]
    assert {"name": "model", "value": "extractive", "origin": "default"} in listed["settings"]
    assert "not used:" in command("config").out
    assert command("config", "unset", "--here", "model").code == 0
    assert json.loads(command("config", "--json").out)["refused"] == []


@pytest.mark.parametrize("name", ["base_url", "embedder_base_url"])
def test_a_folder_may_not_say_where_keys_are_sent(command, here, own, name):
    ran = command("config", "set", "--here", name, "http://localhost:8000/v1")
    assert (ran.code, f"sets {name}, and only you may do that" in ran.err) == (2, True)
    assert not (here / "tomewise.toml").exists()


def test_the_user_file_may_be_a_link(command, own, tmp_path):
    kept = tmp_path / "dotfiles.toml"
    kept.write_text("limit = 2\n")
    own.symlink_to(kept)
    command("config", "set", "limit", "5")
    assert own.is_symlink()
    assert "limit = 5" in kept.read_text()


def test_a_model_and_its_address_are_set_in_one_step(command, own):
    url = "http://127.0.0.1:9/v1"
    assert command("config", "set", "model", "OpenAI:test", "--base-url", url, "--no-test").code == 0
    assert (load().model, load().base_url) == ("OpenAI:test", url)
    refused = command("config", "set", "model", "openai:test", "--base-url", "127.0.0.1", "--no-test")
    assert (refused.code, "is not the address of a model server" in refused.err) == (2, True)
    assert "--base-url is the address of a model" in command("config", "set", "limit", "3", "--base-url", url).err


def test_prices_of_a_list_beside_the_settings_come_first(command, own):
    own.with_name("prices.toml").write_text('"openai:gpt-99" = [2, 10, 0.5]\n"openai:gpt-4o-mini" = [1, 2]\n')
    read_own_prices.cache_clear()
    try:
        listed = json.loads(command("models", "openai", "--json").out)
        prices = {each["name"]: (each["input"], each["output"]) for each in listed}
        assert (prices["openai:gpt-99"], prices["openai:gpt-4o-mini"]) == ((2, 10), (1, 2))
        assert find_price(ModelSpec.parse("OpenAI:gpt-99"), 1_000_000, 1_000_000, 500_000) == 11.25
        for wrong in ('"cheap"', "[inf, 1]", "1"):
            own.with_name("prices.toml").write_text(f'"openai:gpt-99" = {wrong}\n')
            read_own_prices.cache_clear()
            assert "prices.toml is not used (openai:gpt-99" in command("models", "openai").err
    finally:
        read_own_prices.cache_clear()
