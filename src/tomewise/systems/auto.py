"""A system that spends what the question needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.loops.escalate import Escalate, Way
from tomewise.loops.whole_form import WholeForm
from tomewise.systems.efforts import EFFORTS
from tomewise.systems.kit import OURS, Count, Kit, Multiplies, System, SystemDeclaration
from tomewise.systems.lag import LagFinder
from tomewise.systems.registry import assemble

if TYPE_CHECKING:
    from tomewise.types import Embedder

_BUNDLED = "bundled"  # the embedder for which the rule of whole texts is fitted


def auto(
    kit: Kit,
    *,
    reading: Annotated[
        Count,
        "calls that reading a whole text may take, by its estimate; 0: no limit",
        Multiplies("calls of a question", most=1_000_000),
    ] = 20,
) -> System:
    """The recipe of `auto`: `loops.escalate` over the systems of the other efforts."""
    (thorough,), (whole,) = EFFORTS["thorough"], EFFORTS["whole"]
    loop = Escalate(
        [make_way(kit, name) for name in EFFORTS["quick"]],
        make_way(kit, thorough),
        make_way(kit, whole),
        find_whole=WholeForm(_find_bundled(kit.embedder)).find_reason,
        reading=reading,
    )
    return System(loop=loop, retriever=assemble("hybrid", kit).retriever)


def make_way(kit: Kit, name: str) -> Way:
    """The way of answering of a system."""
    system = assemble(name, kit)
    return Way(name, system.loop, LagFinder(kit, name, system.layers) if system.layers else None)


def _find_bundled(embedder: Embedder) -> Embedder:
    """The bundled embedder: that of the tome, if it is the same one. It is loaded at its first use."""
    bundled = choose_embedder(_BUNDLED)
    return embedder if embedder.name == bundled.name else bundled


SYSTEMS = {
    "auto": SystemDeclaration(
        recipe=auto,
        kind="chooses a system",
        summary=(
            "One answer from one search; where that declines or is in doubt, a loop over what is built; the whole text "
            "where a question needs it."
        ),
        paper=OURS,
        no_recall="chooses a system for each question",
        about=(
            "It needs no layer. `associative` answers first where its graph is built, else `hybrid`; `investigate` "
            "goes on. A question that needs the whole text, by its meaning and its form, goes to `read_through`, "
            "unless that would take more than `reading` calls. The trace says what was chosen, why, and which build "
            "would help."
        ),
    )
}
