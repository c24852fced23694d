"""Communities of the entities of a graph, and reports about them (GraphRAG, section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import chain
from typing import Any

from tomewise.calls import CallCount
from tomewise.concurrency import run_in_thread
from tomewise.extras import GRAPH
from tomewise.language.roles import ReportIn, ReportOut, make_report_role
from tomewise.language.roles.community_roles import REPORT_WORDS
from tomewise.language.wrapped import find_name, find_room
from tomewise.memory.ask_each import ask_each
from tomewise.memory.build_records import record_build
from tomewise.memory.communities.community_names import CommunityNames
from tomewise.memory.communities.community_state import (
    CommunityState,
    Pair,
    StoredReport,
    load_entities,
    load_state,
)
from tomewise.memory.communities.partition import RANDOMNESS, RESOLUTION, SEED, Community, measure_modularity, renew
from tomewise.memory.communities.report_inputs import Part, ReportEntity, ReportSource, make_source
from tomewise.memory.edge_rows import split_rows, write_edges
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.memory.token_estimates import estimate_asks
from tomewise.store.contract import Store, Write
from tomewise.types import Change, Cost, Embedder, Estimate, LanguageModel, LayerReport, Node, NodeId, Report

_PROMPT_TOKENS = 8000  # of the relations of a community
_WINDOW_SHARE = 2 / 3  # of the window that they may fill: models count tokens in their own way
_PASSAGES = 3  # for which a novel had one community: 754 passages made 250
_MOST = 40  # entities that a reply about a passage has room for; there are fewer communities than entities
_TYPICAL_TOKENS = 1500  # of the prompt of a report, for communities that are not known yet
_REPLY_SHARE = 0.8  # of the bound that a report reaches on average; for estimates
_TOKENS_PER_WORD, _CHARACTERS_PER_WORD = 1.5, 6


@dataclass(frozen=True)
class _Plan:
    """What a build has to do. Communities are given by their numbers.

    `inner` has the related pairs of each, `digests` what its report has to be new for. `kept` are the reports that
    stay, `due` the communities without one by level, the finest first. `entities` are by vertex.
    """

    state: CommunityState
    inner: Mapping[int, Sequence[Pair]]
    digests: Mapping[int, str]
    kept: Mapping[int, StoredReport]
    due: Mapping[int, Sequence[int]]
    entities: Mapping[int, ReportEntity]

    @property
    def communities(self) -> Mapping[int, Community]:
        return self.state.partition.communities

    def list_texts(self) -> dict[int, str]:
        """The texts of the reports that stay."""
        return {number: report.node.text for number, report in self.kept.items()}


@dataclass
class _Written:
    """The reports that were written, what each was written from, and the reasons of those that failed."""

    replies: dict[int, ReportOut]
    sources: dict[int, ReportSource]
    failed: dict[int, str]


class CommunitiesLayer:
    """Communities of a graph of relations, level by level, and a report about each with at most so many `words`.

    The first build divides the graph by Leiden. Later ones keep the division: only entities whose relations changed
    move (`partition.renew`), so that few reports change. So the communities depend on the history of the tome; building
    the layer again makes them anew. Entities without a relation are in no community, and a community without a relation
    between its members has no report.

    A report is new when the members of its community or the facts between them are. It is removed with any text that
    it rests on. Deviations from GraphRAG: directions and components of the graph make no difference; a report sees all
    relations inside of its community, and where these do not fit, the reports of its parts, as in the paper.
    """

    kind = "summary"
    extra = GRAPH
    calls = CallCount(f"1 for each new or changed community, in all about 1 for {_PASSAGES} passages", _MOST)

    def __init__(
        self, store: Store, model: LanguageModel, embedder: Embedder, graph: GraphNames, *, words: int = REPORT_WORDS
    ) -> None:
        self._store = store
        self._model = model
        self._embedder = embedder
        self._role = make_report_role(words)
        self.communities = CommunityNames(graph, words)
        self.name = self.communities.layer
        self.needs = (graph.layer,)
        self.writes = (self.name, self.communities.reports)

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Renew the communities, and write the reports that are due, a level side by side."""
        plan = await run_in_thread(self._plan)
        texts = plan.list_texts()
        written = _Written({}, {}, {})
        for level, numbers in plan.due.items():
            sources = await run_in_thread(self._make_sources, plan, numbers, texts)
            # A report that needs those of its parts waits until all of them are written.
            failed_parts = {plan.communities[number].parent: reason for number, reason in written.failed.items()}
            blocked = {
                number: failed_parts[number]
                for number, source in sources.items()
                if number in failed_parts and not source.is_whole
            }
            inputs = {number: source.given for number, source in sources.items() if number not in blocked}
            replies = await ask_each(self._model, self._role, inputs, report, f"reports of level {level} written")
            for number, reply in replies.items():  # no more findings than were asked for
                findings = reply.findings[: inputs[number].findings]
                written.replies[number] = reply.model_copy(update={"findings": findings})
            written.failed.update(blocked | replies.failed)
            written.sources.update({number: sources[number] for number in inputs})
            texts |= {number: write_report(written.replies[number]) for number in replies}
        vectors = await run_in_thread(self._embedder.embed, [texts[number] for number in written.replies])
        return await run_in_thread(self._commit, plan, change, written, vectors)

    async def estimate(self, change: Change) -> Estimate:
        """The calls of one update: exact if the graph is up to date; a third of a call for each passage it lacks."""
        plan = await run_in_thread(self._plan)
        texts = plan.list_texts()
        inputs: list[ReportIn] = []
        words = self.communities.words
        for numbers in plan.due.values():
            sources = await run_in_thread(self._make_sources, plan, numbers, texts)
            for number, source in sources.items():
                inputs.append(source.given)
                texts[number] = " ".join(source.given.grounds)[: round(_REPLY_SHARE * _CHARACTERS_PER_WORD * words)]
        names = self.communities.graph
        unread = len(self._store.find_pending_keys(names.layer, [names.source])) // _PASSAGES
        output_tokens = round(_REPLY_SHARE * _TOKENS_PER_WORD * words * (len(inputs) + unread))
        known = await estimate_asks(self.name, self._model, self._role, inputs, output_tokens)
        return replace(known, cost=known.cost + Cost(calls=unread, input_tokens=unread * _TYPICAL_TOKENS))

    def _plan(self) -> _Plan:
        state = load_state(self._store, self.communities)
        renew(state.partition, state.graph, state.touched)
        inner = state.list_inner_pairs()
        by_level = sorted(inner, key=lambda number: (-state.partition.communities[number].level, number))
        digests = {number: state.make_digest(state.partition.communities[number], inner[number]) for number in by_level}
        wanted = set(digests.values())
        gone = {each.key for digest, each in state.reports.items() if digest not in wanted}
        kept = {digest: each for digest, each in state.reports.items() if digest in wanted}
        # A report goes with those that it rests on.
        while lost := [digest for digest, each in kept.items() if not each.grounds.isdisjoint(gone)]:
            gone |= {kept.pop(digest).key for digest in lost}
        due: dict[int, list[int]] = {}
        members: set[int] = set()
        for number in by_level:
            if digests[number] not in kept:
                due.setdefault(state.partition.communities[number].level, []).append(number)
                members.update(chain.from_iterable(inner[number]))
        entities = load_entities(self._store, self.communities, state, members)
        stay = {number: kept[digest] for number, digest in digests.items() if digest in kept}
        return _Plan(state, inner, digests, stay, due, entities)

    def _make_sources(self, plan: _Plan, numbers: Sequence[int], texts: Mapping[int, str]) -> dict[int, ReportSource]:
        """What reports about these communities are written from; `texts` are the reports of their parts."""
        room = find_room(self._model, self._role)
        room = min(_PROMPT_TOKENS, round(_WINDOW_SHARE * room))
        children: dict[int, list[Part]] = {}
        for community in plan.communities.values():
            if community.parent is not None and community.number in texts:
                part = Part(community.number, community.members, texts[community.number])
                children.setdefault(community.parent, []).append(part)
        return {
            number: make_source(
                plan.entities,
                plan.state.make_relations(plan.inner[number]),
                children.get(number, []),
                self.communities.words,
                room,
            )
            for number in numbers
        }

    def _commit(self, plan: _Plan, change: Change, written: _Written, vectors: Any) -> LayerReport:
        state, names = plan.state, self.communities
        kept = {number: each.key for number, each in plan.kept.items()}
        obsolete = {each.key for each in state.reports.values()}.difference(kept.values())
        lost = {
            key: reason
            for number, reason in written.failed.items()
            for pair in plan.inner[number]
            for key in state.facts[pair]
        }
        record = self._make_record(plan, written)
        with self._store.write() as writing:
            writing.remove_nodes(obsolete)
            communities = self._write_communities(writing, state)
            reports = self._write_reports(writing, plan, written)
            writing.put_vectors(names.reports, [reports[number] for number in written.replies], vectors)
            about = [(key, communities[number], 1.0) for number, key in (kept | reports).items()]
            related = [(*pair, weight) for pair, weight in state.related.items()]
            for space, edges in ((names.about, about), (names.related, related)):
                write_edges(writing, self._store, space, *split_rows(edges))
            writing.record_intake(self.name, set(change.added) - lost.keys(), lost)
            record_build(writing, self.name, record)
        return LayerReport(
            layer=self.name, added=len(reports), removed=len(obsolete), failed=lost, notes=(_describe(record),)
        )

    def _write_communities(self, writing: Write, state: CommunityState) -> dict[int, int]:
        """Make the communities in the store those of the state; returns their keys by number."""
        communities = state.partition.communities
        writing.remove_nodes(key for number, key in state.nodes.items() if number not in communities)
        nodes = {
            number: Node(
                id=self.communities.community(number),
                layer=self.communities.layer,
                text="",
                sources=tuple(state.entities[vertex].id for vertex in sorted(community.members)),
                level=community.level,
                data={"number": number, "parent": community.parent},
            )
            for number, community in communities.items()
        }
        stayed = sorted(nodes.keys() & state.stored.keys())
        changed = [nodes[number] for number in stayed if state.stored[number] != communities[number]]
        writing.update_nodes(changed, lifetime="layer")
        fresh = {number: node for number, node in nodes.items() if number not in state.stored}
        keys = writing.put_nodes(list(fresh.values()), lifetime="layer")
        return {number: keys[node.id] if number in fresh else state.nodes[number] for number, node in nodes.items()}

    def _write_reports(self, writing: Write, plan: _Plan, written: _Written) -> dict[int, int]:
        """Write new reports, those first on which others rest, and return their keys by the numbers of communities."""
        ids = {number: report.node.id for number, report in plan.kept.items()}
        nodes: dict[int, Node] = {}
        for number, reply in written.replies.items():  # the finest level first
            nodes[number] = self._make_report(plan, number, reply, written.sources[number], ids)
            ids[number] = nodes[number].id
        keys = writing.put_nodes(list(nodes.values()))
        return {number: keys[node.id] for number, node in nodes.items()}

    def _make_report(
        self, plan: _Plan, number: int, reply: ReportOut, source: ReportSource, ids: Mapping[int, NodeId]
    ) -> Node:
        state = plan.state
        facts = [state.fact_nodes[key].id for key in source.facts]
        labelled = {f"R{place}": fact for place, fact in enumerate(facts, start=1)}
        mentions = [mention for vertex in source.entities for mention in plan.entities[vertex].mentions]
        findings = [
            {
                "headline": each.headline,
                "explanation": each.explanation,
                "facts": [labelled[label] for label in each.records if label in labelled],
            }
            for each in reply.findings
        ]
        return Node(
            id=self.communities.report(plan.digests[number]),
            layer=self.communities.reports,
            text=write_report(reply),
            sources=tuple(dict.fromkeys((*facts, *mentions, *(ids[part] for part in source.parts)))),
            level=plan.communities[number].level,
            data={
                "digest": plan.digests[number],
                **reply.model_dump(exclude={"findings"}),
                "findings": findings,
            },
        )

    def _make_record(self, plan: _Plan, written: _Written) -> dict[str, Any]:
        state = plan.state
        modularity = measure_modularity(state.graph, [each.members for each in state.partition.list_children(None)])
        return {
            "model": find_name(self._model, self._role),
            "communities": state.partition.measure_levels(),
            "reports": len(plan.kept) + len(written.replies),
            "calls": len(written.sources),
            "modularity": round(modularity, 4),
            "kept": bool(state.stored),
            "made": state.partition.made,
            "leiden": {
                "version": version("graspologic-native"),
                "seed": SEED,
                "resolution": RESOLUTION,
                "randomness": RANDOMNESS,
            },
        }


def write_report(report: ReportOut) -> str:
    """A report as one text, which is embedded and shown."""
    findings = [": ".join(filter(None, (each.headline, each.explanation))) for each in report.findings]
    return "\n".join(filter(None, [report.title, report.summary, *findings]))


def _describe(record: Mapping[str, Any]) -> str:
    sizes = " + ".join(f"{size:,}" for size in record["communities"])
    how = "kept and renewed" if record["kept"] else "made anew"
    return (
        f"communities by level, {how}: {sizes or 0}; modularity {record['modularity']}; {record['reports']:,} reports"
    )
