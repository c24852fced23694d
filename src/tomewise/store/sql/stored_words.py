"""Search for words in the passages of a tome, and which nodes are within a scope."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tomewise.store.records import PASSAGES
from tomewise.store.sql.lexical import find_terms, make_phrase
from tomewise.store.sql.mirror import Keys
from tomewise.store.sql.scope import ScopeKeys
from tomewise.store.sql.stored_notes import Reading
from tomewise.types import Scope


class StoredWords(Reading):
    """See `store.contract.Words`, and `keys_within` of `Texts`."""

    _scopes: ScopeKeys

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> Keys | None:
        """The keys of the nodes of a layer within a scope. They are cached until what decides about them changes."""
        return None if scope is None or scope == Scope() else self._scopes.find(scope, layer)

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        """Passage keys with their BM25 scores, best first. A passage needs to hold only one of the words."""
        if not (terms := find_terms(query)):
            return []
        keys = self.keys_within(within)
        with self.read() as connection:
            return self.dialect.search_words(connection, terms, limit, keys)

    def find_holders(self, words: Iterable[str], among: Keys) -> list[tuple[int, Keys]]:
        """For each word, how many passages hold it, and those of `among` that do."""
        phrases = [make_phrase(word) for word in words]
        with self.read() as connection:
            return [
                self.dialect.find_holders(connection, phrase, among) if phrase else (0, np.empty(0, np.int64))
                for phrase in phrases
            ]
