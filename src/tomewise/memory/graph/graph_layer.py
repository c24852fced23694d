"""A graph of entities and facts, read from passages or from what was made of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import func, select

from tomewise.errors import UsageError
from tomewise.language.roles import (
    EXTRACT_ENTITIES,
    EXTRACT_FACTS,
    EXTRACT_RELATIONS,
    EXTRACT_TRIPLES,
    ExtractIn,
    PassageIn,
)
from tomewise.memory.ask_each import play_each
from tomewise.memory.graph.descriptions import Descriptions
from tomewise.memory.graph.extraction import Extraction
from tomewise.memory.graph.graph_names import Calls, GraphNames, Style
from tomewise.memory.graph.graph_rows import Found, GraphRows
from tomewise.memory.graph.relations import read_relations
from tomewise.memory.graph.triples import read_at_once, read_in_two
from tomewise.memory.grounds import grounds
from tomewise.memory.reply_lengths import Typical, reply_tokens
from tomewise.store.sqlite.schema import intake
from tomewise.store.sqlite.write import PASSAGES
from tomewise.types import Change, Embedder, Estimate, In, LanguageModel, LayerReport, Out, PassageId, Progress, Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.memory.imports.given_triples import Imported
    from tomewise.store.sqlite.store import SqliteStore
    from tomewise.types import Role

_READERS: Mapping[tuple[str, int], Callable[[LanguageModel, PassageIn], Awaitable[Extraction]]] = {
    ("triples", 1): read_at_once,
    ("triples", 2): read_in_two,
    ("relations", 1): read_relations,
}
# As long as gpt-3.5's triples of 1,890 Wikipedia passages and GPT-4o's relations of 754 passages of a novel were.
_TRIPLES, _RELATIONS = Typical(70, 0.95), Typical(0, 1.8)
_ENTITIES, _ONLY_TRIPLES = Typical(15, 0.2), Typical(55, 0.75)
_TOGETHER = 2048  # texts embedded between two reports of progress
_HUB = 0.5  # share of the passages past which an entity tells none of them from another
_FEW = 20  # passages of which a share says nothing yet


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to be read, and the passages that it speaks for."""

    given: PassageIn
    passages: tuple[PassageId, ...]


class GraphLayer:
    """Entities, facts and synonyms (HippoRAG 2, section 3; CogitoRAG, section 4.2; HGMem's offline graph).

    `source` is "passages", or a layer made from them: its texts are read, and what they say is laid to the passages
    they rest on. `style` "triples" reads names and triples, in one call or, with `calls=2` as in both papers, in two;
    "relations" reads typed entities and relationships with descriptions. What the parts are called: `GraphNames`.

    A pure function of its source: what was extracted from a text depends on that text alone, and entities, facts and
    synonyms follow from the set of extractions, whatever their order. Deviations: entities are all names extracted and
    not only those in triples (recall can tell them apart by `ends`); synonyms are not capped, so that they do not
    depend on their neighbours; a fact of a thing with itself keeps one edge, to its head.
    """

    def __init__(
        self,
        store: SqliteStore,
        model: LanguageModel,
        embedder: Embedder,
        *,
        source: str = "passages",
        style: Style = "triples",
        calls: Calls = 1,
    ) -> None:
        if (style, calls) not in _READERS:
            raise UsageError(f"a graph of {style!r} in {calls} calls: choose triples (1 or 2 calls) or relations (1)")
        self.names = GraphNames(source, style, calls)
        self._store = store
        self._model = model
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self.names.layer

    @property
    def parts(self) -> tuple[str, ...]:
        """The names under which its nodes are kept."""
        return (self.names.entities, self.names.facts, self.names.mentions, self.names.descriptions)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.names.source,)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Read what is new. A text whose reading failed is recorded and read again by the next build."""
        texts = await asyncio.to_thread(self._texts, change.added)
        read = partial(_READERS[self.names.style, self.names.calls], self._model)
        inputs = {key: text.given for key, text in texts.items()}
        replies = await play_each(inputs, read, report, f"{self.names.source} read into {self.names.style}")
        return await self._take(texts, replies, replies.failed, report, removed=change.removed)

    async def take(self, imported: Imported, report: Report) -> LayerReport:
        """Take in extractions from elsewhere instead of asking for them; what was taken in before stays as it is.

        They stand in for reading passages, in however many calls. Raises UsageError, see `check_takes`.
        """
        self.check_takes(imported)
        done = (await asyncio.to_thread(self._store.intake, self.name)).done
        fresh = {key: found for key, found in imported.extractions.items() if key not in done}
        texts = await asyncio.to_thread(self._texts, tuple(fresh))
        return await self._take(texts, fresh, {}, report, removed=False)

    def check_takes(self, imported: Imported) -> None:
        """Raises UsageError when the graph is of another style, or read from what was made of passages.

        What gists or summaries say is not what their passages say: graphs of all three would be equal.
        """
        if self.names.style != imported.style:
            raise UsageError(f"{imported.style} cannot be imported into {self.name}: build one of {imported.style}")
        if self.names.source != PASSAGES:
            raise UsageError(
                f"extractions of passages cannot be imported into {self.name}, which is read from {self.names.source}: "
                "build it without them, or a graph of passages with them"
            )

    async def estimate(self, change: Change) -> Estimate:
        """Calls for each distinct text to be read; a text not made yet counts as long as its passage.

        Merging long descriptions (of relations) is not reckoned with: what they will hold is not known.
        """
        given = await asyncio.to_thread(self._awaited, change)
        extracts = [ExtractIn(text=one.text, title=one.title) for one in given]
        if self.names.style == "relations":
            asked = [await self._reckoned(EXTRACT_RELATIONS, given, _RELATIONS)]
        elif self.names.calls == 1:
            asked = [await self._reckoned(EXTRACT_FACTS, extracts, _TRIPLES)]
        else:
            asked = [await self._reckoned(EXTRACT_ENTITIES, given, _ENTITIES)]
            tokens, reply = await self._reckoned(EXTRACT_TRIPLES, extracts, _ONLY_TRIPLES)
            asked.append((tokens + asked[0][1], reply))  # the second call is given what the first one found
        return Estimate(
            layer=self.name,
            calls=len(asked) * len(given),
            input_tokens=sum(tokens for tokens, _ in asked),
            output_tokens=sum(reply for _, reply in asked),
        )

    async def _reckoned(self, role: Role[In, Out], inputs: Sequence[In], typical: Typical) -> tuple[int, int]:
        """Tokens that go in and out when a role is asked about texts."""
        texts = [str(getattr(given, "text", "")) for given in inputs]
        reply = await reply_tokens(self._store, self._model, role, typical, inputs, texts)
        return sum(self._model.reckon(role, given) for given in inputs), reply

    def _awaited(self, change: Change) -> list[PassageIn]:
        """The distinct texts that a build would read."""
        given = [text.given for text in self._texts(change.added).values()]
        if self.names.source != PASSAGES:
            made = self._store.intake(self.names.source).done
            unmade = [key for key in self._store.node_keys(PASSAGES) if key not in made]
            passages = self._store.passages(unmade).values()
            given += [PassageIn(text=passage.text, title=passage.title) for passage in passages]
        return list({(one.title, one.text): one for one in given}.values())

    def _texts(self, keys: Sequence[int]) -> dict[int, _Text]:
        if self.names.source == PASSAGES:
            ground = {key: [key] for key in keys}
            said: dict[int, str] = {}
        else:
            ground = grounds(self._store, keys, self.names.source)
            said = {key: node.text for key, node in self._store.nodes_at(keys).items()}
        passages = self._store.passages(dict.fromkeys(key for some in ground.values() for key in some))
        texts = {}
        for key, some in ground.items():
            below = [passages[one] for one in some]
            text = said[key] if said else below[0].text
            given = PassageIn(text=text, title=below[0].title)
            texts[key] = _Text(given, tuple(passage.id for passage in below))
        return texts

    async def _take(
        self,
        texts: Mapping[int, _Text],
        read: Mapping[int, Extraction],
        failed: Mapping[int, str],
        report: Report,
        *,
        removed: bool,
    ) -> LayerReport:
        found = [Found(texts[key].passages, extraction) for key, extraction in read.items()]
        rows = GraphRows(self._store, self.names)
        await asyncio.to_thread(rows.read, found)
        vectors = [await self._embedded(fresh, report) for fresh in rows.texts()]
        await asyncio.to_thread(rows.relate, vectors[0])
        descriptions = Descriptions(self._store, self._model, self.names)
        merged = await descriptions.merge(rows.mentions, report, everything=removed)
        dirt = sum((Counter(extraction.dirt) for extraction in read.values()), Counter[str]())
        record = await asyncio.to_thread(self._record, len(read), dirt)

        def commit() -> int:
            with self._store.write() as change:
                added = rows.put(change, vectors)
                descriptions.put(change, merged)
                change.record_intake(self.name, read, failed)
                change.record_build(self.name, record)
            return added

        added = await asyncio.to_thread(commit)
        notes = [f"left out or mended: {count} {kind}" for kind, count in sorted(dirt.items())]
        notes += await asyncio.to_thread(self._hubs, record["taken"])
        return LayerReport(layer=self.name, added=added, failed=dict(failed), notes=(*notes, *merged.notes))

    async def _embedded(self, texts: Sequence[str], report: Report) -> NDArray[np.float32]:
        rows = [np.empty((0, self._embedder.dimensions), np.float32)]
        for start in range(0, len(texts), _TOGETHER):
            rows.append(await asyncio.to_thread(self._embedder.embed, texts[start : start + _TOGETHER]))
            done = min(start + _TOGETHER, len(texts))
            report(Progress(label=f"parts of {self.name} embedded", done=done, total=len(texts)))
        return np.concatenate(rows)

    def _record(self, read: int, dirt: Counter[str]) -> dict[str, Any]:
        """The build record: `taken` texts in all; `dirt` counts by kind over all builds, removals notwithstanding."""
        before = self._store.builds().get(self.name, {}).get("dirt", {})
        done = select(func.count()).where(intake.c.layer == self.name, intake.c.failure == "")
        with self._store.read() as connection:
            taken = connection.execute(done).scalar_one()
        return {
            "taken": taken + read,
            "model": self._model.name,
            "calls": self.names.calls,
            "dirt": dict(sorted((dirt + Counter(before)).items())),
        }

    def _hubs(self, texts: int) -> list[str]:
        """Entities in so many passages that they tell none from another; recall weighs them down by that number."""
        if texts < _FEW:
            return []
        counts = np.bincount(self._store.edges(f"seen-in:{self.names.entities}").rows[:, 0].astype(np.int64))
        hubs = np.flatnonzero(counts > _HUB * texts)
        names = sorted(node.text for node in self._store.nodes_at(hubs.tolist()).values())
        return [f"{name!r} is named in more than half of the passages" for name in names[:5]]
