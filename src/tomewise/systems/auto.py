"""A system that spends what the question needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tomewise.errors import UsageError
from tomewise.loops.escalate import Escalate, Way
from tomewise.memory.building import find_lag
from tomewise.systems.kit import Count, Kit, Recipe, System

if TYPE_CHECKING:
    from tomewise.types import Layer

_LADDER = "comorag, hipporag2+probe, raptor+probe, hybrid+probe"
_WHOLE = "cosmir"


def make_recipe(wire: Callable[[str, Kit], tuple[str, System]], list_systems: Callable[[], list[str]]) -> Recipe:
    """The recipe. It chooses among all systems and is one of them, so it is given the functions that know them.

    `wire` gives the label and the system of a name; `list_systems` gives all names.
    """

    def make_way(kit: Kit, name: str) -> Way:
        label, system = wire(name, kit)
        return Way(label, system.loop, partial(_list_lag, kit, system.layers))

    def is_known(name: str) -> bool:
        """Whether the text begins with the name of a system of ours or of a plugin."""
        return name.split()[0].partition(":")[0] in list_systems() or "+" in name

    def auto(
        kit: Kit, *, first: str = "hybrid", ladder: str = _LADDER, whole: str = _WHOLE, budget: Count = 0
    ) -> System:
        """One answer from one search; where that declines or is in doubt, the longest loop whose memory is built.

        Ours: `loops.escalate`. Needs no layer; what is built is used, and the trace says which build would help.
        `ladder` are the systems that go on, the most thorough first, separated by commas; the first whose layers are
        up to date is taken. `whole` are those for questions that ask for the whole text ("summarise", "how often",
        "list all"); names that are not systems here are passed over, and the trace says so. `budget` is the most
        calls of one question by the upper limits that the systems state, 0 for no limit; a system that states none is
        then passed over.
        """
        label, start = wire(first, kit)
        if start.layers:
            raise UsageError(
                f"auto needs a first system without layers, not {first!r}: name one such as hybrid or naive"
            )
        loop = Escalate(
            Way(label, start.loop),
            [make_way(kit, name) for name in _split(ladder)],
            [make_way(kit, name) if is_known(name) else Way(name, None) for name in _split(whole)],
            budget=budget,
        )
        return System(loop=loop, retriever=start.retriever)

    return auto


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _list_lag(kit: Kit, layers: Sequence[Layer]) -> list[str]:
    return list(find_lag(layers, kit.store))
