"""Systems that read the whole text in order: COSMIR, its loop over other recall, and Chain of Agents."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

from tomewise.language.roles import CARRY_NOTE, EXTRACT_NOTES
from tomewise.loops.chunking import Chunking, Order
from tomewise.loops.ledger_notes import Cycle, LedgerParts, LedgerReading
from tomewise.loops.relay import LedgerRelay, Relay
from tomewise.loops.single_note import NoteReading
from tomewise.systems.from_passages import hybrid
from tomewise.systems.kit import Count, Kit, Positive, Recall, Recipe, Share, System, Weight, find_recall

CHUNK = 64_000  # tokens


def relay(
    kit: Kit,
    recall: Recall | System,
    *,
    chunk: Positive = CHUNK,
    memory: Weight = 0.125,
    wave: Positive = 1,
    questions: Count = 10,
    order: Order = "document",
    inference: Literal["facts", "none"] = "facts",
    refinement: Literal["questions", "none"] = "questions",
    recovery: Share = 0.2,
    limit: Count = 40,
) -> System:
    """COSMIR's loop: read everything in order with a ledger, then search for what is still open."""
    recall = find_recall("this System", recall)
    desk = kit.desk
    chunking = Chunking(desk, EXTRACT_NOTES, size=chunk, order=order, recall=recall.retriever)
    cycle = Cycle(
        memory=memory,
        wave=wave,
        questions=questions,
        infers=inference == "facts",
        refines=refinement == "questions",
        recovery=recovery,
        limit=limit,
    )
    reading = LedgerReading(LedgerParts(recall.retriever, desk, chunking, cycle))
    return System(loop=LedgerRelay(desk, chunking, reading), layers=recall.layers)


def cosmir(kit: Kit, **settings: Any) -> System:
    """Read everything in order with a ledger of questions, facts and inferences; answer from the ledger alone.

    COSMIR, section 4.2: `loops.relay` with a ledger, and `hybrid` recall for what is read again. `chunk` is in tokens,
    smaller where the model's window is. `memory` is the fraction of a chunk that the ledger holds (0: no limit). `wave`
    chunks are read side by side. `recovery` is the share of the text that is read again for questions still open at the
    end, up to `limit` passages a question (0: none).

    Deviations: the ledger forgets after the inference, not before it. A wave without a new fact has neither inference
    nor refinement. Waves, order by relevance and recovery are ours.
    """
    return relay(kit, hybrid(kit), **settings)


_of_relay = inspect.signature(relay)
cosmir.__signature__ = _of_relay.replace(  # type: ignore[attr-defined]
    parameters=[parameter for name, parameter in _of_relay.parameters.items() if name != "recall"]
)


def chain_of_agents(
    kit: Kit,
    *,
    chunk: Positive = CHUNK,
    words: Positive = 400,
    direction: Literal["forwards", "both"] = "forwards",
    runs: Positive = 1,
) -> System:
    """Read everything in order with one note that each reader hands on; answer from the last note alone.

    Chain of Agents (Zhang et al. 2024): `loops.relay` with a note of at most `words` words. With `direction="both"` the
    text is also read backwards and the answer sees both notes. The answer of most `runs` is taken (self-consistency);
    that needs a model with a temperature above 0.

    Deviations: a chunk is made of whole passages, not of sentences. No model judges between answers: both notes are
    shown to the answering role, and runs vote.
    """
    desk = kit.desk
    chunking = Chunking(desk, CARRY_NOTE, size=chunk)
    reading = NoteReading(desk, words=words)
    both_ways = direction == "both"
    return System(loop=Relay(desk, chunking, reading, both_ways=both_ways, runs=runs))


RECIPES: Mapping[str, Recipe] = {"cosmir": cosmir, "chain_of_agents": chain_of_agents}

ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "cosmir": {
        "extraction alone": {"inference": "none", "refinement": "none", "recovery": 0.0},
        "without inference": {"inference": "none"},
        "without refinement": {"refinement": "none"},
        "without recovery": {"recovery": 0.0},
        "unbounded ledger": {"memory": 0.0},
    },
    "chain_of_agents": {"bidirectional": {"direction": "both"}, "self-consistent": {"runs": 5}},
}
