"""The bundled embedder, compared with a slow forward pass in NumPy, and with Sentence Transformers if installed."""

import math
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as arrays_of
from safetensors.numpy import load_file
from scipy.special import erf

from tomewise.embedding import weights
from tomewise.embedding.bundled import BundledMiniLM, Int8MiniLM, choose_providers, split_into_batches
from tomewise.embedding.onnx_graph import quantise
from tomewise.errors import TomewiseError

needs_weights = pytest.mark.skipif(find_spec(weights.PACKAGE) is None, reason=f"needs {weights.INSTALL}")
IMPORT = "import tomewise.embedding.bundled, onnxruntime, time; time.sleep(0.5)"
TEXTS = [
    "",
    "Teutberga was a queen of Lotharingia.",
    "Naïve café — 北京, «ποῦ στῶ»!",
    "the cat sat on the mat " * 80,
    "x" * 500,
    "Who was married to Lothair II?",
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def embedder(cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOMEWISE_CACHE", str(cache))
        yield BundledMiniLM()


@pytest.fixture(scope="module")
def int8(cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOMEWISE_CACHE", str(cache))
        yield Int8MiniLM()


@pytest.fixture(scope="module")
def arrays():
    loaded = load_file(weights.find_weights() / "model.safetensors")
    return {name: values.astype(np.float64) for name, values in loaded.items()}


def reference(w, ids):
    """One text through BERT, step by step, in float64."""

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    e = "embeddings"
    x = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.position_embeddings.weight"][: len(ids)]
    x = norm(x + w[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        q, k, v = (dense(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        heads = []
        for h in range(12):
            at = slice(32 * h, 32 * h + 32)
            scores = np.exp(q[:, at] @ k[:, at].T / math.sqrt(32))
            heads.append(scores / scores.sum(-1, keepdims=True) @ v[:, at])
        attended = dense(np.concatenate(heads, -1), f"{name}.attention.output.dense")
        x = norm(x + attended, f"{name}.attention.output.LayerNorm")
        wide = dense(x, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
        x = norm(x + dense(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


@needs_weights
def test_rows_equal_a_slow_forward_pass(embedder, int8, arrays):
    for near, row, text in zip(int8.embed(TEXTS), embedder.embed(TEXTS), TEXTS, strict=True):
        ids = embedder.tokenizer.encode(text).ids
        ids = ids if len(ids) <= 256 else [*ids[:255], 102]
        expected = reference(arrays, ids)
        assert np.abs(row - expected).max() < 1e-5
        assert near @ expected > 0.995


@needs_weights
@pytest.mark.parametrize("kind", ["embedder", "int8"])
def test_a_vector_does_not_depend_on_the_other_texts_to_the_bit(kind, request):
    embedder = request.getfixturevalue(kind)
    for row, text in zip(embedder.embed(TEXTS), TEXTS, strict=True):
        assert np.array_equal(row, embedder.embed([text])[0])


@given(arrays_of(np.float32, (8, 3), elements=st.floats(-50, 50, width=32)))
def test_whole_numbers_are_near_and_no_two_neighbours_overflow_sixteen_bits(weight):
    weight[0] += 100
    numbers, scales = quantise(weight)
    assert (np.abs(numbers * scales - weight) <= scales * 0.501).all()
    for sign in (1, -1):
        signed = np.maximum(sign * numbers.astype(int), 0)
        assert 255 * (signed[0::2] + signed[1::2]).max() < 2**15


@needs_weights
def test_only_the_first_256_tokens_count(embedder):
    long = "word " * 254
    assert np.array_equal(embedder.embed([long])[0], embedder.embed([long + "and megabytes more " * 100_000])[0])
    assert len(embedder.tokenizer.encode("word " * 1000).ids) == 1002


@needs_weights
@pytest.mark.parametrize("kind", [BundledMiniLM, Int8MiniLM])
def test_a_damaged_file_is_written_again(kind, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("TOMEWISE_CACHE", str(cache))
    embedder = kind()
    expected = embedder.embed(["a text"])
    (good,) = cache.glob(f"{embedder.name}-[0-9a-f]*.onnx")
    (tmp_path / good.name).write_bytes(good.read_bytes()[:1_000_000])
    monkeypatch.setenv("TOMEWISE_CACHE", str(tmp_path))
    assert np.array_equal(kind().embed(["a text"]), expected)
    assert [path.name for path in tmp_path.iterdir()] == [good.name]


@needs_weights
def test_a_cache_that_cannot_be_written_is_named(monkeypatch):
    monkeypatch.setenv("TOMEWISE_CACHE", f"{__file__}/cache")  # this file is in the way
    with pytest.raises(TomewiseError, match="TOMEWISE_CACHE"):
        BundledMiniLM().embed(["a text"])


def test_other_weights_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TOMEWISE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / weights.NAME
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"other")
    with pytest.raises(TomewiseError, match=r"SHA-256.* run `tome weights`"):
        BundledMiniLM().embed(["a text"])
    assert not list((tmp_path / "cache").glob("*.onnx"))


def test_a_gpu_is_used_where_the_build_can():
    cpu = "CPUExecutionProvider"
    assert choose_providers(["AzureExecutionProvider", cpu]) == [cpu]
    assert choose_providers(["TensorrtExecutionProvider", "CUDAExecutionProvider", cpu]) == [
        ("CUDAExecutionProvider", {"use_tf32": 0}),
        cpu,
    ]


@given(st.lists(st.integers(2, 256), min_size=1, max_size=60), st.integers(1, 8))
def test_batches_hold_each_text_once_and_only_equal_lengths(lengths, cores):
    found = list(split_into_batches(lengths, 512, cores))
    assert sorted(int(index) for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        assert len({lengths[index] for index in batch}) == 1
        assert len(batch) == 1 or sum(lengths[index] for index in batch) <= 512


def test_onnx_runtime_leaves_no_id_of_this_machine_for_its_makers(tmp_path):
    own = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run(
        [sys.executable, "-c", IMPORT], env={**own, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}, check=True
    )
    assert not [*tmp_path.rglob("*deviceid*"), *tmp_path.rglob("*.db")]
