"""What parts of one's own need: the kit, the system, the parts to wire, and the types of `tomewise.types`.

    from tomewise.parts import Count, Dense, Kit, System, answer_once

    def mine(kit: Kit, *, limit: Count = 5) -> System:
        return answer_once(kit, Dense(kit.store, kit.embedder), limit=limit)

A loop of one's own searches, lays out what it found on a `Desk` (`kit.desk`), and yields events and an answer. A
layer that asks about passages or nodes is a `MappedLayer`. A metric or a judge is a `Metric` or a `Judge`.
"""

from __future__ import annotations

from tomewise.calls import CallCount, read_calls, sum_calls
from tomewise.errors import PartError, ReadingError, UsageError
from tomewise.evaluate.items import Dataset, Item, Judgement, Outcome
from tomewise.evaluate.judges import Judge
from tomewise.evaluate.metrics import Metric
from tomewise.events import make_event, report_retrieved
from tomewise.language.roles import PassageIn
from tomewise.loops.desk import Attempt, Desk, Prepared
from tomewise.loops.evidence import make_token_counter
from tomewise.loops.once import Once
from tomewise.loops.steps import LoopState, Skipped, take_steps
from tomewise.memory.ask_each import ask_each
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.mapped import Ask, DocumentLayer, MappedLayer, Plan, PlanResult, Window
from tomewise.memory.summaries import SummariesLayer
from tomewise.memory.token_estimates import Typical
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.recall.derived import CollapsedTree, DenseDerived, TreeTraversal
from tomewise.recall.flat import Dense, Everything, Fused, Lexical
from tomewise.systems.comorag import probe
from tomewise.systems.kit import (
    Above0,
    Context,
    Count,
    Kit,
    Limit,
    Multiplies,
    Positive,
    Recall,
    Recipe,
    Share,
    System,
    SystemDeclaration,
    Together,
    Weight,
    answer_once,
    once,
)
from tomewise.systems.layers import make_layers
from tomewise.types import (
    Abilities,
    Answer,
    Change,
    Document,
    Embedder,
    Estimate,
    Event,
    Evidence,
    LanguageModel,
    Layer,
    LayerReport,
    Loop,
    Node,
    Passage,
    Place,
    Question,
    Report,
    Retriever,
    Rewrite,
    Role,
    Scope,
    content_id,
)

__all__ = [
    "Abilities",
    "Above0",
    "Answer",
    "Ask",
    "Attempt",
    "CallCount",
    "Change",
    "CollapsedTree",
    "Context",
    "Count",
    "Dataset",
    "Dense",
    "DenseDerived",
    "Desk",
    "Document",
    "DocumentLayer",
    "Embedder",
    "EpisodesLayer",
    "Estimate",
    "Event",
    "Everything",
    "Evidence",
    "Fused",
    "GistsLayer",
    "GraphLayer",
    "Item",
    "Judge",
    "Judgement",
    "Kit",
    "LanguageModel",
    "Layer",
    "LayerReport",
    "Lexical",
    "Limit",
    "Loop",
    "LoopState",
    "MappedLayer",
    "Metric",
    "Multiplies",
    "Node",
    "Once",
    "Outcome",
    "PartError",
    "Passage",
    "PassageIn",
    "Place",
    "Plan",
    "PlanResult",
    "Positive",
    "Prepared",
    "Question",
    "ReadingError",
    "Recall",
    "Recipe",
    "Report",
    "Retriever",
    "Rewrite",
    "Role",
    "Scope",
    "Share",
    "Skipped",
    "SummariesLayer",
    "System",
    "SystemDeclaration",
    "Together",
    "TreeLayer",
    "TreeTraversal",
    "Typical",
    "UsageError",
    "Weight",
    "Window",
    "answer_once",
    "ask_each",
    "content_id",
    "make_event",
    "make_layers",
    "make_token_counter",
    "once",
    "probe",
    "read_calls",
    "report_retrieved",
    "sum_calls",
    "take_steps",
]
