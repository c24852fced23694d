"""What a round of searches brings to the role that changes points: nothing twice, and nothing that it has read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tomewise.language.sentences import split_sentences
from tomewise.loops.desk import Desk
from tomewise.loops.evidence import fit_to_budget
from tomewise.loops.exploring import Search
from tomewise.loops.repeats import drop_near_repeats, fold
from tomewise.recall.entity_graph import FoundEntity
from tomewise.types import Evidence, NodeId


@dataclass(frozen=True, slots=True)
class Material:
    """What a round found, as the model sees it. `evidence` are relations and passages."""

    queries: Sequence[str]
    entities: Sequence[FoundEntity]
    evidence: Sequence[Evidence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Tokens for the relations and the passages of each search, and for the description of each entity."""

    relations: int
    passages: int
    description: int


@dataclass(slots=True)
class Reading:
    """What the role has read for one question: evidence, and sentences about entities."""

    desk: Desk
    nodes: set[NodeId] = field(default_factory=set)
    sentences: set[str] = field(default_factory=set)

    def select(self, searches: Sequence[Search], room: Room) -> Material:
        """What is new and fits; it counts as read from now on. Relations that quote a passage are left out."""
        passages = self._fit([search.found.passages for search in searches], room.passages)
        relations = self._fit([search.found.relations for search in searches], room.relations)
        passages = self.desk.put_in_order(passages)
        kept = {piece.node for piece in drop_near_repeats([*passages, *relations])}
        relations = [piece for piece in relations if piece.node in kept]
        texts = [piece.text for piece in (*relations, *passages)]
        found = {entity.id: entity for search in searches for entity in search.found.entities}
        spelt = "\n".join([*(entity.name for entity in found.values() if not entity.name.islower()), *texts])
        entities = [
            replace(entity, name=_spell(entity.name, spelt))
            for entity in self._describe(found.values(), texts, room.description)
        ]
        relations = [replace(piece, title=_spell(piece.title, spelt)) for piece in relations]
        return Material([search.concern.query for search in searches], entities, [*relations, *passages])

    def _fit(self, found: Iterable[Sequence[Evidence]], room: int) -> list[Evidence]:
        """Of each list the new pieces that have room."""
        fitting: list[Evidence] = []
        for pieces in found:
            new = [piece for piece in pieces if piece.node not in self.nodes]
            chosen = fit_to_budget(new, room, self.desk.count)
            self.nodes.update(piece.node for piece in chosen)
            fitting += chosen
        return fitting

    def _describe(self, entities: Iterable[FoundEntity], shown: Sequence[str], room: int) -> Iterator[FoundEntity]:
        """The entities with sentences that are new, and those of which the graph has the name alone."""
        folded = [fold(text) for text in shown]
        for entity in entities:
            sentences = []
            left = room
            for sentence in split_sentences(entity.text):
                wording = fold(sentence.text)
                if wording in self.sentences or any(wording in text for text in folded):
                    continue
                left -= self.desk.count([sentence.text])[0]
                if left < 0:
                    break
                self.sentences.add(wording)
                sentences.append(" ".join(sentence.text.split()))
            if sentences or (not entity.text and entity.id not in self.nodes):
                yield replace(entity, text=" ".join(sentences))
            self.nodes.add(entity.id)


def _spell(names: str, texts: str) -> str:
    """Names in small letters, with commas between them, as the texts write them; others stay as they are."""
    return ", ".join(_find_spelling(name, texts) if name.islower() else name for name in names.split(", "))


def _find_spelling(name: str, texts: str) -> str:
    words = r"\W{1,3}".join(map(re.escape, name.split()))
    found = re.search(rf"\b{words}\b", texts, re.IGNORECASE)
    return " ".join(found[0].split()) if found else name
