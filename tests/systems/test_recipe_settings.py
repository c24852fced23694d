from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import Field

from tomewise.errors import UnknownName, UsageError
from tomewise.systems import registry
from tomewise.systems.declaration import read_declaration
from tomewise.systems.recipe_settings import validate_settings
from tomewise.systems.registry import name_variant, parse_variant

if TYPE_CHECKING:
    from tomewise.systems.kit import Kit, System


def recipe(
    kit: Kit,
    *,
    name: str = "x",
    deep: bool = False,
    depth: Annotated[int, Field(ge=-1)] = 0,
    share: float = 0.5,
    way: Literal["walk", "jump"] = "walk",
    most: int | None = None,
    json=3,
) -> System:
    return (kit, name, deep, depth, share, way, most, json)  # type: ignore[return-value]


def needy(kit, *, least: int):
    return kit, least


GIVEN: dict[str, Any] = {
    "name": "y",
    "deep": True,
    "depth": -1,
    "share": 1,
    "way": "jump",
    "most": None,
    "json": [1, 2],
}


def test_values_that_the_signature_takes():
    assert validate_settings("own", recipe, GIVEN) == GIVEN
    assert validate_settings("own", partial(recipe, deep=True), {"name": "z"}) == {"name": "z"}
    assert validate_settings("own", needy, {"least": 2}) == {"least": 2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"deep": 1}, "own: deep must be a valid boolean, not 1"),
        ({"depth": True}, "own: depth must be a valid integer, not True"),
        ({"depth": -2}, "depth must be greater than or equal to -1, not -2"),
        ({"share": float("nan")}, "share must be a finite number, not nan"),
        ({"way": "run"}, "way must be 'walk' or 'jump', not 'run'"),
        ({"most": "2"}, "most must be a valid integer, not '2'"),
        ({"dept": 1}, "own has no setting 'dept': did you mean 'depth'"),
    ],
)
def test_values_that_it_does_not_take(settings, message):
    with pytest.raises(UsageError, match=message):
        validate_settings("own", recipe, settings)


def test_a_setting_without_a_default_is_needed():
    with pytest.raises(UsageError, match="own needs a value for the setting 'least'"):
        validate_settings("own", needy, {})


@pytest.mark.parametrize("nothing", [lambda: None, lambda *, kit: None, 3])
def test_what_takes_no_kit_is_not_a_recipe(nothing):
    with pytest.raises(UsageError, match="is not a recipe"):
        validate_settings("own", nothing, {})


def test_a_type_that_the_module_does_not_hold_is_named():
    def odd(kit: Kit, *, limit: Nowhere = 1) -> System: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(UsageError, match="Nowhere"):
        validate_settings("own", odd, {})


def test_settings_of_any_name_and_type_in_a_text(monkeypatch):
    monkeypatch.setattr(registry, "SYSTEMS", {**registry.SYSTEMS, "own": read_declaration(recipe)})
    variant = parse_variant("""own name=2026-01 deep=true 'json={"a": [1]}' most=null""")
    settings = {"name": "2026-01", "deep": True, "json": {"a": [1]}, "most": None}
    assert variant.settings == settings
    assert registry.assemble("own", "the kit", **settings)[1] == "2026-01"
    settings["name"] = "3"  # written as it is, this text would be read as a number
    text = name_variant("own", settings)
    assert parse_variant(text).settings == settings
    with pytest.raises(UnknownName):
        parse_variant("own kit=1")
