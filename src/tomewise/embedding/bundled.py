"""The bundled embedder: all-MiniLM-L6-v2 in int8 or float32 on ONNX Runtime, from what `embedding.weights` finds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.embedding.unit_rows import UnitRows, Vectors, read_tokenizer, run_at_once
from tomewise.embedding.weights import HASHES, NAME, find_weights, read_verified
from tomewise.errors import TomewiseError
from tomewise.settings import find_cache_folder, read_variable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from tomewise.embedding.onnx_graph import Peaks, Weights

_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_redirecting = Lock()
INT8 = f"{NAME}-int8"
LAYERS, HEADS, DIMENSIONS, MAX_TOKENS = 6, 12, 384, 256
GRAPH_VERSION = 2  # increase it with every change of the graph that `onnx_graph` builds


class BundledMiniLM(UnitRows):
    """all-MiniLM-L6-v2 in float32: mean of the last hidden states, scaled to length one; 384 dimensions, 256 tokens.

    Nothing is loaded before it is needed. The ONNX file (90 MB) is written once to the folder of
    `settings.find_cache_folder`, after the weights and the tokenizer were checked against their SHA-256; a damaged file
    is written again. Texts are batched by equal length, one batch per core at a time, so a text's vector is bit
    for bit the same, whatever texts are embedded with it. A single short text uses one core. Computes on a GPU where
    ONNX Runtime was built with CUDA (`choose_providers`). Raises MissingDependency when the weights are not there,
    TomewiseError when they are not the official ones or the cache cannot be written. Source: Reimers and Gurevych,
    "Sentence-BERT", 2019, section 3 (mean pooling).
    """

    name = NAME
    dimensions = DIMENSIONS
    max_tokens = MAX_TOKENS
    embeds_apart = True  # see `CachedEmbedder`
    batch_tokens = 512  # about 0.15 s on one core: an interruption waits no longer than that
    is_exact = True

    def __init__(self) -> None:
        self._lock = Lock()
        self._tokenizer: Tokenizer | None = None
        self._session: Any = None

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer without truncation and padding, so that it counts all tokens of a text."""
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = read_tokenizer(read_verified("tokenizer.json").decode("utf-8"))
            return self._tokenizer

    def find_device(self) -> str:
        """What computes: `GPU` or `CPU`. Opens the model, and so writes the ONNX file if it is not there."""
        return "GPU" if _CUDA in self._ready_session().get_providers() else "CPU"

    def _embed_distinct(self, texts: list[str]) -> Vectors:
        session = self._ready_session()
        whole = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts)]
        ids = [row if len(row) <= MAX_TOKENS else [*row[: MAX_TOKENS - 1], row[-1]] for row in whole]
        pooled = np.empty((len(texts), DIMENSIONS), np.float32)

        def run(batch: NDArray[np.intp]) -> None:
            tokens = np.array([ids[text] for text in batch], np.int32)
            # The mean is taken here, because ONNX Runtime sums in another order when a batch holds a single text.
            pooled[batch] = session.run(None, {"ids": tokens})[0].mean(axis=1)

        # One thread per batch, not several threads per operation: otherwise the threads wait for each other at each of
        # the hundred operations, which halves the speed on a busy machine.
        cores = count_cores()
        run_at_once(run, list(split_into_batches([len(row) for row in ids], self.batch_tokens, cores)), cores)
        return pooled

    def _ready_session(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = _open_session(is_exact=self.is_exact)
            return self._session


class Int8MiniLM(BundledMiniLM):
    """The same in int8, on the processor: half the time, a file of 59 MB, a cosine of some 0.999 with those vectors.

    One text is computed at a time on each core, since the scale of its states would depend on a second one.
    """

    name = INT8
    batch_tokens = 1
    is_exact = False


def split_into_batches(lengths: Sequence[int], budget: int, cores: int) -> Iterator[NDArray[np.intp]]:
    """Indices of texts of equal length, at most `budget` tokens at a time (one text at least), longest first."""
    counts = np.asarray(lengths)
    share = min(budget, max(64, int(counts.sum()) // cores))  # little work: smaller batches, for all cores
    for length in np.unique(counts)[::-1]:
        same_length = np.flatnonzero(counts == length)
        size = max(1, share // int(length))
        yield from (same_length[start : start + size] for start in range(0, len(same_length), size))


def count_cores() -> int:
    """The number of cores that this process may run on; no more than OMP_NUM_THREADS where it states a number."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    stated = read_variable("OMP_NUM_THREADS") or ""
    return min(cores, int(stated)) if stated.isdecimal() and int(stated) else cores


def choose_providers(available: Sequence[str]) -> list[str | tuple[str, dict[str, int]]]:
    """Where ONNX Runtime computes: on a GPU with CUDA if its build can, else on the processor.

    On the GPU products are computed in full float32 and not in TF32, so that vectors should agree with those of a
    processor within 1e-3 (not measured). Where no GPU answers, ONNX Runtime itself turns to the processor.
    """
    providers: list[str | tuple[str, dict[str, int]]] = [_CPU]
    return [(_CUDA, {"use_tf32": 0}), *providers] if _CUDA in available else providers


def _open_session(*, is_exact: bool) -> Any:
    from onnxruntime.capi import onnxruntime_pybind11_state as problems

    find_weights()
    # The name contains the hash of the weights. The weights are hashed when the file is written, not at each start.
    name = NAME if is_exact else INT8
    path = find_cache_folder() / f"{name}-{HASHES['model.safetensors'][:12]}-{GRAPH_VERSION}.onnx"
    if not path.exists():
        _make_graph(path, is_exact=is_exact)
    try:
        return _make_session(path, may_use_gpu=is_exact)
    except (
        problems.Fail,
        problems.InvalidArgument,
        problems.InvalidGraph,
        problems.InvalidProtobuf,
        problems.NoSuchFile,
        problems.RuntimeException,
    ):
        _make_graph(path, is_exact=is_exact)
        return _make_session(path, may_use_gpu=is_exact)


def _make_session(model: Path | bytes, *, may_use_gpu: bool) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # no warnings on standard error; failures raise errors
    source = model if isinstance(model, bytes) else str(model)
    providers = choose_providers(onnxruntime.get_available_providers() if may_use_gpu else ())
    if len(providers) == 1:
        return onnxruntime.InferenceSession(source, options, providers=providers)
    # ONNX Runtime prints which libraries of CUDA it cannot load; standard output belongs to answers. One thread at a
    # time, since standard output is that of the whole process.
    with _redirecting, redirect_stdout(sys.stderr):
        onnxruntime.preload_dlls(msvc=False)  # the libraries that pip installed
        return onnxruntime.InferenceSession(source, options, providers=providers)


def _make_graph(path: Path, *, is_exact: bool) -> None:
    from safetensors.numpy import load

    from tomewise.embedding.onnx_graph import build_model, write_model

    read_verified("tokenizer.json")
    weights = load(read_verified("model.safetensors"))
    peaks = None if is_exact else _measure_peaks(weights)
    model = build_model(weights, layers=LAYERS, heads=HEADS, peaks=peaks)
    try:
        write_model(model, path)
    except OSError as error:
        raise TomewiseError(
            f"the embedder's file {path} cannot be written ({error}): make room there, "
            "or set TOMEWISE_CACHE to a folder that can be written"
        ) from error


def _measure_peaks(weights: Weights) -> Peaks:
    """The peaks of states in float32, over eight texts of words from the whole vocabulary."""
    from tomewise.embedding.onnx_graph import build_model

    session = _make_session(build_model(weights, layers=LAYERS, heads=HEADS, shows_all=True), may_use_gpu=False)
    words = np.arange(1000, 30_520, 30, dtype=np.int32).reshape(-1, 8).T
    ids = np.pad(words, ((0, 0), (1, 1)), constant_values=((0, 0), (101, 102)))  # [CLS] and [SEP]
    names = [output.name for output in session.get_outputs()]
    return {
        name: np.abs(states).max(axis=(0, 1))
        for name, states in zip(names, session.run(names, {"ids": ids}), strict=True)
    }
