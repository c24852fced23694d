"""What the first passages offer to a rewriting of the question: names, and the words by which they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tomewise.language.extractive.names import find_mentions
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.recall.mentions import select_named
from tomewise.recall.rewriting import Lead, is_familiar, take_stems
from tomewise.recall.title_links import strip_title
from tomewise.store.lookups import find_derived
from tomewise.types import Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Readable


class Leads(Protocol):
    """Finds the leads among the first passages of a ranking, by key, in their order."""

    def find_leads(self, question: str, vector: NDArray[np.float32], first: Mapping[int, Passage]) -> list[Lead]: ...


class TitleLeads:
    """Passages that are known by their title: the question has at least half of its words.

    Their names are those in the text, found by their form (`language.extractive.names`), which the question does not
    name, not even by half of their words: "Ellis, Kansas" leads nowhere in a question about Kansas.
    """

    def find_leads(self, question: str, vector: NDArray[np.float32], first: Mapping[int, Passage]) -> list[Lead]:
        """See `Leads`."""
        stems = take_stems(question)
        titles = {passage.id: strip_title(passage.title) for passage in first.values()}
        return [
            Lead(
                passage.id,
                [name for name in list_names(passage.text) if not is_familiar(name, stems)],
                take_stems(titles[passage.id]),
            )
            for passage in first.values()
            if is_familiar(titles[passage.id], stems)
        ]


class GraphLeads:
    """All passages; their names are the entities extracted from them.

    A passage is known by those that the question names, or, if there are none, by its title as in `TitleLeads`. Names
    are in the order of the store; with `nearest_first`, those nearest to the question come first.
    """

    def __init__(self, store: Readable, names: GraphNames, *, nearest_first: bool = False) -> None:
        self._store = store
        self._names = names
        self._nearest_first = nearest_first

    def find_leads(self, question: str, vector: NDArray[np.float32], first: Mapping[int, Passage]) -> list[Lead]:
        """See `Leads`."""
        linked = find_derived(self._store, first, f"seen-in:{self._names.entities}")
        keys = sorted({entity for group in linked.values() for entity in group})
        if self._nearest_first:
            found, cosines = self._store.scores(self._names.entities, vector, among=np.array(keys, np.int64))
            keys = found[np.argsort(-cosines, kind="stable")].tolist()
        entities = self._store.nodes_at(keys)
        stems = take_stems(question)
        leads = []
        for key, passage in first.items():
            own = set(linked[key])
            names = [entity.text for entity_key, entity in entities.items() if entity_key in own]
            known = {each for name in select_named(question, names) for each in take_stems(name)}
            title = strip_title(passage.title)
            if not known and is_familiar(title, stems):
                known.update(take_stems(title))
            leads.append(Lead(passage.id, names, known))
        return leads


def list_names(text: str) -> list[str]:
    """The names and quoted titles in a text, each once, in their order."""
    return list(dict.fromkeys(mention.text for mention in find_mentions(text) if mention.kind in {"name", "title"}))
