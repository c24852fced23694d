"""Systems that read the whole text in order: COSMIR, Chain of Agents, and `read_through`, which is ours."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tomewise.loops.chunking import Chunking, Order
from tomewise.loops.ledger_notes import Cycle, LedgerReading
from tomewise.loops.notes import NoteReading
from tomewise.loops.relay import LedgerRelay, Relay
from tomewise.systems.from_passages import hybrid
from tomewise.systems.kit import (
    CONTEXT,
    OURS,
    Count,
    Kit,
    Multiplies,
    Positive,
    Share,
    System,
    SystemDeclaration,
    find_recall,
)

_QUESTIONS = 10  # that are open at a time at most, beside wide ones
ChunkSize = Annotated[
    Positive,
    "tokens of a chunk, fewer where the model's window is smaller",
    Multiplies("tokens of a call", most=1_000_000),
]


def cosmir(
    kit: Kit,
    *,
    chunk: ChunkSize = 64_000,
    share: Annotated[
        float, Field(gt=0, le=1), "facts that the ledger holds, as a share of the tokens of a chunk (k)"
    ] = 0.125,
) -> System:
    """The recipe of `cosmir`, section 4.2: `loops.relay` with a ledger."""
    desk = kit.desk
    chunking = Chunking(desk, size=chunk)
    return System(loop=LedgerRelay(desk, chunking, LedgerReading(desk, chunking, Cycle(share=share))))


def read_through(
    kit: Kit,
    *,
    chunk: ChunkSize = 64_000,
    memory: Annotated[
        Count,
        "tokens of facts that the ledger holds, fewer where the window is smaller; 0: no limit",
        Multiplies("tokens of a call", most=1_000_000),
    ] = 8_000,
    wave: Annotated[Positive, "chunks that are read side by side", Multiplies("calls at once", most=64)] = 1,
    order: Annotated[Order, "order in which chunks are read"] = "document",
    recovery: Annotated[Share, "share of the text that is read again at the end for open questions; 0: none"] = 0.2,
    context: Annotated[
        Count,
        "tokens that the answering role sees; passages fill what the ledger leaves; 0: no passages",
        Multiplies("tokens of the answering call", most=1_000_000),
    ] = CONTEXT,
) -> System:
    """The recipe of `read_through`: `loops.relay` with a ledger, and with `hybrid`'s search for what is read again."""
    recall, desk = find_recall("hybrid", hybrid(kit)).retriever, kit.fusing_desk.alone
    chunking = Chunking(desk, size=chunk, order=order, recall=recall)
    cycle = Cycle(published=False, memory=memory, wave=wave, questions=_QUESTIONS, recovery=recovery)
    return System(loop=LedgerRelay(desk, chunking, LedgerReading(desk, chunking, cycle), context))


def chain_of_agents(
    kit: Kit,
    *,
    chunk: ChunkSize = 8_000,
    words: Annotated[Positive, "words of a note at most; 680 are about the paper's 1,024 tokens"] = 680,
    runs: Annotated[
        Positive,
        "runs, of which the most frequent answer counts; needs a model with a temperature above 0",
        Multiplies("calls of a question", most=20),
    ] = 1,
) -> System:
    """The recipe of `chain_of_agents`: `loops.relay` with a note."""
    desk = kit.desk
    return System(loop=Relay(desk, Chunking(desk, size=chunk), NoteReading(desk, words=words), runs=runs))


SYSTEMS = {
    "cosmir": SystemDeclaration(
        recipe=cosmir,
        kind="reads in order",
        summary=(
            "Read everything in order with a ledger of questions, facts and inferences; answer from the ledger alone."
        ),
        paper="COSMIR, arXiv 2510.04568",
        deviations=(
            "chunks are runs of whole passages. A chunk is asked for at most one fact for each 60 tokens of the "
            "budget, or for 8, and an inference step for at most five inferences, since a reply has an end. The "
            "manager sees facts in the order of the text, those of a passage together."
        ),
        no_recall="reads everything in order",
    ),
    "read_through": SystemDeclaration(
        recipe=read_through,
        kind="reads in order",
        summary=(
            "Read everything in order with a ledger, read again what is still open; answer from the ledger, and from "
            "passages beside it."
        ),
        paper=OURS,
        about=(
            "The cycle of COSMIR, with waves, order by relevance and recovery. What is read again, and the passages "
            "beside the ledger, are found with the recall of `hybrid`."
        ),
        no_recall="reads everything in order",
        ablations={"without recovery": {"recovery": 0.0}, "ledger alone": {"context": 0}},
    ),
    "chain_of_agents": SystemDeclaration(
        recipe=chain_of_agents,
        kind="reads in order",
        summary="Read everything in order with one note that each reader hands on; answer from the last note alone.",
        paper="Chain of Agents (Zhang et al. 2024), arXiv 2406.02818",
        deviations=(
            "a chunk is made of whole passages, not of sentences. Of the paper's several ways through a text, only "
            "self-consistency with a vote is here: no text is read backwards or in another order, and no model judges "
            "between notes."
        ),
        no_recall="reads everything in order",
        ablations={"self-consistent": {"runs": 5}},
    ),
}
