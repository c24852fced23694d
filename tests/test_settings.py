from pathlib import Path

import pytest

import tomewise
from tomewise.errors import UsageError
from tomewise.settings import Settings, find_cache_folder, load, read_variable, with_models
from tomewise.trust import TrustedFolders


@pytest.fixture
def folders(tmp_path):
    made = (tmp_path / "home", tmp_path / "here")
    for folder in made:
        folder.mkdir()
    return made


def write(folder, text):
    (folder / "tomewise.toml").write_text(text)


def test_the_nearer_wins(folders):
    assert load({}, folders) == Settings()
    home, here = folders
    write(home, 'model = "openai:a"\nlimit = 3\ntimeout = 5')
    write(here, 'model = "openai:b"\nlimit = 4')
    TrustedFolders(home).add(here, (here / "tomewise.toml").read_bytes())
    found = load({"TOMEWISE_MODEL": "openai:c", "TOMEWISE_WINDOW": ""}, folders)
    assert (found.model, found.limit, found.timeout, found.window) == ("openai:c", 4, 5.0, None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("limt = 3", "did you mean 'limit'?"),
        ("limit = 0", "limit must be a whole number from 1 up, not 0"),
        ("limit = true", "not True"),
        ("timeout = nan", "not nan"),
        ("model = 3", "model must be a text in quotation marks, not 3"),
        ("limit = ", "cannot be read"),
        ("\udcff", "cannot be read"),
        ("[models]\nanswer = 3", "models must be a table of roles"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(folders, text, part):
    (folders[1] / "tomewise.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError) as raised:
        load({}, folders)
    assert str(folders[1] / "tomewise.toml") in str(raised.value)
    assert part in str(raised.value)


def test_variables_are_read_and_bad_ones_named(folders, monkeypatch):
    for variable, value in (("TOMEWISE_LIMIT", "none"), ("TOMEWISE_TIMEOUT", "-3")):
        with pytest.raises(UsageError, match=f"{variable}.*{value!r}"):
            load({variable: value}, folders)
    monkeypatch.setenv("A_KEY", "")
    monkeypatch.setenv("B_KEY", "b")
    assert (read_variable("A_KEY", "B_KEY"), read_variable("A_KEY")) == ("b", None)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.delenv("TOMEWISE_CACHE", raising=False)
    assert find_cache_folder() == Path("/caches/tomewise")
    monkeypatch.setenv("TOMEWISE_CACHE", "/mine")
    assert find_cache_folder() == Path("/mine")


def test_models_by_role_come_from_a_table_a_variable_or_words_and_a_nearer_model_replaces_them(folders):
    write(folders[0], 'model = "openai:a"\n[models]\nanswer = "openai:b"\nprobe = "openai:c"')
    stated = load({}, folders)
    assert stated.models == {"answer": "openai:b", "probe": "openai:c"}
    found = load({"TOMEWISE_MODELS": "answer=openai:d fuse=ollama:x:8b"}, folders)
    assert found.models == {"answer": "openai:d", "probe": "openai:c", "fuse": "ollama:x:8b"}
    named = with_models(found, ["answer=openai:e"])
    assert (named.model, named.models["answer"], named.models["probe"]) == ("openai:a", "openai:e", "openai:c")
    nearer = load({"TOMEWISE_MODEL": "extractive"}, folders)
    assert (nearer.model, nearer.models) == ("extractive", {})
    named = with_models(stated, ["probe=openai:x", "extractive"])
    assert (named.model, named.models) == ("extractive", {"probe": "openai:x"})


def test_a_tome_from_settings_is_the_one_that_the_command_would_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TOMEWISE_TOME", "mine.tome")
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "hash:64")
    with tomewise.Tome.from_settings() as tome:
        assert (tome.store.address, tome.kit.embedder.name) == (str(tmp_path / "mine.tome"), "hash:64")
    with tomewise.Tome.from_settings(Settings(tome="other.tome", embedder="hash")) as tome:
        assert tome.store.address == str(tmp_path / "other.tome")
