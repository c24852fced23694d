"""A graph of entities and facts, read from passages or from a layer made from passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tomewise.calls import CallCount
from tomewise.concurrency import run_in_thread
from tomewise.errors import ModelError, UsageError
from tomewise.extras import GRAPH
from tomewise.language.roles import (
    EXTRACT_ENTITIES,
    EXTRACT_FACTS,
    EXTRACT_RELATIONS,
    EXTRACT_TRIPLES,
    GLEAN_RELATIONS,
    PassageIn,
)
from tomewise.language.wrapped import join_names
from tomewise.memory.build_records import read_build, record_build
from tomewise.memory.graph.extraction import Extraction, glean_relations, read_in_one_call, read_in_two_calls
from tomewise.memory.graph.graph_names import Calls, GraphNames, Style
from tomewise.memory.graph.graph_rows import GraphRows, SourcedExtraction
from tomewise.memory.grounds import find_grounds
from tomewise.memory.imports.extraction_file import Imported
from tomewise.memory.leading import find_leads
from tomewise.memory.mapped import Ask, MappedLayer, Plan, PlanResult
from tomewise.memory.neighbours import add_size
from tomewise.memory.token_estimates import Typical
from tomewise.store.contract import Store
from tomewise.store.lookups import read_pairs
from tomewise.store.records import PASSAGES
from tomewise.types import (
    Change,
    Cost,
    Embedder,
    LanguageModel,
    LayerReport,
    Passage,
    PassageId,
    Progress,
    Report,
    Role,
)

_Passages: TypeAlias = tuple[PassageId, ...]  # those that a text was made from
_Ask: TypeAlias = Ask[_Passages, PassageIn]
_Reader: TypeAlias = Callable[[LanguageModel, Sequence[PassageIn], int], Awaitable[list[Extraction | ModelError]]]
# The function that reads a text, by style and calls, and its roles with the usual lengths of their replies. These were
# measured on gpt-3.5's triples of 1,890 Wikipedia passages and GPT-4o's relations of 754 passages of a novel.
_READERS: Mapping[tuple[str, int], tuple[_Reader, Mapping[Role[Any, Any], Typical]]] = {
    ("triples", 1): (read_in_one_call, {EXTRACT_FACTS: Typical(70, 0.95)}),
    ("triples", 2): (read_in_two_calls, {EXTRACT_ENTITIES: Typical(15, 0.2), EXTRACT_TRIPLES: Typical(55, 0.75)}),
    ("relations", 1): (glean_relations, {EXTRACT_RELATIONS: Typical(0, 1.8)}),
}
_GLEANED = Typical(20, 0.3)  # a guess: what one more call finds
_BATCH_SIZE = 2048  # texts to embed before each report of progress
_HUB = 0.5  # an entity in a larger share of the passages does not distinguish them
_FEWEST_TEXTS = 20  # with fewer texts a share of them means little


class GraphLayer(MappedLayer[_Passages, PassageIn, Extraction]):
    """Entities, facts and synonyms (HippoRAG 2, section 3; CogitoRAG, section 4.2; HGMem's offline graph).

    `source` is "passages", or a layer made from passages. The layer reads the texts of its source and assigns their
    entities and facts to the passages that the texts were made from. `style` "triples" reads names and triples, in one
    call, or in two with `calls=2` as in both papers. "relations" reads typed entities and relationships with
    descriptions. `GraphNames` has the names of the parts. One call reads the triples of up to `together` neighbouring
    texts. Relations may have `gleanings`: so many further calls for each text, for what earlier ones missed (GraphRAG).

    The graph is a pure function of its source: the extraction of a text depends on that text and, for a passage, on
    the text before it in its document; entities, facts and synonyms follow from the set of extractions in any order.
    All extracted names become entities, not only those in triples, which `associative` needs; the walks of papers have
    the ends of facts alone. Deviations: the number of synonyms is not limited, so that they do not depend on their
    neighbours; a fact that links an entity to itself has one edge, to its head.
    """

    _embedder: Embedder

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
        gleanings: int = 0,
    ) -> None:
        if (style, calls) not in _READERS:
            raise UsageError(f"a graph of {style!r} in {calls} calls: choose triples (1 or 2 calls) or relations (1)")
        if style == "relations" and together != 1:
            raise UsageError(f"relations with together={together}: they are read from one text at a time")
        if gleanings and style != "relations":
            raise UsageError(f"a graph of {style} with gleanings={gleanings}: only relations are gleaned")
        self.names = GraphNames(source, style, calls, gleanings)
        self.name = self.names.layer
        self.needs = (source,)
        self.label = f"{source} read into {style}"
        self._read, self._typical = _READERS[style, calls]
        if gleanings:
            self._read = partial(glean_relations, gleanings=gleanings)
            self._typical = {**self._typical, GLEAN_RELATIONS: _GLEANED}
        super().__init__(store, model, embedder, together=together)

    @property
    def extra(self) -> str:
        """A graph of triples is made for walks, which need the extra. One of relations can be searched without it."""
        return GRAPH if self.names.style == "triples" else ""

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.names.entities, self.names.facts, self.names.mentions)

    @property
    def roles(self) -> tuple[Role[Any, Any], ...]:
        return tuple(self._typical)

    @property
    def calls(self) -> CallCount:
        text = "passage" if self.names.source == PASSAGES else f"text of {self.names.source}"
        count = self.names.calls + self.names.gleanings
        if self.together == 1:
            return CallCount(f"{'at most ' if self.names.gleanings else ''}{count} a {text}", count)
        alone = f"{count} a {text} whose part of a reply is unusable"
        return CallCount(f"{count} for {self.together} neighbours and {alone}", 1.5 * count)

    def plan(self, change: Change) -> Plan[_Passages, PassageIn]:
        """Read the new texts."""
        asks = self._load_asks(change.added)
        return Plan(asks, [key for ask in asks for key in ask.keys])

    async def ask_group(self, inputs: Sequence[PassageIn]) -> list[Extraction | ModelError]:
        """The extractions of neighbouring texts."""
        return await self._read(self._model, inputs, self.together)

    async def commit(self, result: PlanResult[_Passages, PassageIn, Extraction], report: Report) -> LayerReport:
        """Write what the extractions add to the graph."""
        asks = result.plan.asks
        read = [(asks[index].subject, each) for index, each in result.replies.items()]
        return await self._add_extractions(read, result.taken, result.failed, report)

    async def import_extractions(self, imported: Imported, report: Report) -> LayerReport:
        """Add imported extractions instead of asking the model; texts that were processed before do not change.

        The import replaces all calls of reading a passage. Raises UsageError, see `check_import`.
        """
        self.check_import(imported)
        done = (await run_in_thread(self._store.intake, self.name)).done
        fresh = {key: extraction for key, extraction in imported.extractions.items() if key not in done}
        asks = await run_in_thread(self._load_asks, tuple(fresh))
        read = [(ask.subject, fresh[key]) for ask in asks for key in ask.keys]
        return await self._add_extractions(read, [key for ask in asks for key in ask.keys], {}, report)

    def check_import(self, imported: Imported) -> None:
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

    def foresee(self, change: Change) -> list[_Ask]:
        """The texts to read; one that does not exist yet counts as long as its passage."""
        asks = self._load_asks(change.added)
        if self.names.source != PASSAGES:
            done = self._store.intake(self.names.source).done
            unmade = [key for key in self._store.node_keys(PASSAGES) if key not in done]
            asks += [
                _make_ask(key, PassageIn(text=passage.text, title=passage.title), [passage])
                for key, passage in self._store.passages(unmade).items()
            ]
        return asks

    async def estimate_calls(self, groups: Sequence[Sequence[PassageIn]]) -> Cost:
        """Each call about each group; a second call reads the first reply."""
        costs = [
            await self.estimate_role(role, typical, [[_widen(role, text) for text in group] for group in groups])
            for role, typical in self._typical.items()
        ]
        costs += costs[-1:] * (self.names.gleanings - 1)
        return sum(costs, Cost(input_tokens=sum(cost.output_tokens for cost in costs[:-1])))

    def _load_asks(self, keys: Sequence[int]) -> list[_Ask]:
        grounds = find_grounds(self._store, keys, self.names.source)
        passages = self._store.passages(dict.fromkeys(chain.from_iterable(grounds.values())))
        # A gist or a summary names in full who is meant; a passage does not.
        leads = find_leads(self._store, passages.values()) if self.names.source == PASSAGES else {}
        asks = []
        for key, node in self._store.nodes_at(keys).items():
            below = [passages[ground] for ground in grounds[key]]
            role_input = PassageIn(text=node.text, title=below[0].title, before=leads.get(node.id, ""))
            asks.append(_make_ask(key, role_input, below))
        return asks

    async def _add_extractions(
        self, read: Sequence[SourcedExtraction], taken: Sequence[int], failed: Mapping[int, str], report: Report
    ) -> LayerReport:
        rows = GraphRows(self._store, self.names)
        await run_in_thread(rows.gather, read)
        vectors = [await self._embed_texts(fresh, report) for fresh in rows.list_texts()]
        await run_in_thread(rows.find_synonyms, vectors[0])
        faults = sum((Counter(extraction.faults) for _, extraction in read), Counter[str]())

        def commit() -> LayerReport:
            earlier = read_build(self._store, self.name)
            texts = self._store.count_taken(self.name) + len(taken)  # that were read in all builds
            record = {
                "taken": texts,
                "model": join_names(self._model, self.roles),
                "calls": self.names.calls,
                "together": add_size(earlier, self.together),
                "dirt": dict(sorted((faults + Counter(earlier.get("dirt", {}))).items())),  # over all builds
            }
            with self._store.write() as change:
                added = rows.write(change, vectors)
                change.record_intake(self.name, taken, failed)
                record_build(change, self.name, record)
            notes = [f"left out or mended: {count} {kind}" for kind, count in sorted(faults.items())]
            notes += self._describe_hubs(texts)
            return LayerReport(layer=self.name, added=added, failed=dict(failed), notes=tuple(notes))

        return await run_in_thread(commit)

    async def _embed_texts(self, texts: Sequence[str], report: Report) -> NDArray[np.float32]:
        rows = [np.empty((0, self._embedder.dimensions), np.float32)]
        label, total = f"parts of {self.name} embedded", len(texts)
        for start in range(0, total, _BATCH_SIZE):
            report(Progress(label=label, done=start, total=total))
            rows.append(await run_in_thread(self._embedder.embed, texts[start : start + _BATCH_SIZE]))
        if texts:
            report(Progress(label=label, done=total, total=total))
        return np.concatenate(rows)

    def _describe_hubs(self, texts: int) -> list[str]:
        """Describe entities in most passages, which hardly help to find one; recall weights them down."""
        if texts < _FEWEST_TEXTS:
            return []
        counts = np.bincount(read_pairs(self._store, f"seen-in:{self.names.entities}")[:, 0])
        hubs = np.flatnonzero(counts > _HUB * texts)
        names = sorted(node.text for node in self._store.nodes_at(hubs.tolist()).values())
        return [f"{name!r} is named in more than half of the passages" for name in names[:5]]


def _widen(role: Role[Any, Any], text: PassageIn) -> PassageIn:
    """The text as the input of a role, without what an earlier call would add."""
    return text if type(text) is role.input else role.input(**text.model_dump())


def _make_ask(key: int, role_input: PassageIn, below: Sequence[Passage]) -> _Ask:
    """Ask about a text that was made from these passages; the first says which texts are its neighbours."""
    first = below[0]
    passages = tuple(passage.id for passage in below)
    return Ask(subject=passages, role_input=role_input, keys=(key,), position=(first.document, first.position))
