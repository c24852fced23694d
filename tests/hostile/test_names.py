"""Names of embedders in tomes from others: they load no folder, and run no code of a model."""

import sqlite3
import sys
from contextlib import closing
from types import ModuleType

import pytest

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.embedding.libraries import SentenceTransformersEmbedder
from tomewise.errors import MissingDependency, StoreError, UnknownName, UsageError
from tomewise.settings import load
from tomewise.tome.fixed_settings import refuse_embedder
from tomewise.tome.tome import Tome

FOLDERS = [
    "./model", "../model", "/model", "~/model", "model/", "a/b/c", "a\\b", "C:\\model", "C:model", "a/..", ".", "..",
    "file:///model", "https://elsewhere/model", "a/./b", "a b", "a\nb", ".hidden", "-x", "mod\u0435l", "//host/share",
    "",
]  # fmt: skip


@pytest.fixture
def model(here):
    """A model's folder that would run code."""
    folder = here / "model"
    folder.mkdir()
    (folder / "modules.json").write_text('[{"type": "evil.Module"}]')
    return folder


@pytest.fixture
def make_received(here, request):
    """A tome whose table says that it was made with the embedder that the test names."""
    path = here / "received.tome"
    with Tome.open(path, embedder="hash"):
        pass

    def name_embedder(name):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE meta SET value = ? WHERE key = 'embedder'", (name,))
        return path

    return name_embedder


@pytest.fixture
def library(monkeypatch):
    """A stand-in for Sentence Transformers that remembers what it was asked to load."""
    loaded = []

    class SentenceTransformer:
        max_seq_length = 128

        def __init__(self, *names, **flags):
            loaded.append((names, flags))

        def get_embedding_dimension(self):
            return 2

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer
    module.__version__ = "6.0.0"
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    module.loaded = loaded
    return module


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_a_tome_names_is_not_loaded(make_received, library, name):
    path = make_received(f"sentence-transformers:{name}")
    with pytest.raises(UsageError, match="names a folder as its embedder"):
        Tome.open(path)
    assert library.loaded == []


@pytest.mark.parametrize("name", ["model", "BAAI/bge", "later"])
def test_nor_is_one_that_has_the_name_of_a_model_of_the_hub(here, make_received, library, name):
    if name == "later":
        (here / name).symlink_to(here / "nowhere")  # it may become a folder
    else:
        (here / name).mkdir(parents=True)
    with pytest.raises(UsageError, match="names a folder"):
        Tome.open(make_received(f"sentence-transformers:{name}"))
    assert library.loaded == []


def test_the_command_says_how_to_go_on(command, make_received, model, library):
    path = make_received("sentence-transformers:./model")
    ran = command("show", "--tome", path)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "TOMEWISE_EMBEDDER" in ran.err


def test_a_folder_that_the_user_names_is_loaded_without_its_code(make_received, model, library):
    with Tome.open(make_received("sentence-transformers:./model"), embedder="sentence-transformers:./model"):
        pass
    assert choose_embedder("sentence-transformers:./model").dimensions == 2
    assert library.loaded == [(("./model",), {"trust_remote_code": False})]


@pytest.mark.parametrize("name", ["all-mpnet-base-v2", "BAAI/bge-small-en-v1.5", "intfloat/e5_large.v2"])
def test_names_of_the_hub_pass(make_received, name):
    refuse_embedder(f"sentence-transformers:{name}", "a.tome")
    with Tome.open(make_received(f"sentence-transformers:{name}")) as tome:
        assert tome.kit.embedder.name == f"sentence-transformers:{name}"


def test_a_project_s_file_may_not_name_a_folder(here, monkeypatch):
    own, project = here.parent / "config" / "tomewise", here / "tomewise.toml"
    project.write_text('embedder = "sentence-transformers:./model"')
    with pytest.raises(UsageError, match="sets embedder"):
        load()
    own.mkdir(parents=True)
    project.rename(own / "tomewise.toml")
    assert load().embedder == "sentence-transformers:./model", "the user's own file may"
    monkeypatch.setenv("TOMEWISE_EMBEDDER", "sentence-transformers:/m")
    assert load().embedder.endswith("/m")


@pytest.mark.parametrize("version", ["4.1.0", "5.7.2", "3", "", "unknown", None])
def test_versions_that_run_a_folder_s_code_are_refused(library, version):
    if version is None:
        del library.__version__
    else:
        library.__version__ = version
    with pytest.raises(MissingDependency, match="sentence-transformers>=6"):
        SentenceTransformersEmbedder("m").embed(["a"])
    assert library.loaded == []
    for later in ("6.0.0", "6.2.0.dev0", "10.1"):
        library.__version__ = later
        assert SentenceTransformersEmbedder("m").dimensions == 2


@pytest.mark.parametrize(
    "name",
    ["hash:" + "9" * 5000, "hash:1000000000000", "hash:-1", "hash:１２", "fastembed:", "x" * 5000, "\x1b[31m", ""],
)
def test_other_names_of_a_tome_are_refused_by_name(make_received, name):
    with pytest.raises(UnknownName):
        choose_embedder(name)
    if name:
        with pytest.raises(StoreError, match="an embedder that is not known here"):
            Tome.open(make_received(name))
