from pathlib import Path

import pytest

from tomewise import Tome
from tomewise.errors import UsageError
from tomewise.settings import Settings, find_cache_folder, load, read_variable
from tomewise.terminal.options import load_settings


@pytest.fixture
def folders(here):
    """The user's configuration folder, and the current one."""
    home = here.parent / "config" / "tomewise"
    home.mkdir(parents=True)
    return home, here


def write(folder, text):
    (folder / "tomewise.toml").write_text(text)


def test_the_nearer_wins(folders, monkeypatch):
    assert load() == Settings()
    home, here = folders
    write(home, 'model = "openai:a"\nlimit = 3\ntimeout = 5\nwindow = 9')
    write(here, "limit = 4\nwindow = 8")
    monkeypatch.setenv("TOMEWISE_MODEL", "openai:c")
    monkeypatch.setenv("TOMEWISE_OFFER", "")
    monkeypatch.setenv("TOMEWISE_API_KEY", "sk-1")
    found = load(window=7)
    assert (found.model, found.limit, found.timeout, found.window) == ("openai:c", 4, 5.0, 7)
    assert (found.offer, found.api_key) == (None, None), "a key is given in Python alone"


def test_a_key_is_never_shown():
    assert "sk-1" not in repr(Settings(api_key="sk-1"))
    with pytest.raises(UsageError, match=r"^api_key should be a valid string$"):
        Settings(api_key=[b"sk-1"])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("limt = 3", "did you mean 'limit'?"),
        ("limit = 0", "limit should be greater than or equal to 1, not 0"),
        ("limit = true", "not True"),
        ("timeout = nan", "not nan"),
        ("model = 3", "model should be a valid string, not 3"),
        ("limit = ", "cannot be read"),
        ("\udcff", "cannot be read"),
        ("[models]\nanswer = 3", "models should be a table of roles"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(folders, text, part):
    (folders[1] / "tomewise.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError) as raised:
        load()
    assert str(folders[1] / "tomewise.toml") in str(raised.value)
    assert part in str(raised.value)


def test_variables_are_read_and_bad_ones_named(folders, monkeypatch):
    bad = {"TOMEWISE_LIMIT": "none", "TOMEWISE_TIMEOUT": "-3", "TOMEWISE_SERVER": "temprature=off"}
    for variable, value in bad.items():
        monkeypatch.setenv(variable, value)
        with pytest.raises(UsageError, match=f"{variable}.*{value}"):
            load()
        monkeypatch.delenv(variable)
    monkeypatch.setenv("A_KEY", "")
    monkeypatch.setenv("B_KEY", "b")
    assert (read_variable("A_KEY", "B_KEY"), read_variable("A_KEY")) == ("b", None)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.delenv("TOMEWISE_CACHE", raising=False)
    assert find_cache_folder() == Path("/caches/tomewise")
    monkeypatch.setenv("TOMEWISE_CACHE", "/mine")
    assert find_cache_folder() == Path("/mine")


def test_models_by_role_come_from_a_table_a_variable_or_words_and_a_nearer_model_replaces_them(folders, monkeypatch):
    write(folders[0], 'model = "openai:a"\n[models]\nanswer = "openai:b"\nprobe = "openai:c"')
    assert load().models == {"answer": "openai:b", "probe": "openai:c"}
    named = load_settings({"model": ["probe=openai:x", "extractive"]})
    assert (named.model, named.models) == ("extractive", {"probe": "openai:x"})
    monkeypatch.setenv("TOMEWISE_MODELS", "answer=openai:d fuse=ollama:x:8b")
    assert load().models == {"answer": "openai:d", "probe": "openai:c", "fuse": "ollama:x:8b"}
    named = load_settings({"model": ["answer=openai:e"]})
    assert (named.model, named.models["answer"], named.models["probe"]) == ("openai:a", "openai:e", "openai:c")
    monkeypatch.delenv("TOMEWISE_MODELS")
    monkeypatch.setenv("TOMEWISE_MODEL", "extractive")
    assert (load().model, load().models) == ("extractive", {})


def test_a_model_of_a_call_replaces_models_by_role_that_are_further_away(here):
    (here / "tomewise.toml").write_text("")
    further = Settings(models={"answer": "openai:other"})
    with Tome.open(here / "a.tome", model="extractive", settings=further) as tome:
        assert tome.model_name == "extractive"
    with Tome.open(here / "a.tome", model="extractive", settings={"models": {"answer": "openai:other"}}) as tome:
        assert "openai:other" in tome.model_name


def test_where_work_is_done_is_only_stated(folders, monkeypatch):
    monkeypatch.setenv("TOMEWISE_ON", "ray")
    assert load().on is None
    assert load(on="ray").on == "ray"


def test_a_tome_of_loaded_settings_is_the_one_that_the_command_would_open(here, monkeypatch):
    monkeypatch.setenv("TOMEWISE_TOME", "mine.tome")
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "hash:64")
    with Tome.open(settings=load()) as tome:
        assert (tome.store.address, tome.kit.embedder.name) == (str(here / "mine.tome"), "hash:64")
    with Tome.open(settings={"tome": "other.tome", "embedder": "hash"}) as tome:
        assert tome.store.address == str(here / "other.tome")
    with Tome.open("third.tome", embedder="hash:32", settings=load()) as tome:
        assert (tome.store.address, tome.kit.embedder.name) == (str(here / "third.tome"), "hash:32")
