"""The layer of a tree that grows as passages come (MemTree, arXiv 2410.14052, sections 3.1 to 3.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tomewise.calls import NO_CALLS, CallCount
from tomewise.concurrency import run_in_thread
from tomewise.language.roles import AGGREGATE, AggregateIn
from tomewise.language.usage import estimate_tokens
from tomewise.language.wrapped import find_name
from tomewise.memory.ask_each import run_each
from tomewise.memory.build_records import read_build, record_build
from tomewise.memory.edge_rows import split_rows
from tomewise.memory.growing_tree.memtree_names import USUAL, MemTreeNames, MemTreeRules
from tomewise.memory.growing_tree.placement import ROOT, GrowingTree
from tomewise.memory.proving import ask_proved
from tomewise.memory.token_estimates import estimate_asks
from tomewise.store.contract import Store, Write
from tomewise.store.lookups import read_edges, read_pairs
from tomewise.store.records import PASSAGES
from tomewise.types import Change, Embedder, Estimate, LanguageModel, LayerReport, Node, NodeId, Report, content_id

_TOKENS = 200  # of the text of a node
_READ = 3500  # tokens of new texts that one call reads
_CHARACTERS = 4 * _TOKENS
_WAITS = "its text waits for the next build, since an earlier call failed"
_REPLY_SHARE = 0.8  # of the bound that a text reaches on average; for estimates


@dataclass
class _Step:
    """One commit: the tree after it, and the nodes to write.

    `fresh` are the passages that came, `late` those that some text misses since a call failed. `former` has the parents
    before the step, `known` the keys of the texts that nodes have. `ranks` is the place of each passage in the order of
    the documents. `due` are the nodes to be made anew from their children. `texts` are those of passages and nodes, by
    key, as far as they are needed; new ones join them. `failed` has the reason for each node that is not written.
    """

    tree: GrowingTree
    fresh: Sequence[int]
    late: Sequence[int]
    former: Mapping[int, int]
    known: Mapping[int, int]
    ranks: Mapping[int, int]
    pruned: Sequence[int]
    due: frozenset[int]
    failed: dict[int, str]
    texts: dict[int, str] = field(default_factory=dict)

    def list_waves(self) -> list[list[int]]:
        """The nodes to write: first those that learn of new texts, then from the deepest up those to be made anew."""
        depths = {node: self.tree.find_depth(node) for node in self.due}
        deepest_first = sorted(set(depths.values()), reverse=True)
        grown = [node for node in self.tree.touched if node not in self.failed]
        return [grown, *([node for node in sorted(depths) if depths[node] == depth] for depth in deepest_first)]

    def make_inputs(self, node: int) -> list[AggregateIn]:
        """What the calls that write a node read, one after the other; the text of each leads the next."""
        children = self.tree.children[node]
        if node in self.due:
            texts = [self.texts[child] for child in sorted(children, key=self.find_rank)]
        else:
            own = node if node in self.texts else self.tree.firsts[node]
            texts = [self.texts[key] for key in (own, *self.tree.touched[node])]
        return [
            AggregateIn(texts=part, children=len(children), has_text=bool(number) or node not in self.due)
            for number, part in enumerate(_split_texts(texts))
        ]

    def find_rank(self, key: int) -> int:
        """The place of the first passage below a node."""
        return min(self.ranks[passage] for passage in self.tree.list_passages(key))

    def find_missed(self) -> dict[int, str]:
        """The passages that a node should tell of and does not, each with the reason."""
        has_none = self.due | self.tree.firsts.keys()
        return {
            passage: reason
            for node, reason in self.failed.items()
            for passage in (self.tree.list_passages(node) if node in has_none else self.tree.touched[node])
        }


class MemTreeLayer:
    """A tree whose inner nodes tell of the passages below them; see `MemTreeRules` and `MemTreeNames`.

    Passages come in batches, one commit each, in the order of the documents. Where they go depends on those that came
    before. A removal takes the texts above a passage with it; the next build replaces nodes of one child by it, and
    makes the other texts anew from their children. A text whose call failed stays, and is due at the next build.

    The paper places one passage after the other, as with `batch` 1, and removes none.
    """

    kind = "summary"
    needs = (PASSAGES,)

    def __init__(self, store: Store, model: LanguageModel, embedder: Embedder, rules: MemTreeRules = USUAL) -> None:
        self._store = store
        self._model = model
        self._embedder = embedder
        self._rules = rules
        self.names = MemTreeNames(rules.layer)
        self.name = self.names.layer
        self.writes = (self.name, self.names.places)

    @property
    def calls(self) -> CallCount:
        """Each node above the passages of a batch is written once, in one call for 3500 tokens of new texts."""
        if not self._rules.aggregation:
            return NO_CALLS
        most = self._rules.most_nodes_above
        return CallCount(f"1 for each node above the passages of a batch: at most {most} a passage", most)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Mend the tree after removals and failures, then add the new passages batch by batch."""
        batches = await run_in_thread(self._cut_batches, change)
        reports = [await self._take(fresh, report) for fresh in batches]
        missed = {key: reason for each in reports for key, reason in each.failed.items()}
        return LayerReport(
            layer=self.name,
            added=sum(each.added for each in reports),
            removed=sum(each.removed for each in reports),
            failed=missed,
        )

    async def estimate(self, change: Change) -> Estimate:
        """The calls of one update: exact for the first batch. After it means stand in for what a model will write."""
        if not self._rules.aggregation:
            return Estimate(layer=self.name)
        batches = await run_in_thread(self._cut_batches, change)
        inputs = await run_in_thread(self._foresee, batches)
        return await estimate_asks(self.name, self._model, AGGREGATE, inputs, _REPLY_SHARE * _TOKENS * len(inputs))

    def _cut_batches(self, change: Change) -> list[list[int]]:
        """The passages of each commit. The first is empty if there is something to mend."""
        intake = self._store.intake(self.name)
        fresh = [key for key in change.added if key not in intake.done and key not in intake.failed]
        size = self._rules.batch
        batches = [fresh[start : start + size] for start in range(0, len(fresh), size)]
        return [[], *batches] if change.removed or len(fresh) < len(change.added) else batches

    async def _take(self, fresh: Sequence[int], report: Report) -> LayerReport:
        """Place these passages, or mend the tree if there are none, write the nodes, and commit."""
        step = await run_in_thread(self._plan, fresh)
        written: list[int] = []

        async def write(node: int) -> str:
            text = ""
            for given in step.make_inputs(node):
                led = given.model_copy(update={"texts": [text, *given.texts]}) if text else given
                if self._rules.aggregation:
                    text = (await ask_proved(self._model, AGGREGATE, led)).summary
                else:
                    text = _join(led)
            return text

        for wave in step.list_waves():
            below = {
                node: [step.failed[child] for child in step.tree.children[node] if child in step.failed]
                for node in wave
            }
            ready = {node: node for node in wave if node not in step.due or not below[node]}
            replies = await run_each(ready, write, report, "nodes of the tree written")
            step.texts |= replies
            step.failed |= replies.failed | {node: below[node][0] for node in wave if node not in ready}
            written += replies
        vectors = await run_in_thread(self._embedder.embed, [step.texts[node] for node in written])
        return await run_in_thread(self._commit, step, dict(zip(written, vectors, strict=True)))

    def _plan(self, fresh: Sequence[int]) -> _Step:
        """The step that adds these passages, or the one that mends the tree."""
        store, names = self._store, self.names
        intake = store.intake(self.name)
        order = store.passage_order()[0].tolist()
        texts = read_edges(store, names.texts).rows.astype(np.int64).tolist()
        known = {place: text for place, text, _ in texts}
        outdated = {place for place, _, is_late in texts if is_late}
        parents = {child: place for place, child in read_pairs(store, names.links).tolist()}
        places = store.node_keys(names.places)
        tree = GrowingTree(
            nodes=places,
            passages=[key for key in order if key in intake.done or key in intake.failed],
            parents=parents,
            bare=set(places) - known.keys(),
            rules=self._rules,
            load_rows=partial(self._load_rows, known),
            find_ids=self._find_ids,
        )
        pruned = [] if fresh else tree.prune()
        for key, row in zip(fresh, self._load_rows(known, fresh), strict=True):
            tree.add(key, row)
        stale = {node for node in places if node in tree.children and (node not in known or node in outdated)}
        step = _Step(
            tree=tree,
            fresh=fresh,
            late=() if fresh else sorted(intake.failed),
            former=parents,
            known=known,
            ranks={key: rank for rank, key in enumerate(order)},
            pruned=pruned,
            due=frozenset() if fresh else frozenset(stale),
            failed=dict.fromkeys(sorted(stale & tree.touched.keys()), _WAITS),
        )
        self._load_texts(step)
        return step

    def _load_texts(self, step: _Step) -> None:
        """Load the texts that the nodes to write are made from."""
        tree, touched = step.tree, step.tree.touched.keys() - step.failed.keys()
        wanted = {child for node in step.due for child in tree.children[node]} | {*step.fresh, *touched}
        wanted |= {tree.firsts[node] for node in touched & tree.firsts.keys()}
        passages = self._store.passages(sorted(key for key in wanted if key not in tree.children))
        step.texts |= {key: passage.content for key, passage in passages.items()}
        places = {step.known[key]: key for key in wanted if key in step.known}
        step.texts |= {places[key]: node.text for key, node in self._store.nodes_at(places).items()}

    def _load_rows(self, known: Mapping[int, int], keys: Sequence[int]) -> NDArray[np.float32]:
        """The vectors (n, d) of passages, and of nodes with a text."""
        rows = np.empty((len(keys), self._embedder.dimensions), np.float32)
        for space, is_node in ((self.name, True), (PASSAGES, False)):
            wanted = {at: known.get(key, key) for at, key in enumerate(keys) if (key in known) == is_node}
            if wanted:
                rows[list(wanted)] = self._store.rows(space, wanted.values())
        return rows

    def _find_ids(self, keys: Sequence[int]) -> dict[int, str]:
        """The ids of passages and places; those of places that the store does not have yet too."""
        made = self._count_places()
        stored = self._store.nodes_at(key for key in keys if key >= 0)
        return {key: stored[key].id if key >= 0 else self._name_place(made, key) for key in keys}

    def _count_places(self) -> int:
        """How many places were ever made."""
        return int(read_build(self._store, self.name).get("places", 0))

    def _name_place(self, made: int, node: int) -> NodeId:
        """The id of a place that follows those `made`; its key in the tree is below that of the root."""
        return content_id("k", self.name, made + ROOT - node)

    def _foresee(self, batches: Sequence[Sequence[int]]) -> list[AggregateIn]:
        """The inputs of all calls, in one tree in which no model writes."""
        inputs: list[AggregateIn] = []
        if not batches:
            return inputs
        step = self._plan(batches[0])
        for fresh in batches:
            if fresh is not batches[0]:
                step.tree.touched.clear()
                for key, row in zip(fresh, self._load_rows(step.known, fresh), strict=True):
                    step.tree.add(key, row)
                written = {key: text for key, text in step.texts.items() if key in step.tree.children}
                step = replace(step, fresh=fresh, due=frozenset(), failed={}, texts=written)
                self._load_texts(step)
            for node in (node for wave in step.list_waves() for node in wave):
                parts = step.make_inputs(node)
                inputs += parts
                step.texts[node] = _join(parts[-1])[: int(_REPLY_SHARE * _CHARACTERS)]
        return inputs

    def _commit(self, step: _Step, rows: Mapping[int, NDArray[np.float32]]) -> LayerReport:
        """Write the tree, and the texts of the nodes in `rows`, which has the vector of each."""
        tree, missed, made = step.tree, step.find_missed(), self._count_places()
        ids = {node: self._name_place(made, node) for node in tree.firsts}
        places = [Node(id=ids[node], layer=self.names.places, text="", sources=()) for node in ids]
        texts = self._make_texts(step, rows)
        new = {node: text for node, text in texts.items() if node not in step.known}
        old = {node: text for node, text in texts.items() if node in step.known}
        with self._store.write() as writing:
            writing.remove_nodes(step.pruned)
            put = writing.put_nodes(places, lifetime="layer")
            keys = {node: put[id] for node, id in ids.items()}
            self._write_links(writing, step, keys)
            text_keys = writing.put_nodes(list(new.values())) | writing.update_nodes(list(old.values()))
            if rows:
                at = [text_keys[texts[node].id] for node in rows]
                writing.put_vectors(self.name, at, np.array(list(rows.values())), replace=True)
            edges = (
                (keys.get(node, node), text_keys[text.id], node in step.failed) for node, text in (new | old).items()
            )
            writing.put_edges(self.names.texts, *split_rows(edges), replace=True)
            writing.record_intake(self.name, {*step.fresh, *step.late} - missed.keys(), missed)
            record_build(writing, self.name, self._make_record(tree, made + len(places)))
        return LayerReport(layer=self.name, added=len(new), removed=len(step.pruned), failed=missed)

    def _write_links(self, writing: Write, step: _Step, keys: Mapping[int, int]) -> None:
        """Write the links that changed. `keys` are those of the new places."""
        parents = step.tree.parents
        moved = [key for key in parents if parents[key] != step.former.get(key, ROOT)]
        gone = [(step.former[key], key) for key in moved if key in step.former]
        writing.remove_edges(self.names.links, np.array(gone, np.int64).reshape(-1, 2))
        placed = [key for key in moved if parents[key] != ROOT]
        links = ((keys.get(parents[key], parents[key]), keys.get(key, key), 1.0) for key in placed)
        writing.put_edges(self.names.links, *split_rows(links))

    def _make_texts(self, step: _Step, written: Collection[int]) -> dict[int, Node]:
        """The texts to put or to update, by node: those `written`, and stored ones whose children changed."""
        tree, known = step.tree, step.known
        changed = {*written, *tree.touched, *step.due}
        changed |= {tree.parents[node] for node in step.due}
        kept = [node for node in sorted(changed) if node in known or node in written]
        tellers = known.keys() | set(written)  # nodes with a text
        sources = {node: tree.list_tops(node, tellers) for node in kept}
        wanted = {key for keys in sources.values() for key in keys} | set(kept)
        stored = self._store.nodes_at(known[node] for node in kept if node not in written)
        ids = self._find_ids([known.get(key, key) for key in wanted])
        ids |= {key: ids[known[key]] for key in wanted & known.keys()}
        ids |= {key: content_id("b", ids[key]) for key in wanted & tree.children.keys() - known.keys()}
        heights = tree.find_heights()
        positions = self._store.passage_order()[2].tolist()
        return {
            node: Node(
                id=ids[node],
                layer=self.name,
                text=step.texts[node] if node in written else stored[known[node]].text,
                sources=tuple(ids[key] for key in sorted(sources[node], key=step.find_rank)),
                level=heights[node],
                position=positions[step.find_rank(node)],
            )
            for node in kept
        }

    def _make_record(self, tree: GrowingTree, places: int) -> dict[str, Any]:
        heights = tree.find_heights()
        return {
            "model": find_name(self._model, AGGREGATE) if self._rules.aggregation else "",
            "depth_scale": self._rules.depth_scale,
            "batch": self._rules.batch,
            "places": places,
            "nodes": len(heights),
            "depth": max(heights.values(), default=0),
            "most_children": max(map(len, tree.children.values())),
        }


def _split_texts(texts: Sequence[str]) -> list[list[str]]:
    """Cut texts in parts of at most `_READ` tokens each, or of one text."""
    parts: list[list[str]] = [[]]
    room = _READ
    for text in texts:
        tokens = estimate_tokens(text)
        if parts[-1] and tokens > room:
            parts.append([])
            room = _READ
        parts[-1].append(text)
        room -= tokens
    return parts


def _join(given: AggregateIn) -> str:
    """The beginning of all texts together."""
    return "\n".join(given.texts)[:_CHARACTERS]
