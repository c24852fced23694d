"""Search for words in the passages of a tome, and which nodes are within a scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from sqlalchemy import Connection

from tomewise.store.records import PASSAGES
from tomewise.store.sql.lexical import find_terms, make_phrase
from tomewise.store.sql.mirror import Keys
from tomewise.store.sql.scope import ScopeKeys
from tomewise.store.sql.stored_notes import Reading, reads
from tomewise.types import Scope


class StoredWords(Reading):
    """See `store.contract.Words`, and `keys_within` of `Texts`."""

    _scopes: ScopeKeys

    def keys_within(self, scope: Scope | None, layer: str = PASSAGES) -> Keys | None:
        """The keys of the nodes of a layer within a scope. They are cached until what decides about them changes."""
        return None if scope is None or scope == Scope() else self._find_keys(scope, layer)

    @reads
    def _find_keys(self, connection: Connection, scope: Scope, layer: str) -> Keys:
        return self._scopes.find(scope, layer, connection)

    def lexical(self, query: str, limit: int, *, within: Scope | None = None) -> list[tuple[int, float]]:
        """Passage keys with their BM25 scores, best first. A passage needs to hold only one of the words."""
        terms = find_terms(query)
        return self._search_words(terms, limit, self.keys_within(within)) if terms else []

    @reads
    def _search_words(
        self, connection: Connection, terms: Sequence[str], limit: int, keys: Keys | None
    ) -> list[tuple[int, float]]:
        return self.dialect.search_words(connection, terms, limit, keys)

    @reads
    def find_holders(self, connection: Connection, words: Iterable[str], among: Keys) -> list[tuple[int, Keys]]:
        """For each word, how many passages hold it, and those of `among` that do."""
        phrases = [make_phrase(word) for word in words]
        return [
            self.dialect.find_holders(connection, phrase, among) if phrase else (0, np.empty(0, np.int64))
            for phrase in phrases
        ]
