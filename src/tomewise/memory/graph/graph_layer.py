"""A graph of entities and facts, read from passages or from a layer made from passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tomewise.calls import CallCount
from tomewise.concurrency import run_in_thread
from tomewise.errors import ModelError, UsageError
from tomewise.extras import GRAPH
from tomewise.fallbacks import count_fallbacks, write_notes
from tomewise.language.per_role import join_names
from tomewise.language.roles import (
    EXTRACT_ENTITIES,
    EXTRACT_FACTS,
    EXTRACT_RELATIONS,
    EXTRACT_TRIPLES,
    ExtractIn,
    PassageIn,
)
from tomewise.language.together import reckon_together
from tomewise.memory.ask_each import run_groups
from tomewise.memory.graph.descriptions import Descriptions
from tomewise.memory.graph.extraction import Extraction
from tomewise.memory.graph.graph_names import Calls, GraphNames, Style
from tomewise.memory.graph.graph_rows import GraphRows, SourcedExtraction
from tomewise.memory.graph.relations import read_relations
from tomewise.memory.graph.triples import read_at_once, read_in_two
from tomewise.memory.grounds import find_grounds
from tomewise.memory.leading import find_leads
from tomewise.memory.neighbours import Groups, Position, add_size, check_size, group_neighbours
from tomewise.memory.reply_lengths import Typical, estimate_reply_tokens
from tomewise.memory.steps import sum_tokens
from tomewise.store.records import PASSAGES
from tomewise.types import Change, Embedder, Estimate, In, LanguageModel, LayerReport, Out, PassageId, Progress, Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.memory.imports.given_triples import Imported
    from tomewise.store.contract import Store
    from tomewise.types import Role

_Reader: TypeAlias = Callable[[LanguageModel, Sequence[PassageIn], int], Awaitable[list[Extraction | ModelError]]]
_READERS: Mapping[tuple[str, int], _Reader] = {
    ("triples", 1): read_at_once,
    ("triples", 2): read_in_two,
    ("relations", 1): read_relations,
}
# Measured on gpt-3.5's triples of 1,890 Wikipedia passages and GPT-4o's relations of 754 passages of a novel.
_TRIPLES, _RELATIONS = Typical(70, 0.95), Typical(0, 1.8)
_ENTITIES, _ONLY_TRIPLES = Typical(15, 0.2), Typical(55, 0.75)
_BATCH_SIZE = 2048  # texts to embed before each report of progress
_HUB = 0.5  # an entity in a larger share of the passages does not distinguish them
_FEWEST_TEXTS = 20  # with fewer texts a share of them means little


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to read, the passages that it was made from, and the position of the first of them."""

    content: PassageIn
    passages: tuple[PassageId, ...]
    position: Position


class GraphLayer:
    """Entities, facts and synonyms (HippoRAG 2, section 3; CogitoRAG, section 4.2; HGMem's offline graph).

    `source` is "passages", or a layer made from passages. The layer reads the texts of its source and assigns their
    entities and facts to the passages that the texts rest on. `style` "triples" reads names and triples, in one call,
    or in two with `calls=2` as in both papers. "relations" reads typed entities and relationships with descriptions.
    `GraphNames` has the names of the parts. One call reads the triples of up to `together` neighbouring texts.

    The graph is a pure function of its source: the extraction of a text depends on that text and, for a passage, on
    what stands before it in its document (`memory.leading`); entities, facts and synonyms follow from the set of
    extractions in any order. Deviations: all extracted names become entities, not only those in triples (recall can
    distinguish them by `ends`); the number of synonyms is not limited, so that they do not depend on their neighbours;
    a fact that links an entity to itself has one edge, to its head.
    """

    def __init__(
        self,
        store: Store,
        model: LanguageModel,
        embedder: Embedder,
        *,
        source: str = "passages",
        style: Style = "triples",
        calls: Calls = 1,
        together: int = 1,
    ) -> None:
        if (style, calls) not in _READERS:
            raise UsageError(f"a graph of {style!r} in {calls} calls: choose triples (1 or 2 calls) or relations (1)")
        if style == "relations" and together != 1:
            raise UsageError(f"relations with together={together}: they are read from one text at a time")
        self.together = check_size(together)
        self.names = GraphNames(source, style, calls)
        self._store = store
        self._model = model
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self.names.layer

    @property
    def extra(self) -> str:
        """A graph of triples is made for walks, which need the extra. One of relations can be searched without it."""
        return GRAPH if self.style == "triples" else ""

    @property
    def source(self) -> str:
        """The node layer whose texts it reads."""
        return self.names.source

    @property
    def style(self) -> Style:
        """The style of its extractions."""
        return self.names.style

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.names.entities, self.names.facts, self.names.mentions, self.names.descriptions)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.names.source,)

    @property
    def calls(self) -> CallCount:
        text = "passage" if self.names.source == PASSAGES else f"text of {self.names.source}"
        if self.names.style == "relations":
            return CallCount(f"1 a {text} and 1 for every long description")
        count = self.names.calls
        if self.together == 1:
            return CallCount(f"{count} a {text}", count)
        alone = f"{count} a {text} whose part of a reply is unusable"
        return CallCount(f"{count} for {self.together} neighbours and {alone}", 1.5 * count)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Read the new texts. A text whose call failed is recorded, and the next build reads it again."""
        texts = await run_in_thread(self._load_texts, change.added)
        groups = self._group(texts)
        inputs = {key: texts[key].content for keys in groups.keys for key in keys}
        label = f"{self.names.source} read into {self.names.style}"
        with count_fallbacks() as counts:
            replies = groups.share(await run_groups(inputs, groups.keys, self._read, report, label), texts)
        built = await self._take_extractions(texts, replies, replies.failed, report, removed=bool(change.removed))
        return replace(built, notes=(*built.notes, *write_notes(counts)))

    async def take(self, imported: Imported, report: Report) -> LayerReport:
        """Take in imported extractions instead of asking the model; texts that were taken in before do not change.

        The import replaces all calls of reading a passage. Raises UsageError, see `check_takes`.
        """
        self.check_takes(imported)
        done = (await run_in_thread(self._store.intake, self.name)).done
        fresh = {key: extraction for key, extraction in imported.extractions.items() if key not in done}
        texts = await run_in_thread(self._load_texts, tuple(fresh))
        removed = await run_in_thread(self._store.find_removed_ids, self.name)
        return await self._take_extractions(texts, fresh, {}, report, removed=bool(removed))

    def check_takes(self, imported: Imported) -> None:
        """Raise UsageError when the import has another style, or when the graph is not read from passages.

        Gists and summaries differ from their passages. With one import for all three, their graphs would be equal.
        """
        if self.names.style != imported.style:
            raise UsageError(f"{imported.style} cannot be imported into {self.name}: build a graph of {imported.style}")
        if self.names.source != PASSAGES:
            raise UsageError(
                f"extractions of passages cannot be imported into {self.name}, which is read from {self.names.source}: "
                "build it without them, or a graph of passages with them"
            )

    async def estimate(self, change: Change) -> Estimate:
        """The calls for each distinct text to read; a text that does not exist yet counts as long as its passage.

        The calls that merge long descriptions (of relations) are not counted, because their texts are not known.
        """
        groups = await run_in_thread(self._list_unread_texts, change)
        extracts = [[ExtractIn(**passage.model_dump()) for passage in group] for group in groups]
        if self.names.style == "relations":
            costs = [await self._estimate_tokens(EXTRACT_RELATIONS, groups, _RELATIONS)]
        elif self.names.calls == 1:
            costs = [await self._estimate_tokens(EXTRACT_FACTS, extracts, _TRIPLES)]
        else:
            costs = [await self._estimate_tokens(EXTRACT_ENTITIES, groups, _ENTITIES)]
            tokens, reply = await self._estimate_tokens(EXTRACT_TRIPLES, extracts, _ONLY_TRIPLES)
            costs.append((tokens + costs[0][1], reply))  # the second call reads the entities of the first
        return Estimate(
            layer=self.name,
            model=join_names(self._model, self._roles),
            calls=len(costs) * len(groups),
            input_tokens=sum(tokens for tokens, _ in costs),
            output_tokens=sum(reply for _, reply in costs),
        )

    @property
    def _roles(self) -> tuple[Role[Any, Any], ...]:
        """The roles that read a text."""
        if self.names.style == "relations":
            return (EXTRACT_RELATIONS,)
        return (EXTRACT_FACTS,) if self.names.calls == 1 else (EXTRACT_ENTITIES, EXTRACT_TRIPLES)

    async def _estimate_tokens(
        self, role: Role[In, Out], groups: Sequence[Sequence[In]], typical: Typical
    ) -> tuple[int, int]:
        """Estimate the input and output tokens of asking a role about each group of inputs."""
        inputs = [role_input for group in groups for role_input in group]
        texts = [str(getattr(role_input, "text", "")) for role_input in inputs]
        reply = await estimate_reply_tokens(self._store, self._model, role, typical, inputs, texts)
        return await sum_tokens(groups, lambda group: reckon_together(self._model, role, group, self.together)), reply

    async def _read(self, inputs: Sequence[PassageIn]) -> list[Extraction | ModelError]:
        return await _READERS[self.names.style, self.names.calls](self._model, inputs, self.together)

    def _group(self, texts: Mapping[int, _Text]) -> Groups[int]:
        inputs = {key: text.content for key, text in texts.items()}
        return group_neighbours(inputs, {key: text.position for key, text in texts.items()}, self.together)

    def _list_unread_texts(self, change: Change) -> list[list[PassageIn]]:
        """List the distinct texts that a build would read, in the groups of its calls."""
        texts = self._load_texts(change.added)
        if self.names.source != PASSAGES:
            done = self._store.intake(self.names.source).done
            unmade = [key for key in self._store.node_keys(PASSAGES) if key not in done]
            for key, passage in self._store.passages(unmade).items():
                content = PassageIn(text=passage.text, title=passage.title)
                texts[key] = _Text(content, (passage.id,), (passage.document, passage.position))
        return [[texts[key].content for key in keys] for keys in self._group(texts).keys]

    def _load_texts(self, keys: Sequence[int]) -> dict[int, _Text]:
        if self.names.source == PASSAGES:
            ground = {key: [key] for key in keys}
            source_texts: dict[int, str] = {}
        else:
            ground = find_grounds(self._store, keys, self.names.source)
            source_texts = {key: node.text for key, node in self._store.nodes_at(keys).items()}
        passages = self._store.passages(dict.fromkeys(passage for below in ground.values() for passage in below))
        # A gist or a summary names in full who is meant.
        leads = {} if source_texts else find_leads(self._store, passages.values())
        texts = {}
        for key, passage_keys in ground.items():
            below = [passages[passage_key] for passage_key in passage_keys]
            text = source_texts[key] if source_texts else below[0].text
            content = PassageIn(text=text, title=below[0].title, before=leads.get(below[0].id, ""))
            position = (below[0].document, below[0].position)
            texts[key] = _Text(content, tuple(passage.id for passage in below), position)
        return texts

    async def _take_extractions(
        self,
        texts: Mapping[int, _Text],
        read: Mapping[int, Extraction],
        failed: Mapping[int, str],
        report: Report,
        *,
        removed: bool,
    ) -> LayerReport:
        sourced = [SourcedExtraction(texts[key].passages, extraction) for key, extraction in read.items()]
        rows = GraphRows(self._store, self.names)
        await run_in_thread(rows.read, sourced)
        vectors = [await self._embed_texts(fresh, report) for fresh in rows.list_texts()]
        await run_in_thread(rows.relate, vectors[0])
        descriptions = Descriptions(self._store, self._model, self.names)
        summaries = await descriptions.merge(rows.mentions, report, everything=removed)
        dirt = sum((Counter(extraction.dirt) for extraction in read.values()), Counter[str]())
        record = await run_in_thread(self._make_record, len(read), dirt)

        def commit() -> int:
            with self._store.write() as change:
                added = rows.write(change, vectors)
                descriptions.write(change, summaries)
                change.record_intake(self.name, read, failed)
                change.record_build(self.name, record)
            return added

        added = await run_in_thread(commit)
        notes = [f"left out or mended: {count} {kind}" for kind, count in sorted(dirt.items())]
        notes += await run_in_thread(self._describe_hubs, record["taken"])
        return LayerReport(layer=self.name, added=added, failed=dict(failed), notes=(*notes, *summaries.notes))

    async def _embed_texts(self, texts: Sequence[str], report: Report) -> NDArray[np.float32]:
        rows = [np.empty((0, self._embedder.dimensions), np.float32)]
        for start in range(0, len(texts), _BATCH_SIZE):
            rows.append(await run_in_thread(self._embedder.embed, texts[start : start + _BATCH_SIZE]))
            done = min(start + _BATCH_SIZE, len(texts))
            report(Progress(label=f"parts of {self.name} embedded", done=done, total=len(texts)))
        return np.concatenate(rows)

    def _make_record(self, read: int, dirt: Counter[str]) -> dict[str, Any]:
        """Make the build record: `taken` counts all texts read, `dirt` counts by kind over all builds."""
        earlier = self._store.builds().get(self.name, {})
        return {
            "taken": self._store.count_intake(self.name) + read,
            "model": join_names(self._model, self._roles),
            "calls": self.names.calls,
            "together": add_size(earlier, self.together),
            "dirt": dict(sorted((dirt + Counter(earlier.get("dirt", {}))).items())),
        }

    def _describe_hubs(self, texts: int) -> list[str]:
        """Describe entities in most passages, which hardly help to find one; recall weights them down."""
        if texts < _FEWEST_TEXTS:
            return []
        counts = np.bincount(self._store.edges(f"seen-in:{self.names.entities}").rows[:, 0].astype(np.int64))
        hubs = np.flatnonzero(counts > _HUB * texts)
        names = sorted(node.text for node in self._store.nodes_at(hubs.tolist()).values())
        return [f"{name!r} is named in more than half of the passages" for name in names[:5]]
