"""Systems that spend what the question needs, and that read the whole text, at once where it fits."""

from __future__ import annotations

from functools import partial

from tomewise.loops.at_once import AtOnce, Whole
from tomewise.loops.escalate import Escalate, Way
from tomewise.loops.read_through import ReadThrough
from tomewise.systems.efforts import EFFORTS
from tomewise.systems.kit import CONTEXT, OURS, Context, Kit, System, SystemDeclaration
from tomewise.systems.lag import LagFinder
from tomewise.systems.pricing import price_answers
from tomewise.systems.registry import assemble

# Times the context of one call: what a search costs with all that follows it, and what follows it where it fails.
_SHORT, _FAIR = 4, 10


def auto(kit: Kit, *, context: Context = CONTEXT) -> System:
    """The recipe of `auto`: `loops.escalate` over the systems of the other efforts."""
    (thorough,) = EFFORTS["thorough"]
    loop = Escalate(
        quick=[make_way(kit, name, context) for name in EFFORTS["quick"]],
        thorough=make_way(kit, thorough, context),
        whole=make_whole(kit),
        short=_SHORT * context,
        fair=_FAIR * context,
        model=kit.model,
        price=partial(price_answers, kit),
    )
    return System(loop=loop, retriever=assemble("hybrid", kit).retriever)


def make_way(kit: Kit, name: str, context: int) -> Way:
    """The way of answering of a system."""
    system = assemble(name, kit, context=context)
    return Way(name, system.loop, LagFinder(kit, name, system.layers) if system.layers else None)


def whole(kit: Kit) -> System:
    """The recipe of `whole`: `loops.at_once`, and `read_through` to the end."""
    return System(loop=make_whole(kit))


def make_whole(kit: Kit) -> Whole:
    """The loop of `whole`."""
    by_parts = assemble("read_through", kit, to_end=True).loop
    assert isinstance(by_parts, ReadThrough)
    return Whole(AtOnce(kit.desk), by_parts)


SYSTEMS = {
    "auto": SystemDeclaration(
        recipe=auto,
        kind="chooses a system",
        summary=(
            "A short text at once; else one search, and a loop or the whole text where its answer is in doubt or the "
            "question asks for all."
        ),
        paper=OURS,
        no_recall="chooses a system for each question",
        about=(
            "It needs no layer. `associative` answers first where its graph is built, else `hybrid`; `investigate` "
            "goes on. What the question asks about is a field of the first reply: how often a word stands is counted "
            "as `tome find` does, a list is collected as by `tome collect`, and what else needs the whole text goes to "
            "`whole`, if a budget or, without one, 1,000,000 tokens and ten minutes allow that. The trace says what "
            "was chosen, why, and which build would help."
        ),
    ),
    "whole": SystemDeclaration(
        recipe=whole,
        kind="reads in order",
        summary="Read the text at once where half of the window holds it, else part by part as `read_through` does.",
        paper=OURS,
        about=(
            "It needs no layer. The text stands first in the prompt, the same for every question, so the cache of a "
            "provider or a local server makes a second question cheap. Without a model, `read_through` quotes."
        ),
        no_recall="reads everything in order",
    ),
}
