"""Embedding models of other libraries: FastEmbed (ONNX Runtime, no torch) and Sentence Transformers (torch)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np

from tomewise.embedding.unit_rows import UnitRows, Vectors, read_tokenizer
from tomewise.errors import MissingDependency, ModelUnavailable, UnknownName
from tomewise.settings import read_variable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LONGEST = 512  # tokens; passages are never longer, even if the model can take more
BATCH = 32
LEAST = 6  # the first major version of Sentence Transformers that never runs code of a local folder without consent
_HUB = "https://huggingface.co"
SECOND_SOURCE = "https://storage.googleapis.com"
_REACH_SECONDS = 5.0


class FastEmbed(UnitRows):
    """The FastEmbed model `model_name`, fetched on first use.

    Raises UnknownName for a model that FastEmbed does not know, ModelUnavailable when it cannot be fetched.
    """

    def __init__(self, model_name: str) -> None:
        self._model_name = model_name
        self.name = f"fastembed:{model_name}"

    @cached_property
    def dimensions(self) -> int:
        library = _import_fastembed()
        try:
            return int(library.get_embedding_size(self._model_name))
        except ValueError as error:
            raise UnknownName(f"FastEmbed knows no model {self._model_name!r}: see its list of models") from error

    @cached_property
    def max_tokens(self) -> int:
        limit = self._model_tokenizer.truncation
        return min(int(limit["max_length"]), LONGEST) if limit else LONGEST

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """A copy of the model's tokenizer without truncation and padding, so that it counts all tokens of a text."""
        return read_tokenizer(self._model_tokenizer.to_str())

    def _embed_distinct(self, texts: list[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))  # similar lengths need little padding
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        vectors[order] = list(self._model.embed([texts[index] for index in order], batch_size=BATCH))
        return vectors

    @property
    def _model_tokenizer(self) -> Any:
        return self._model.model.tokenizer

    @cached_property
    def _model(self) -> Any:
        _ = self.dimensions  # raises UnknownName, before an attempt to fetch the weights raises ModelUnavailable
        try:
            # Offline, FastEmbed would try again for 40 seconds, and log each failure: it may only look into its cache.
            with _silence_log():
                return _import_fastembed()(self._model_name, local_files_only=not reaches_hub())
        except (ValueError, OSError) as error:
            raise ModelUnavailable(
                f"FastEmbed could not load {self._model_name!r} ({error}): check the network, or choose another"
            ) from error


def reaches_hub() -> bool:
    """Whether one of the servers from which FastEmbed fetches models replies, with whatever status."""
    if read_variable("HF_HUB_OFFLINE"):
        return False
    for address in (read_variable("HF_ENDPOINT") or _HUB, SECOND_SOURCE):
        try:
            urlopen(Request(address, method="HEAD"), timeout=_REACH_SECONDS).close()
        except HTTPError as reply:
            reply.close()
        except (OSError, ValueError):
            continue
        return True
    return False


@contextmanager
def _silence_log() -> Iterator[None]:
    """FastEmbed logs to standard error through Loguru; our error says the same in one line."""
    try:
        from loguru import logger
    except ImportError:
        yield
        return
    logger.disable("fastembed")
    try:
        yield
    finally:
        logger.enable("fastembed")


def _import_fastembed() -> Any:
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise MissingDependency("FastEmbed is not installed: run `pip install 'tomewise[fastembed]'`") from error
    return TextEmbedding


class SentenceTransformersEmbedder(UnitRows):
    """The model `model_name` (a name of the Hugging Face hub, or a folder), loaded on first use.

    Code that a model brings is never run: a model that needs it cannot be loaded. Raises ModelUnavailable when the
    model cannot be loaded or has no fast tokenizer, MissingDependency when the library is missing or too old.
    """

    def __init__(self, model_name: str) -> None:
        self._model_name = model_name
        self.name = f"sentence-transformers:{model_name}"

    @cached_property
    def dimensions(self) -> int:
        return int(self._model.get_embedding_dimension())

    @cached_property
    def max_tokens(self) -> int:
        return min(int(self._model.max_seq_length or LONGEST), LONGEST)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """A copy of the model's tokenizer without truncation and padding, so that it counts all tokens of a text."""
        backend = getattr(self._model.tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelUnavailable(f"{self._model_name!r} has no fast tokenizer to count with: choose another embedder")
        return read_tokenizer(backend.to_str())

    def _embed_distinct(self, texts: list[str]) -> Vectors:
        vectors: Vectors = self._model.encode(texts, batch_size=BATCH, convert_to_numpy=True, show_progress_bar=False)
        return vectors

    @cached_property
    def _model(self) -> Any:
        library = _import_sentence_transformers()
        try:
            return library.SentenceTransformer(self._model_name, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise ModelUnavailable(
                f"Sentence Transformers could not load {self._model_name!r} ({error}): check the name and the network"
            ) from error


def _import_sentence_transformers() -> Any:
    """The library, if its version asks before it runs a model's code; earlier ones run the code of a folder."""
    try:
        import sentence_transformers
    except ImportError as error:
        raise MissingDependency(
            "Sentence Transformers is not installed: run `pip install 'tomewise[sentence-transformers]'`"
        ) from error
    version = str(getattr(sentence_transformers, "__version__", ""))
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) < LEAST:
        raise MissingDependency(
            f"Sentence Transformers {version or 'of an unknown version'} is too old, because it runs code that comes "
            f"with a model: run `pip install 'sentence-transformers>={LEAST}'`"
        )
    return sentence_transformers
