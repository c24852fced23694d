"""What a build would cost, and what it would cost with more passages in a call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tomewise.errors import UsageError
from tomewise.outgoing.report_models import BuildCosts, ComparedCosts, OtherCosts
from tomewise.systems import registry
from tomewise.systems.recipe_settings import list_settings
from tomewise.systems.registry import Variant, choose_variant
from tomewise.tome.reports import describe_costs

if TYPE_CHECKING:
    from tomewise.tome.tome import OnProgress, Tome

_TOGETHER = 4  # the size that bench/RESULTS.md compares with one passage a call


def estimate_costs(book: Tome, variant: Variant, report: OnProgress, layers: Sequence[str] = ()) -> BuildCosts:
    """What a build would use: what `tome build --estimate --json` prints.

    `instead` is the same system with several passages in a call, or with one where it has several already. It is there
    if the system has the setting `together` and the calls are not free.
    """
    model = book.kit.model.name
    costs = describe_costs(book.estimate(variant, layers=layers, on_progress=report), variant, model)
    resized = _find_other_size(variant)
    if resized and costs.total.calls and costs.total.cost != 0:
        with suppress(UsageError):  # with other settings it may read one text at a time only, as relations are
            compared = describe_costs(book.estimate(resized, layers=layers, on_progress=report), resized, model)
            instead = OtherCosts(system=resized.name, total=compared.total)
            return ComparedCosts.of(costs, instead=instead)
    return costs


def _find_other_size(variant: Variant) -> Variant | None:
    if "together" not in list_settings(registry.find_recipe(variant.system)):
        return None
    size = _TOGETHER if variant.settings.get("together", 1) == 1 else 1
    return choose_variant(variant, {"together": size})
