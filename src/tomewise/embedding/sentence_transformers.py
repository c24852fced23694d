"""Embedding models of the library Sentence Transformers (torch)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tomewise.embedding.unit_rows import Vectors, embed_as_unit_rows, read_tokenizer
from tomewise.errors import MissingDependency, ModelUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LONGEST = 512  # tokens; passages are never longer, even if the model can take more
BATCH = 32
LEAST = 6  # the first major version that never runs code of a local folder without consent


class SentenceTransformersEmbedder:
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

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed_as_unit_rows(texts, self.dimensions, self.max_tokens, self._embed_distinct)

    def _embed_distinct(self, texts: list[str]) -> Vectors:
        vectors: Vectors = self._model.encode(texts, batch_size=BATCH, convert_to_numpy=True, show_progress_bar=False)
        return vectors

    @cached_property
    def _model(self) -> Any:
        library = _import_library()
        try:
            return library.SentenceTransformer(self._model_name, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise ModelUnavailable(
                f"Sentence Transformers could not load {self._model_name!r} ({error}): check the name and the network"
            ) from error


def _import_library() -> Any:
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
