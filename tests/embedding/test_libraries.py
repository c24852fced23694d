"""FastEmbed and Sentence Transformers, replaced by fakes, because tests have no weights."""

import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from tomewise.embedding import libraries
from tomewise.embedding.libraries import FastEmbed, SentenceTransformersEmbedder
from tomewise.errors import MissingDependency, ModelUnavailable, UnknownName
from tomewise.types import Embedder


def vectors(texts):
    return np.array([[len(text), 1.0] for text in texts], np.float32)


def own_tokenizer(limit):
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(limit)
    tokenizer.enable_padding(length=4)
    return tokenizer


class FakeTextEmbedding:
    def __init__(self, model_name, local_files_only):
        if model_name == "far" or (local_files_only and model_name != "cached"):
            raise ValueError("Could not load model far from any source.")
        self.model = SimpleNamespace(tokenizer=own_tokenizer(8192))

    @staticmethod
    def get_embedding_size(model_name):
        if model_name not in ("near", "far", "cached"):
            raise ValueError("not known")
        return 2

    def embed(self, texts, batch_size):
        yield from vectors(texts)


class FakeSentenceTransformer:
    max_seq_length = 128

    def __init__(self, model_name, trust_remote_code):
        assert trust_remote_code is False
        if model_name == "far":
            raise OSError("not on the hub")
        self.tokenizer = SimpleNamespace(backend_tokenizer=own_tokenizer(128))

    def get_embedding_dimension(self):
        return 2

    def encode(self, texts, **_):
        return vectors(texts)


def stand_in(monkeypatch, name, **members):
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def stand_in_for_fastembed(monkeypatch, *, reaches_hub=True):
    stand_in(monkeypatch, "fastembed", TextEmbedding=FakeTextEmbedding)
    stand_in(monkeypatch, "loguru", logger=SimpleNamespace(disable=str, enable=str))
    monkeypatch.setattr(libraries, "reaches_hub", lambda: reaches_hub)


@pytest.fixture(params=[(FastEmbed, 512), (SentenceTransformersEmbedder, 128)])
def kind(request, monkeypatch):
    stand_in_for_fastembed(monkeypatch)
    stand_in(monkeypatch, "sentence_transformers", __version__="6.0.0", SentenceTransformer=FakeSentenceTransformer)
    return request.param


def test_unit_rows_in_order(kind):
    embedder = kind[0]("near")
    found = embedder.embed(["aaaa", "b", "aaaa", ""])
    raw = np.array([[4, 1], [1, 1], [4, 1], [0, 1]])
    assert isinstance(embedder, Embedder)
    assert found == pytest.approx(raw / np.linalg.norm(raw, axis=1, keepdims=True))
    assert embedder.embed([]).shape == (0, 2)
    assert (embedder.dimensions, embedder.max_tokens) == (2, kind[1])
    assert [len(embedder.tokenizer.encode(text).ids) for text in ("a b c " * 300, "a")] == [900, 1], "it counts all"


def test_fastembed_offline_looks_into_its_cache_alone(monkeypatch):
    stand_in_for_fastembed(monkeypatch, reaches_hub=False)
    assert FastEmbed("cached").embed(["a"]).shape == (1, 2)
    with pytest.raises(ModelUnavailable, match="'near'"):
        FastEmbed("near").embed(["a"])


def test_the_hub_is_reached_if_a_server_replies(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(libraries, "SECOND_SOURCE", "http://127.0.0.1:1")
    assert not libraries.reaches_hub()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(reply_not_found, server)
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        assert libraries.reaches_hub(), "a server that refuses is reached all the same"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not libraries.reaches_hub()


def reply_not_found(server):
    connection, _ = server.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.0 404 Not Found\r\n\r\n")


@pytest.mark.parametrize(("name", "error"), [("far", ModelUnavailable), ("nonsense", UnknownName)])
def test_weights_out_of_reach_and_unknown_models_are_named(kind, name, error):
    if name == "far" or kind[0] is FastEmbed:
        with pytest.raises(error, match=f"'{name}'"):
            kind[0](name).embed(["a"])


@pytest.mark.parametrize(
    ("made", "module"), [(FastEmbed, "fastembed"), (SentenceTransformersEmbedder, "sentence_transformers")]
)
def test_a_missing_library_names_the_extra(monkeypatch, made, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency, match=rf"tomewise\[{module.replace('_', '-')}\]"):
        made("near").embed(["a"])
