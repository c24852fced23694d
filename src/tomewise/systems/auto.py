"""A system that spends what the question needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import UsageError
from tomewise.loops.escalate import Escalate, Way
from tomewise.loops.whole_form import WholeForm
from tomewise.systems.kit import OURS, Count, Kit, Multiplies, System, SystemDeclaration
from tomewise.systems.lag import LagFinder

if TYPE_CHECKING:
    from tomewise.types import Embedder

_LADDER = "comorag, hipporag2+probe, raptor+probe, hybrid+probe"
_WHOLE = "cosmir"
_READING = 20  # calls
_BUNDLED = "bundled"  # the embedder for which the rule of whole texts is fitted


def declare_auto(
    wire: Callable[[str, Kit], tuple[str, System]], list_systems: Callable[[], list[str]]
) -> SystemDeclaration:
    """The declaration. It chooses among all systems and is one of them, so it is given the functions that know them.

    `wire` gives the label and the system of a name; `list_systems` gives all names.
    """

    def make_way(kit: Kit, name: str) -> Way:
        label, system = wire(name, kit)
        return Way(label, system.loop, LagFinder(kit, label, system.layers) if system.layers else None)

    def is_known(name: str) -> bool:
        """Whether the text begins with the name of a system of ours or of a plugin."""
        return name.split()[0].partition(":")[0] in list_systems() or "+" in name

    def auto(
        kit: Kit,
        *,
        first: Annotated[str, "the system of the first answer; it needs no layer"] = "hybrid",
        ladder: Annotated[str, "the systems that go on, the most thorough first, separated by commas"] = _LADDER,
        whole: Annotated[str, "the systems for questions that need the whole text"] = _WHOLE,
        reading: Annotated[
            Count,
            "calls that reading a whole text may take, by its estimate; 0: no limit",
            Multiplies("calls of a question", most=1_000_000),
        ] = _READING,
        budget: Annotated[
            Count,
            "calls of a question at most, by what the systems state; 0: no limit",
            Multiplies("calls of a question", most=1_000_000),
        ] = 0,
    ) -> System:
        """The recipe of `auto`: `loops.escalate`."""
        label, start = wire(first, kit)
        if start.layers:
            raise UsageError(
                f"auto needs a first system without layers, not {first!r}: name one such as hybrid or naive"
            )
        loop = Escalate(
            Way(label, start.loop),
            [make_way(kit, name) for name in _split(ladder)],
            [make_way(kit, name) if is_known(name) else Way(name, None) for name in _split(whole)],
            find_whole=WholeForm(_find_bundled(kit.embedder)).find_reason,
            reading=reading,
            budget=budget,
        )
        return System(loop=loop, retriever=start.retriever)

    return SystemDeclaration(
        recipe=auto,
        kind="chooses a system",
        summary=(
            "One answer from one search; where that declines or is in doubt, the longest loop whose memory is built."
        ),
        paper=OURS,
        about=(
            "It needs no layer; what is built is used, and the trace says which build would help. The first system of "
            "`ladder` whose layers are built is taken, also where they lag; for a question with `current` they must "
            "be up to date. `whole` are those for questions that need the whole text, by their meaning and their "
            "form; one whose estimate exceeds `reading` calls is passed over, as are names that are not systems here, "
            "and the trace says so and what it would cost. With a `budget` a system of `ladder` that states no upper "
            "limit is passed over."
        ),
    )


def _find_bundled(embedder: Embedder) -> Embedder:
    """The bundled embedder: that of the tome, if it is the same one. It is loaded at its first use."""
    bundled = choose_embedder(_BUNDLED)
    return embedder if embedder.name == bundled.name else bundled


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
