"""FastEmbed and Sentence Transformers, replaced by fakes, because tests have no weights."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from tomewise.embedding.fastembed import FastEmbed
from tomewise.embedding.sentence_transformers import SentenceTransformersEmbedder
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
    def __init__(self, model_name):
        if model_name == "far":
            raise ValueError("Could not load model far from any source.")
        self.model = SimpleNamespace(tokenizer=own_tokenizer(8192))

    @staticmethod
    def get_embedding_size(model_name):
        if model_name not in ("near", "far"):
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


@pytest.fixture(params=[(FastEmbed, 512), (SentenceTransformersEmbedder, 128)])
def kind(request, monkeypatch):
    stand_in(monkeypatch, "fastembed", TextEmbedding=FakeTextEmbedding)
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


def test_the_tokenizer_counts_all(kind):
    assert len(kind[0]("near").tokenizer.encode("a b c " * 300).ids) == 900
    assert len(kind[0]("near").tokenizer.encode("a").ids) == 1


def test_weights_out_of_reach(kind):
    with pytest.raises(ModelUnavailable, match="'far'"):
        kind[0]("far").embed(["a"])


def test_fastembed_names_an_unknown_model(monkeypatch):
    stand_in(monkeypatch, "fastembed", TextEmbedding=FakeTextEmbedding)
    with pytest.raises(UnknownName, match="'nonsense'"):
        FastEmbed("nonsense").embed(["a"])


@pytest.mark.parametrize(
    ("made", "module", "extra"),
    [
        (FastEmbed, "fastembed", "tomewise[fastembed]"),
        (SentenceTransformersEmbedder, "sentence_transformers", "tomewise[sentence-transformers]"),
    ],
)
def test_a_missing_library_names_the_extra(monkeypatch, made, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency) as caught:
        made("near").embed(["a"])
    assert extra in str(caught.value)
