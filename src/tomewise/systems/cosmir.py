"""Systems that read the whole text in order: COSMIR, its loop over other recall, and Chain of Agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from tomewise.loops.chunking import Chunking, Order
from tomewise.loops.ledger_notes import Cycle, LedgerReading
from tomewise.loops.notes import NoteReading
from tomewise.loops.relay import Filling, LedgerRelay, Relay
from tomewise.systems.from_passages import hybrid
from tomewise.systems.kit import (
    CONTEXT,
    Count,
    Kit,
    Multiplies,
    Positive,
    Recall,
    Share,
    System,
    SystemDeclaration,
    find_recall,
    with_settings_of,
)

CHUNK = 64_000  # tokens
ChunkSize: TypeAlias = Annotated[
    Positive,
    "tokens of a chunk, fewer where the model's window is smaller",
    Multiplies("tokens of a call", most=1_000_000),
]


def relay(
    kit: Kit,
    recall: Recall | System,
    *,
    chunk: ChunkSize = CHUNK,
    memory: Annotated[
        Count,
        "tokens of facts that the ledger holds, fewer where the window is smaller; 0: no limit",
        Multiplies("tokens of a call", most=1_000_000),
    ] = 8_000,
    wave: Annotated[Positive, "chunks that are read side by side", Multiplies("calls at once", most=64)] = 1,
    questions: Annotated[
        Count,
        "questions that are open at a time at most, beside wide ones",
        Multiplies("calls of a question", most=200),
    ] = 10,
    order: Annotated[Order, "order in which chunks are read"] = "document",
    inference: Annotated[Literal["facts", "none"], "whether facts are inferred"] = "facts",
    refinement: Annotated[Literal["questions", "none"], "whether open questions are refined"] = "questions",
    recovery: Annotated[Share, "share of the text that is read again at the end for open questions; 0: none"] = 0.2,
    limit: Annotated[
        Count,
        "passages that are read again for an open question at most",
        Multiplies("evidence", most=1000),
    ] = 40,
    context: Annotated[
        Count,
        "tokens that the answering role sees; passages fill what the ledger leaves; 0: no passages",
        Multiplies("tokens of the answering call", most=1_000_000),
    ] = CONTEXT,
) -> System:
    """COSMIR's loop: `loops.relay` with a ledger."""
    recall = find_recall("this System", recall)
    desk = kit.fusing_desk
    chunking = Chunking(desk, size=chunk, order=order, recall=recall.retriever)
    cycle = Cycle(
        memory=memory,
        wave=wave,
        questions=questions,
        infers=inference == "facts",
        refines=refinement == "questions",
        recovery=recovery,
        limit=limit,
    )
    reading = LedgerReading(recall.retriever, desk, chunking, cycle)
    loop = LedgerRelay(desk, chunking, reading, Filling(recall.retriever, context))
    return System(loop=loop, layers=recall.layers)


@with_settings_of(relay)
def cosmir(kit: Kit, **settings: Any) -> System:
    """The recipe of `cosmir`, section 4.2: `relay` with `hybrid` recall for what is read again."""
    return relay(kit, hybrid(kit), **settings)


def chain_of_agents(
    kit: Kit,
    *,
    chunk: ChunkSize = CHUNK,
    words: Annotated[Positive, "words of a note at most"] = 400,
    direction: Annotated[
        Literal["forwards", "both"], "both: the text is read backwards too, and both notes count"
    ] = "forwards",
    runs: Annotated[
        Positive,
        "runs, of which the most frequent answer counts; needs a model with a temperature above 0",
        Multiplies("calls of a question", most=20),
    ] = 1,
) -> System:
    """The recipe of `chain_of_agents`: `loops.relay` with a note."""
    desk = kit.desk
    chunking = Chunking(desk, size=chunk)
    reading = NoteReading(desk, words=words)
    both_ways = direction == "both"
    return System(loop=Relay(desk, chunking, reading, both_ways=both_ways, runs=runs))


SYSTEMS = {
    "cosmir": SystemDeclaration(
        recipe=cosmir,
        kind="reads in order",
        summary=(
            "Read everything in order with a ledger of questions, facts and inferences; answer from the ledger, "
            "and from passages beside it."
        ),
        paper="COSMIR, arXiv 2510.04568",
        about="What is read again at the end is found with the recall of `hybrid`.",
        deviations=(
            "the ledger forgets after the inference, not before it, and what nothing needs before what is old. A wave "
            "without a new fact has neither inference nor refinement, the last wave no refinement unless a "
            "recovery may follow. Wide questions have places of their own. Waves, order by relevance, recovery and the "
            "passages beside the ledger are ours."
        ),
        no_recall="reads everything in order",
        ablations={
            "extraction alone": {"inference": "none", "refinement": "none", "recovery": 0.0},
            "without inference": {"inference": "none"},
            "without refinement": {"refinement": "none"},
            "without recovery": {"recovery": 0.0},
            "unbounded ledger": {"memory": 0},
            "ledger alone": {"context": 0},
        },
    ),
    "chain_of_agents": SystemDeclaration(
        recipe=chain_of_agents,
        kind="reads in order",
        summary="Read everything in order with one note that each reader hands on; answer from the last note alone.",
        paper="Chain of Agents (Zhang et al. 2024), arXiv 2406.02818",
        deviations=(
            "a chunk is made of whole passages, not of sentences. No model judges between answers: both "
            "notes are shown "
            "to the answering role, and runs vote."
        ),
        no_recall="reads everything in order",
        ablations={"bidirectional": {"direction": "both"}, "self-consistent": {"runs": 5}},
    ),
}

LOOPS = {
    "relay": SystemDeclaration(
        recipe=relay,
        kind="reads in order",
        summary="COSMIR's loop: read everything in order with a ledger, then search for what is still open.",
        paper="COSMIR, arXiv 2510.04568",
    ),
}
