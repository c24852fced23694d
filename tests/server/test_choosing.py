"""How far a server lets those go who ask it, by what recipes declare."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from tomewise import plugins, register
from tomewise.errors import UsageError
from tomewise.parts import Context, Count, Kit, Multiplies, System, SystemDeclaration
from tomewise.server.choosing import choose_bounded
from tomewise.systems.recipe_settings import read_declared
from tomewise.systems.registry import SYSTEMS


def deep(
    kit: Kit,
    *,
    depth: Count = 3,
    wide: int = 400,
    turns: Annotated[Count, Multiplies("calls of a question", most=7)] = 2,
    parts: Annotated[int, Field(ge=1, le=5000)] = 1,
    several: dict[str, list[int]] = {},  # noqa: B006 - a default that nobody changes
    context: Context = 6000,
    ladder: str = "",
    free=None,
) -> System: ...


@pytest.fixture(autouse=True)
def strangers(monkeypatch):
    monkeypatch.setattr(plugins, "_registered", {})
    register("systems", "plain", deep)
    deeper = {"deeper": {"depth": 500}}
    register("systems", "declared", SystemDeclaration(recipe=deep, summary="Deep."))
    register("systems", "ablated", SystemDeclaration(recipe=deep, summary="Deep.", ablations=deeper))


@pytest.mark.parametrize("system", ["plain", "declared"])
@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"depth": 900_000}, r"allows 100 at most; its recipe may declare more, as Annotated\[int, Multiplies\("),
        ({"wide": 4001}, "allows 4,000 at most; its recipe may declare"),
        ({"turns": 8}, "settings.turns is 8: this server allows 7 at most$"),
        ({"parts": 5001}, "less than or equal to 5000"),
        ({"several": {"a": [1, 101]}}, "allows 100 at most; its recipe"),
        ({"context": 1_000_001}, "allows 1,000,000 at most$"),
        ({"free": -101}, "allows 100 at most"),
        ({"free": "x" * 2001}, "too long"),
    ],
)
def test_a_recipe_from_outside_is_bounded_by_what_it_declares(system, settings, most):
    with pytest.raises(UsageError, match=most):
        choose_bounded(system, settings)


def test_what_is_within_the_bounds_is_allowed():
    settings = {"depth": 100, "wide": 4000, "turns": 7, "parts": 5000, "context": 1_000_000, "free": True}
    assert choose_bounded("declared", settings).settings == settings
    assert choose_bounded("ablated:deeper", {}).settings == {"depth": 500}  # an author has declared it
    for name, declared in SYSTEMS.items():
        ours = {setting.name: setting.default for setting in read_declared(declared.recipe).values()}
        assert choose_bounded(name, {key: value for key, value in ours.items() if value is not None})
    for system, wrong in (("plain+once turns=8", r"settings\.turns is 8"), ("ablated depth=501", "allows 500 at most")):
        with pytest.raises(UsageError, match=wrong):
            choose_bounded(system, {})
    with pytest.raises(UsageError, match=r"server allows [0-9,]+ at most$"):  # only an author can declare more
        choose_bounded("associative", {"seeded": 1_000_000})


def test_the_default_of_the_operator_is_not_bounded():
    default = "plain depth=5000"
    for stated in (None, "", default):
        assert choose_bounded(stated, {"turns": 7}, default).settings == {"depth": 5000, "turns": 7}
    for system, settings in ((None, {"depth": 101}), (None, {"turns": 8}), ("plain depth=5001", {})):
        with pytest.raises(UsageError, match="this server allows"):
            choose_bounded(system, settings, default)
