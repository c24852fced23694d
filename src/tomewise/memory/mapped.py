"""The driver of layers that map nodes to nodes: a layer declares what it asks about, and which nodes a reply makes.

The driver loads what is new, asks about several inputs in one call where the layer says so, estimates the calls, and
commits the nodes together with the keys that were processed, those that failed, and the record of the build.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import Any, Generic, TypeVar

from tomewise.calls import CallCount
from tomewise.concurrency import run_in_thread
from tomewise.errors import ModelError, UsageError
from tomewise.language.roles import PassageIn
from tomewise.language.together import MOST_TOGETHER, catch_failure, count_tokens_together
from tomewise.language.wrapped import join_names
from tomewise.memory.ask_each import Replies, run_groups
from tomewise.memory.build_records import read_build, record_build
from tomewise.memory.grounds import find_grounds
from tomewise.memory.neighbours import Groups, Position, add_size, group_neighbours
from tomewise.memory.proving import ask_proved, ask_proved_together
from tomewise.memory.token_estimates import Typical, estimate_reply_tokens, estimate_thoughts, sum_tokens
from tomewise.store.contract import Store
from tomewise.store.lookups import find_derived
from tomewise.store.records import PASSAGES
from tomewise.types import (
    Change,
    Cost,
    DocumentId,
    Embedder,
    Estimate,
    In,
    LanguageModel,
    LayerReport,
    Node,
    NodeId,
    Passage,
    Report,
    Role,
    content_id,
)

S = TypeVar("S")  # what an input is about: a passage, a node, or a group of these
R = TypeVar("R")  # what nodes are made of: the output of the role, or what a layer makes of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Generic[S, In]):
    """One input of the role, and what it is about.

    `keys` are the nodes below that fail with it. `position` says which inputs are neighbours. `node` is the id of its
    node, where this is known before the reply: if the node exists, the model is not asked.
    """

    subject: S
    """What the input is about, as the layer needs it later: a passage, a window."""
    role_input: In
    """The input."""
    keys: tuple[int, ...]
    position: Position
    node: NodeId = ""


@dataclass(frozen=True)
class Plan(Generic[S, In]):
    """What an update asks about. `keys` are the nodes below that it processes.

    `existing` are earlier nodes by key: those that no ask names are out of date.
    """

    asks: Sequence[Ask[S, In]]
    """In the order of the documents."""
    keys: Sequence[int]
    existing: Mapping[int, Node] = field(default_factory=dict)

    @property
    def due(self) -> dict[int, Ask[S, In]]:
        """The asks whose nodes do not exist yet, by their position among all asks."""
        existing = {node.id for node in self.existing.values()}
        return {index: ask for index, ask in enumerate(self.asks) if ask.node not in existing}


@dataclass(frozen=True)
class PlanResult(Generic[S, In, R]):
    """The replies to the asks of a plan, by position."""

    plan: Plan[S, In]
    """What was asked."""
    replies: Replies[int, R]
    """The replies, and the reasons of those that failed, by position."""

    @property
    def failed(self) -> dict[int, str]:
        """The reasons by the keys of the nodes below that could not be processed."""
        asks = self.plan.asks
        return {key: reason for index, reason in self.replies.failed.items() for key in asks[index].keys}

    @property
    def taken(self) -> list[int]:
        """The keys of the nodes below that were processed."""
        failed = self.failed
        return [key for key in self.plan.keys if key not in failed]


class MappedLayer(Generic[S, In, R]):
    """Asks `role` about every new node of the layers that it `needs`, and keeps the nodes that the replies make.

    A layer declares `name`, `needs`, `role`, `make_input` and `make_nodes`. The sources are passages, or nodes if it
    needs other layers. With an embedder its nodes have vectors, so that recall can search them. A source whose call
    failed is recorded, and the next build asks again. `together` neighbours share a call, if the input of the role is a
    `PassageIn`. A layer that differs in one step overrides this step.
    """

    name: str
    needs: tuple[str, ...] = (PASSAGES,)
    role: Role[Any, Any]
    kind = ""  # what its nodes are as evidence, in a word that prompts show; without one, the name of the layer
    label = "nodes made"  # what the progress counts
    prefix = ""  # begins what the ids of its nodes are computed from; without one, its name does
    typical: Typical | None = None  # the length of its replies; without one, as long as the role allows

    def __init__(
        self, store: Store, model: LanguageModel, embedder: Embedder | None = None, *, together: int = 1
    ) -> None:
        if not 1 <= together <= MOST_TOGETHER:
            raise UsageError(f"together={together}: a call holds 1 to {MOST_TOGETHER} passages")
        self.together = together
        self._store = store
        self._model = model
        self._embedder = embedder
        if together != 1 and not all(issubclass(role.input, PassageIn) for role in self.roles):
            raise UsageError(f"{self.name} with together={together}: its inputs are no passages, so it asks one by one")

    @property
    def writes(self) -> tuple[str, ...]:
        """The node layers that hold its nodes."""
        return (self.name,)

    @property
    def calls(self) -> CallCount:
        """How many calls it makes; see `CallCount`."""
        if self.needs != (PASSAGES,):
            return CallCount(f"1 a node of {' and '.join(self.needs)}")
        if self.together == 1:
            return CallCount("1 a passage", 1)
        return CallCount(f"1 for {self.together} passages and 1 a passage whose part of it is unusable", 1.5)

    @property
    def roles(self) -> tuple[Role[Any, Any], ...]:
        """All roles that it asks about each input."""
        return (self.role,)

    # ---------------------------------------------------------------- what a layer declares

    def make_input(self, source: S, /) -> In:
        """What the model is asked about a source.

        For an estimate, a node that does not exist yet is a node with the text of a passage, and without data.
        """
        raise NotImplementedError

    def make_nodes(self, source: S, reply: R, /) -> Iterable[Node]:
        """The nodes that a reply makes; see `make_node`."""
        raise NotImplementedError

    def make_node(self, source: Passage | Node, text: str, **data: Any) -> Node:
        """A node that lives as long as its source; its id follows from the source and the text."""
        return Node(
            id=content_id(self.prefix or self.name, source.id, text),
            layer=self.name,
            text=text,
            sources=(source.id,),
            position=source.position,
            data=data,
        )

    # ---------------------------------------------------------------- steps that a layer may override

    def make_inputs(self, sources: Sequence[S]) -> Sequence[In]:
        """What the model is asked about each source."""
        return [self.make_input(source) for source in sources]

    def plan(self, change: Change) -> Plan[S, In]:
        """Load what is new and say what to ask about it."""
        sources: Mapping[int, Any] = (
            self._store.passages(change.added) if self.needs == (PASSAGES,) else self._store.nodes_at(change.added)
        )
        return Plan(self._make_asks(sources), list(sources))

    def foresee(self, change: Change) -> Iterable[Ask[S, In]]:
        """What a build would ask about, for estimates. A passage without a node in the layer below counts as one."""
        asks = [*self.plan(change).due.values()]
        if self.needs == (PASSAGES,):
            return asks
        sources: list[Any] = [each for need in self.needs if need != PASSAGES for each in self._make_stand_ins(need)]
        return asks + [replace(ask, keys=()) for ask in self._make_asks(dict(enumerate(sources)))]

    async def ask(self, plan: Plan[S, In], report: Report) -> Replies[int, R]:
        """The replies to what is due, by position in the plan."""
        return await self.ask_about(plan.due, report)

    async def ask_group(self, inputs: Sequence[In]) -> Sequence[R | ModelError]:
        """The replies to the inputs of one call, in order; an error for an input that failed for good."""
        if self.together == 1:  # without a task group, so that ModelUnavailable stops the other calls at once
            return [await catch_failure(ask_proved(self._model, self.role, role_input)) for role_input in inputs]
        replies: Sequence[Any] = await ask_proved_together(self._model, self.role, inputs, self.together)
        return replies

    async def commit(self, result: PlanResult[S, In, R], report: Report) -> LayerReport:
        """Write the result of an update in one transaction."""
        return await run_in_thread(self._write_nodes, result)

    def make_record(self, result: PlanResult[S, In, R]) -> dict[str, Any]:
        """The record of the build."""
        record: dict[str, Any] = {"model": join_names(self._model, self.roles)}
        if issubclass(self.role.input, PassageIn):
            record["together"] = add_size(read_build(self._store, self.name), self.together)
        return record

    async def estimate_calls(self, groups: Sequence[Sequence[In]]) -> Cost:
        """The calls, the input tokens and the output tokens of asking about each group in one call."""
        return sum([await self.estimate_role(role, self.typical, groups) for role in self.roles], Cost())

    # ---------------------------------------------------------------- the driver

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Ask about what is new. What failed is recorded, and the next build asks again."""
        plan = await run_in_thread(self.plan, change)
        return await self.commit(PlanResult(plan, await self.ask(plan, report)), report)

    async def estimate(self, change: Change) -> Estimate:
        """The calls about each distinct input, without those that follow a reply that cannot be used."""
        groups = await run_in_thread(self._foresee_groups, change)
        cost = await self.estimate_calls(groups)
        return Estimate(layer=self.name, model=join_names(self._model, self.roles), cost=cost)

    async def ask_about(self, asks: Mapping[int, Ask[S, In]], report: Report) -> Replies[int, R]:
        """The replies to these asks; equal inputs share a reply."""
        groups = await run_in_thread(self._group_asks, asks)
        inputs = {index: asks[index].role_input for group in groups.keys for index in group}
        return groups.share(await run_groups(inputs, groups.keys, self.ask_group, report, self.label), asks)

    async def estimate_role(self, role: Role[In, Any], typical: Typical | None, groups: Sequence[Sequence[In]]) -> Cost:
        """The calls, the input tokens and the output tokens of asking a role about each group in one call."""
        inputs = list(chain.from_iterable(groups))
        usual = typical or Typical(role.output_tokens, 0)
        replies = await estimate_reply_tokens(self._store, self._model, role, usual, inputs)
        read = await sum_tokens(groups, lambda group: count_tokens_together(self._model, role, group, self.together))
        written = replies + estimate_thoughts(self._model, role, len(groups))
        return Cost(calls=len(groups), input_tokens=read, output_tokens=written)

    def _make_asks(self, sources: Mapping[int, Any]) -> list[Ask[S, In]]:
        asks = []
        for (key, source), role_input in zip(sources.items(), self.make_inputs(list(sources.values())), strict=True):
            # A passage has neighbours in its document, another node in the order of the keys.
            position = (source.document, source.position) if isinstance(source, Passage) else ("", key)
            asks.append(Ask(subject=source, role_input=role_input, keys=(key,), position=position))
        return asks

    def _make_stand_ins(self, need: str) -> list[Node]:
        """A node with the text of each passage from which a layer below has made none yet."""
        writes = read_build(self._store, need).get("writes", (need,))
        made: set[int] = set()  # the nodes below, at all depths
        waiting = {layer: self._store.node_keys(layer) for layer in writes}
        while waiting:
            layer, keys = waiting.popitem()
            below = set(chain.from_iterable(find_grounds(self._store, keys, layer).values())) - made
            made |= below
            for key, node in self._store.nodes_at(below).items():
                waiting.setdefault(node.layer, []).append(key)
        unmade = [key for key in self._store.node_keys(PASSAGES) if key not in made]
        return [
            Node(id=passage.id, layer=need, text=passage.text, sources=(passage.id,), position=passage.position)
            for passage in self._store.passages(unmade).values()
        ]

    def _foresee_groups(self, change: Change) -> list[list[In]]:
        asks = dict(enumerate(self.foresee(change)))
        return [[asks[index].role_input for index in group] for group in self._group_asks(asks).keys]

    def _group_asks(self, asks: Mapping[int, Ask[S, In]]) -> Groups[int]:
        inputs = {index: ask.role_input for index, ask in asks.items()}
        return group_neighbours(inputs, {index: ask.position for index, ask in asks.items()}, self.together)

    def _write_nodes(self, result: PlanResult[S, In, R]) -> LayerReport:
        plan, failed = result.plan, result.failed
        made = (self.make_nodes(plan.asks[index].subject, reply) for index, reply in result.replies.items())
        nodes = {node.id: node for node in chain.from_iterable(made)}
        current = {ask.node for ask in plan.asks}
        stale = [key for key, node in plan.existing.items() if node.id not in current]
        vectors = self._embedder.embed([node.text for node in nodes.values()]) if self._embedder else None
        record = self.make_record(result)
        with self._store.write() as change:
            change.remove_nodes(stale)
            keys = change.put_nodes(list(nodes.values()))
            if vectors is not None:
                change.put_vectors(self.name, [keys[node] for node in nodes], vectors)
            change.record_intake(self.name, result.taken, failed)
            record_build(change, self.name, record)
        return LayerReport(layer=self.name, added=len(nodes), removed=len(stale), failed=failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Neighbours in a document that are to become one node: passages, or windows of the level below.

    `keys` are those of all its passages. `position` counts from 0 within its document and level.
    """

    node: NodeId
    """The id of the node that it becomes."""
    document: DocumentId
    """The id of its document."""
    position: int
    level: int = 0
    """0 above passages."""
    sources: tuple[NodeId, ...]
    """The ids of its neighbours, in order."""
    keys: tuple[int, ...]


class DocumentLayer(MappedLayer[Window, In, R]):
    """Makes a node of each window, and divides a document again when it has new passages.

    A layer declares `make_windows` in place of `make_input`, and `read_text` in place of `make_nodes`.
    """

    def make_windows(self, document: DocumentId, passages: Mapping[int, Passage]) -> Iterable[tuple[Window, In]]:
        """The windows of a document, each with what to ask about it; `passages` are all of its passages by key.

        The id of a window follows from what it is about.
        """
        raise NotImplementedError

    def read_text(self, reply: R) -> str:
        """The text of the node."""
        raise NotImplementedError

    def make_nodes(self, source: Window, reply: R, /) -> list[Node]:
        """The node of a window."""
        return [
            Node(
                id=source.node,
                layer=self.name,
                text=self.read_text(reply),
                sources=source.sources,
                level=source.level,
                position=source.position,
                data={"document": source.document},
            )
        ]

    def plan(self, change: Change) -> Plan[Window, In]:
        """Divide every document that has new passages, the lowest windows first; nodes that exist stay."""
        touched = {passage.document for passage in self._store.passages(change.added).values()}
        found = self._store.passages(documents=sorted(touched))
        # In document order, so each document is divided once.
        by_document = groupby(found.items(), key=lambda item: item[1].document)
        windows = [pair for document, passages in by_document for pair in self.make_windows(document, dict(passages))]
        windows.sort(key=lambda pair: pair[0].level)
        asks = [
            Ask(subject=window, role_input=role_input, keys=window.keys, position=("", number), node=window.node)
            for number, (window, role_input) in enumerate(windows)
        ]
        return Plan(asks, list(found), self._store.nodes_at(sorted(self._find_above(found))))

    def _find_above(self, keys: Iterable[int]) -> set[int]:
        """The keys of the nodes of this layer that were made from these nodes, directly or through others."""
        above, front = set[int](), set(keys)
        while front:
            parents = find_derived(self._store, front, f"made-of:{self.name}").values()
            front = set(chain.from_iterable(parents)) - above
            above |= front
        return above
