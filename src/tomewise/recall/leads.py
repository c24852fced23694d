"""What the first passages offer to a rewriting of the question: names, and the words by which they are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tomewise.language.extractive.names import mentions
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.mentions import find_named_entities
from tomewise.recall.rewriting import Lead, is_familiar, take_stems
from tomewise.recall.title_links import bare_title
from tomewise.types import Evidence

if TYPE_CHECKING:
    from tomewise.store.contract import Texts


class Leads(Protocol):
    """Finds the leads among the first passages of a ranking, in their order."""

    def find_leads(self, question: str, first: Sequence[Evidence]) -> list[Lead]: ...


class TitleLeads:
    """Passages that are known by their title: the question has at least half of its words.

    Their names are those in the text, found by their form (`language.extractive.names`), which the question does not
    name, not even by half of their words: "Ellis, Kansas" leads nowhere in a question about Kansas.
    """

    def find_leads(self, question: str, first: Sequence[Evidence]) -> list[Lead]:
        """See `Leads`."""
        stems = take_stems(question)
        titles = {piece.node: bare_title(piece.title) for piece in first}
        return [
            Lead(
                piece.node,
                [name for name in list_names(piece.text) if not is_familiar(name, stems)],
                take_stems(titles[piece.node]),
            )
            for piece in first
            if is_familiar(titles[piece.node], stems)
        ]


class GraphLeads:
    """All passages; their names are the entities extracted from them.

    A passage is known by those that the question names, or, if there are none, by its title as in `TitleLeads`.
    """

    def __init__(self, store: Texts, names: GraphNames) -> None:
        self._store = store
        self._names = names

    def find_leads(self, question: str, first: Sequence[Evidence]) -> list[Lead]:
        """See `Leads`."""
        keys = self._store.keys_of(piece.node for piece in first)
        linked = self._store.find_derived(keys.values(), f"seen-in:{self._names.entities}")
        entities = self._store.nodes_at(sorted({entity for group in linked.values() for entity in group}))
        named = find_named_entities(self._store, self._names, question)
        stems = take_stems(question)
        leads = []
        for piece in first:
            own = [entity for entity in sorted(linked.get(keys.get(piece.node, -1), ())) if entity in entities]
            known = {each for entity in own if entity in named for each in take_stems(named[entity])}
            title = bare_title(piece.title)
            if not known and is_familiar(title, stems):
                known.update(take_stems(title))
            leads.append(Lead(piece.node, [entities[entity].text for entity in own], known))
        return leads


def list_names(text: str) -> list[str]:
    """The names and quoted titles in a text, each once, in their order."""
    return list(dict.fromkeys(mention.text for mention in mentions(text) if mention.kind in {"name", "title"}))
