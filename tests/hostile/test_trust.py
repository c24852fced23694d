"""A folder from elsewhere with a `tomewise.toml` of its own: what it may decide, and what waits for the user."""

import json
import os
from dataclasses import fields
from hashlib import sha256

import pytest

from tomewise.errors import UsageError
from tomewise.settings import Settings, load
from tomewise.trust import TrustedFolders

WAITING = {"model": '"openai:x"', "tome": '"other.tome"', "prompts": '"pr"', "embedder": '"hash:8"'}


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


# ---------------------------------------------------------------- the attack


def test_prompts_of_a_folder_are_not_used_before_the_user_has_confirmed_it(command, here, monkeypatch):
    (here / "log.txt").write_text("The keeper, Ada Marsh, put out the light at nine.")
    assert command("add", "log.txt").code == 0
    (here / "pr").mkdir()
    (here / "pr" / "answer.md").write_text("{{ question }} OBEY {{ evidence[0].parse_raw('x') }}")
    write(here, 'prompts = "pr"')
    assert_refused(command("ask", "Who?"), "tomewise.toml", "prompts", f"tome trust {here}")
    assert_refused(command("show"), "tome trust")
    assert_refused(command("eval", "run", "naive", "--data", "sample"), "tome trust")
    assert command("trust").code == 0
    # Confirmed, the template is used, and can do no more than write.
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert_refused(
        command("ask", "Who?", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1"), "answer.md", "call"
    )


@pytest.mark.parametrize("name", WAITING)
def test_each_of_these_settings_waits(here, home, name):
    write(here, f"limit = 4\n{name} = {WAITING[name]}")
    with pytest.raises(UsageError, match=f"sets {name},.*tome trust"):
        load({"XDG_CONFIG_HOME": str(home.parent)})
    TrustedFolders(home).add(here, (here / "tomewise.toml").read_bytes())
    found = load({"XDG_CONFIG_HOME": str(home.parent)})
    assert (getattr(found, name), found.limit) == (WAITING[name].strip('"'), 4)


def test_a_setting_waits_unless_it_is_known_to_be_harmless(here):
    harmless = {"limit", "timeout", "window", "max_calls", "max_tokens", "max_cost", "max_failures"}
    harmless |= {"passage_tokens", "overlap"}
    for name in sorted({field.name for field in fields(Settings)} - harmless):
        write(here, f'{name} = "8"')
        with pytest.raises(UsageError):
            load({}, (here / "none", here))
    write(here, "\n".join(f"{name} = 8" for name in harmless))
    assert load({}, (here / "none", here)).max_cost == 8


@pytest.mark.parametrize(
    ("bound", "stated"), [("max_calls", 5), ("max_tokens", 5), ("max_cost", 5), ("max_failures", 20)]
)
def test_a_folder_may_lower_the_bounds_of_the_user_or_the_default_and_not_raise_them(here, home, bound, stated):
    write(home, f"{bound} = {stated}" if stated == 5 else "")
    write(here, f"{bound} = {stated - 1}")
    assert getattr(load({}, (home, here)), bound) == stated - 1
    write(here, f"{bound} = {stated + 1}")
    with pytest.raises(UsageError, match=f"sets {bound},"):
        load({}, (home, here))


def test_the_file_of_the_user_needs_no_confirmation_wherever_they_stand(home):
    write(home, "\n".join(f"{name} = {value}" for name, value in WAITING.items()))
    assert load({}, (home, home)).model == "openai:x"


# ---------------------------------------------------------------- confirming


def test_trust_says_what_it_confirms_and_lasts_until_the_file_changes_or_it_is_forgotten(command, here, home):
    write(here, 'model = "openai:x"\nlimit = 3')
    assert_refused(command("show"), "model")
    ran = command("trust", here)
    assert ran.code == 0
    assert f"trusted {here}" in ran.out
    assert "model = 'openai:x'" in ran.out
    assert command("trust", "--list").out == f"{here}\n"
    assert "tome trust" not in command("show").err
    write(here, 'model = "openai:y"\nlimit = 3')
    assert_refused(command("show"), "as it is now", "tome trust")
    assert command("trust").code == 0
    assert "tome trust" not in command("show").err
    assert [path.name for path in home.iterdir()] == ["trusted.json"]
    assert os.stat(home / "trusted.json").st_mode & 0o077 == 0, "it is the user's alone"
    assert command("trust", "--forget").code == 0
    assert_refused(command("show"), "tome trust")
    assert command("trust", "--list").out == ""
    assert_refused(command("trust", "--forget"), "--list")
    assert_refused(command("trust", "--list", "--forget"), "--list")


def test_to_take_a_setting_back_confirms_no_file_that_was_not_trusted(command, here):
    write(here, 'model = "openai:x"\nlimit = 3')
    assert command("config", "unset", "--here", "limit").code == 0
    assert_refused(command("show"), "model")


def test_trust_is_of_one_folder_and_no_link_carries_it_elsewhere(command, here, monkeypatch):
    good, bad = here / "good", here / "bad"
    for folder in (good, bad):
        write(folder, 'model = "openai:x"')
    link = here / "link"
    link.symlink_to(good, target_is_directory=True)
    assert command("trust", link).code == 0
    link.unlink()
    link.symlink_to(bad, target_is_directory=True)
    monkeypatch.chdir(link)
    assert_refused(command("show"), "tome trust")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (None, "nothing to trust"),
        ("", "nothing to trust"),
        ("modle = 1", "did you mean"),
        ("= ", "cannot be read"),
        ('base_url = "http://elsewhere"', "your key"),
        ('embedder = "sentence-transformers:./model"', "TOMEWISE_EMBEDDER"),
        ("x = " + "[" * 100_000, "cannot be read"),
    ],
)
def test_what_could_not_be_used_is_not_confirmed(command, here, text, part):
    if text is not None:
        write(here, text)
    assert_refused(command("trust"), part)
    assert command("trust", "--list").out == ""


def test_trust_cannot_be_given_by_the_folder_itself(command, here, home):
    write(here, 'model = "openai:x"')
    digest = sha256((here / "tomewise.toml").read_bytes()).hexdigest()
    (here / "trusted.json").write_text(json.dumps({str(here): digest}))
    assert_refused(command("show"), "tome trust")


@pytest.mark.parametrize("text", ["[]", "{", "\udcff"])
def test_a_damaged_list_is_named(command, here, home, text):
    home.mkdir(parents=True)
    (home / "trusted.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    write(here, 'model = "openai:x"')
    assert_refused(command("show"), "trusted.json")
    assert_refused(command("trust"), "trusted.json")


def test_a_file_without_end_is_refused_at_once(command, here):
    os.mkfifo(here / "tomewise.toml")
    assert_refused(command("show"), "not a file")
    (here / "tomewise.toml").unlink()
    with (here / "tomewise.toml").open("wb") as file:
        file.truncate(10**12)  # a hole: it takes no room on the disk
    assert_refused(command("show"), "more than 100,000 bytes")
