"""Systems that read the whole text in order: COSMIR, Chain of Agents, and `read_through`, which is ours."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tomewise.loops.ledger_relay import Cosmir
from tomewise.loops.read_through import ReadThrough
from tomewise.loops.relay import ChainOfAgents
from tomewise.systems.from_passages import hybrid
from tomewise.systems.kit import (
    CONTEXT,
    OURS,
    Context,
    Kit,
    Multiplies,
    Positive,
    Share,
    System,
    SystemDeclaration,
    find_recall,
)

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
    """The recipe of `cosmir`, section 4.2: `loops.ledger_relay`."""
    return System(loop=Cosmir(kit.desk, chunk, share))


def read_through(
    kit: Kit,
    *,
    chunk: ChunkSize = 64_000,
    wave: Annotated[Positive, "chunks that are read side by side", Multiplies("calls at once", most=64)] = 1,
    order: Annotated[Literal["document", "relevance"], "order in which chunks are read"] = "document",
    to_end: Annotated[bool, "whether all is read, also where the question is settled before"] = False,
    recovery: Annotated[Share, "share of the text that is read again at the end for open questions; 0: none"] = 0.2,
    context: Context = CONTEXT,
) -> System:
    """The recipe of `read_through`, `loops.read_through`, with `hybrid`'s search for what is read again or beside."""
    recall, desk = find_recall("hybrid", hybrid(kit)).retriever, kit.fusing_desk.alone
    loop = ReadThrough(
        desk=desk,
        recall=recall,
        size=chunk,
        context=context,
        wave=wave,
        by_relevance=order == "relevance",
        to_end=to_end,
        recovery=recovery,
    )
    return System(loop=loop)


def chain_of_agents(
    kit: Kit,
    *,
    chunk: ChunkSize = 8_000,
    words: Annotated[Positive, "words of a note at most; 680 are about the paper's 1,024 tokens"] = 680,
) -> System:
    """The recipe of `chain_of_agents`: `loops.relay`."""
    return System(loop=ChainOfAgents(kit.desk, chunk, words))


SYSTEMS = {
    "cosmir": SystemDeclaration(
        recipe=cosmir,
        kind="reads in order",
        summary=(
            "Read everything in order with a ledger of questions, facts and inferences; answer from the ledger alone."
        ),
        paper="COSMIR, arXiv 2510.04568",
        deviations=(
            "chunks are runs of whole passages. A chunk is asked for 40 facts at a time, until no reply is full, and "
            "an inference step for at most five inferences. The manager sees facts in the order of the text, those of "
            "a passage together."
        ),
        no_recall="reads everything in order",
    ),
    "read_through": SystemDeclaration(
        recipe=read_through,
        kind="reads in order",
        summary=(
            "Read in order with a ledger until the question is settled, read again what is still open; answer from "
            "the passages of facts, and from what follows from them."
        ),
        paper=OURS,
        about=(
            "After COSMIR: facts are spans of passages, which are shown whole; one reply infers, says what is "
            "overtaken, and refines. What is read again, and passages beside, are found with the recall of `hybrid`."
        ),
        no_recall="reads everything in order",
        ablations={"without recovery": {"recovery": 0.0}, "to the end": {"to_end": True}},
    ),
    "chain_of_agents": SystemDeclaration(
        recipe=chain_of_agents,
        kind="reads in order",
        summary="Read everything in order with one note that each reader hands on; answer from the last note alone.",
        paper="Chain of Agents (Zhang et al. 2024), arXiv 2406.02818",
        deviations=(
            "a chunk is made of whole passages, not of sentences. Of the paper's several ways through a text, only "
            "the first is here: one pass from beginning to end."
        ),
        no_recall="reads everything in order",
    ),
}
