"""Which systems there are, the texts that name them, and the settings that their recipes take."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from pydantic import Field

from tomewise.errors import UnknownName, UsageError
from tomewise.systems import registry
from tomewise.systems.declaration import read_declaration
from tomewise.systems.recipe_settings import read_declared, validate_settings
from tomewise.systems.registry import name_variant, parse_variant, parse_variants

if TYPE_CHECKING:
    from tomewise.systems.kit import Kit, System


def test_systems_settings_and_all():
    naive, hybrid = parse_variants(["naive", "hybrid  limit=3 context=100", "naive"])
    assert (naive.name, naive.system, naive.settings) == ("naive", "naive", {})
    settings = {"limit": 3, "context": 100}
    assert (hybrid.name, hybrid.system, hybrid.settings) == ("hybrid limit=3 context=100", "hybrid", settings)
    assert [variant.name for variant in parse_variants(["all"])] == list(registry.SYSTEMS)
    assert parse_variant("comorag stride=2").settings == {"stride": 2}
    with pytest.raises(UsageError, match=r"names \d+ systems: name one"):
        parse_variant("all")


def test_ablations_are_settings_under_a_name():
    (found,) = parse_variants(["hybrid:without rewriting context=50"])
    assert (found.name, found.settings) == ("hybrid:without rewriting context=50", {"rewriting": 0.0, "context": 50})
    named = parse_variants([f"{system}:all" for system in registry.SYSTEMS])
    ablations = [f"{name}:{each}" for name, declared in registry.SYSTEMS.items() for each in declared.ablations]
    assert [variant.name for variant in named] == ablations


@pytest.mark.parametrize("name", registry.SYSTEMS)
def test_every_system_says_where_it_comes_from_and_what_its_settings_do(name):
    declared = registry.SYSTEMS[name]
    assert declared.summary.endswith(".")
    assert declared.paper
    assert declared.kind
    assert all(setting.help for setting in read_declared(declared.recipe).values())


def test_python_without_docstrings_shows_the_same():
    command = [sys.executable, "-OO", "-m", "tomewise", "systems", "--json"]
    rows = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    declared = {name: (each.summary, each.deviations) for name, each in registry.SYSTEMS.items()}
    assert {row["name"]: (row["description"], row["deviations"]) for row in rows} == declared


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("hybird", UnknownName, "did you mean 'hybrid'"),
        ("naive:without rain", UnknownName, "no ablation 'without rain'"),
        ("hybrid:without rewritin", UnknownName, "did you mean 'without rewriting'"),
        ("naive cycles=3", UsageError, "no setting 'cycles'"),
        ("naive limit", UsageError, "write 'SYSTEM'"),
        ("naive limit=many", UsageError, "limit must be a valid integer, not 'many'"),
        ("naive limit=2.5", UsageError, "not 2.5"),
        ("naive limit=true", UsageError, "not True"),
        ("naive limit=1 limit=2", UsageError, "gives the setting 'limit' twice"),
        ("probe", UsageError, r"'probe' is a loop and needs a recall: write 'hybrid\+probe'"),
        ("cogitorag blend=-1", UsageError, "blend must be greater than or equal to 0, not -1"),
        ("cogitorag source=novels", UsageError, "source must be 'gists', 'passages' or 'summaries'"),
        *((text, UsageError, "names no system") for text in ("hybrid limit=3 more", "hybrid 'limit=3", "limit=3", "")),
    ],
)
def test_what_does_not_exist_is_refused(text, error, says):
    with pytest.raises(error, match=says):
        parse_variants([text])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cogitorag 'spreading=one step'", "cogitorag:without diffusion"),
        ("cogitorag:without diffusion limit=3", "cogitorag 'spreading=one step' limit=3"),
        ("comorag:without both", "comorag:without both"),
        ("comorag stride=2", "comorag stride=2"),
        ("hybrid", "hybrid"),
    ],
)
def test_a_name_says_the_settings_and_is_read_as_them(text, name):
    variant = parse_variant(text)
    assert name_variant(variant.system, variant.settings) == name
    assert parse_variant(name).settings == variant.settings


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


def need_least(kit, *, least: int):
    return kit, least


GIVEN = {"name": "y", "deep": True, "depth": -1, "share": 1, "way": "jump", "most": None, "json": [1, 2]}


def test_values_that_the_signature_takes():
    assert validate_settings("own", recipe, GIVEN) == GIVEN
    assert validate_settings("own", partial(recipe, deep=True), {"name": "z"}) == {"name": "z"}
    assert validate_settings("own", need_least, {"least": 2}) == {"least": 2}


def take_nowhere(kit, *, limit: Nowhere = 1): ...  # noqa: F821


@pytest.mark.parametrize(
    ("part", "settings", "message"),
    [
        (recipe, {"deep": 1}, "own: deep must be a valid boolean, not 1"),
        (recipe, {"depth": True}, "own: depth must be a valid integer, not True"),
        (recipe, {"depth": -2}, "depth must be greater than or equal to -1, not -2"),
        (recipe, {"share": float("nan")}, "share must be a finite number, not nan"),
        (recipe, {"way": "run"}, "way must be 'walk' or 'jump', not 'run'"),
        (recipe, {"most": "2"}, "most must be a valid integer, not '2'"),
        (recipe, {"dept": 1}, "own has no setting 'dept': did you mean 'depth'"),
        (need_least, {}, "own needs a value for the setting 'least'"),
        (lambda: None, {}, "is not a recipe"),
        (lambda *, kit: None, {}, "is not a recipe"),
        (3, {}, "is not a recipe"),
        (take_nowhere, {}, "Nowhere"),
    ],
)
def test_what_a_signature_does_not_take(part, settings, message):
    with pytest.raises(UsageError, match=message):
        validate_settings("own", part, settings)


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
