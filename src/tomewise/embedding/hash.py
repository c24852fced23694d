"""An embedder without weights: hashed words and character trigrams. For tests, and if no weights are available."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from tomewise.embedding.unit_rows import UnitRows, Vectors
from tomewise.errors import UsageError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORD = re.compile(r"\w+")
DEFAULT_DIMENSIONS = 256


class HashEmbedder(UnitRows):
    """Texts that share words, or parts of words, have a high cosine. The vectors are the same on every machine.

    A text is the set of its words in lower case. The features of a word are the word itself (weight 2) and, if it has
    more than three letters, its trigrams (weight 1). A hash gives each feature one dimension and one sign. A text
    without words has a fixed vector. Source: Weinberger et al., "Feature Hashing for Large Scale Multitask Learning",
    2009, section 2 (signed hashing).
    """

    max_tokens = 256

    def __init__(self, dimensions: int = DEFAULT_DIMENSIONS) -> None:
        if dimensions < 1:
            raise UsageError(f"an embedder cannot have {dimensions} dimensions: give 1 or more")
        self.dimensions = dimensions
        self.name = "hash" if dimensions == DEFAULT_DIMENSIONS else f"hash:{dimensions}"
        """`hash`, with the number of dimensions where it is not the usual one."""

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """A tokenizer that counts words and punctuation marks. All its ids are that of the unknown word."""
        from tokenizers import Tokenizer, models, pre_tokenizers

        tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    def _embed_distinct(self, texts: list[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            words = set(WORD.findall(text.lower())[: self.max_tokens])
            # Sums of small whole numbers are exact, so they do not depend on the order of the set.
            vectors[row] = sum((_hash_word(word, self.dimensions) for word in words), np.zeros(self.dimensions))
            if not vectors[row].any():
                vectors[row] = _hash_word("", self.dimensions)
        return vectors


@lru_cache(maxsize=20_000)
def _hash_word(word: str, dimensions: int) -> Vectors:
    vector = np.zeros(dimensions, np.float32)
    for feature, weight in _list_features(word):
        digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "little")
        vector[(digest >> 1) % dimensions] += weight if digest & 1 else -weight
    return vector


def _list_features(word: str) -> Iterator[tuple[str, float]]:
    yield f"word {word}", 2.0
    if len(word) > 3:
        marked = f"<{word[:100]}>"  # marks the first and the last trigram
        for start in range(len(marked) - 2):
            yield marked[start : start + 3], 1.0
