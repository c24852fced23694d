"""Answers by a model that looks into documents with tools, and its baseline, which greps in files."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from tomewise.loops.explore import LOOKS, Explore
from tomewise.loops.looks import TOOLS
from tomewise.systems.from_passages import hybrid
from tomewise.systems.kit import (
    CONTEXT,
    OURS,
    Context,
    Count,
    Kit,
    Multiplies,
    Positive,
    System,
    SystemDeclaration,
)

_READING = 4000
Looks: TypeAlias = Annotated[
    Count, "calls that choose looks at most, up to three each", Multiplies("calls of a question", most=50)
]
Reading: TypeAlias = Annotated[
    Positive, "tokens that the looks of one call show", Multiplies("tokens of such a call", most=1_000_000)
]


def explore(
    kit: Kit,
    *,
    looks: Looks = LOOKS,
    reading: Reading = _READING,
    without: Annotated[Literal["", "find", "search", "read", "outline"], "a tool that the model does not have"] = "",
    context: Context = CONTEXT,
) -> System:
    """The recipe of `explore`: `loops.explore` with all tools, around the search of `hybrid`."""
    recall = hybrid(kit).retriever
    tools = [name for name in TOOLS if name != without]
    loop = Explore(desk=kit.fusing_desk.alone, recall=recall, budget=context, reading=reading, looks=looks, tools=tools)
    return System(loop=loop, retriever=recall)


def grep_agent(kit: Kit, *, looks: Looks = LOOKS, reading: Reading = _READING, context: Context = CONTEXT) -> System:
    """The recipe of `grep_agent`: `loops.explore` with find and read alone."""
    desk = kit.fusing_desk.alone
    return System(
        loop=Explore(desk=desk, recall=None, budget=context, reading=reading, looks=looks, tools=("find", "read"))
    )


SYSTEMS = {
    "explore": SystemDeclaration(
        recipe=explore,
        kind="loop",
        summary="A model finds, searches, reads and sees outlines, and keeps evidence, until it can answer.",
        paper=OURS,
        about=(
            "It needs no build. The search with the question comes first, without a call. Exact counts of a find go "
            "into the last prompt, which has what was kept and the best of all searches."
        ),
        ablations={f"without {name}": {"without": name} for name in TOOLS},
    ),
    "grep_agent": SystemDeclaration(
        recipe=grep_agent,
        kind="loop",
        summary="A model finds words and patterns in plain files and reads around them, until it can answer.",
        paper=OURS,
        about=(
            "The baseline of `explore`: an agent with grep. It has no search by meaning and no outline; the answer is "
            "shown what it kept, then what it read last."
        ),
    ),
}
