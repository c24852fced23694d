"""Which systems there are, the texts that name them, and the settings that their recipes take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tomewise.errors import UnknownName, UsageError
from tomewise.systems import registry
from tomewise.systems.kit import read_declaration
from tomewise.systems.recipe_settings import read_declared, validate_settings
from tomewise.systems.registry import Declared, Variant, parse_variant, parse_variants

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


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("hybird", UnknownName, "did you mean 'hybrid'"),
        ("naive:without rain", UnknownName, "no ablation 'without rain'"),
        ("hybrid:without rewritin", UnknownName, "did you mean 'without rewriting'"),
        ("naive cycles=3", UsageError, "no setting 'cycles'"),
        ("naive limit", UsageError, "write 'SYSTEM'"),
        ("naive limit=many", UsageError, "limit must be a valid integer, not 'many'"),
        ("naive limit=1 limit=2", UsageError, "gives the setting 'limit' twice"),
        ("probe", UsageError, r"'probe' is a loop and needs a recall: write 'hybrid\+probe'"),
        ("raptor+prob", UnknownName, "did you mean 'probe'"),
        ("rapto+probe", UnknownName, "did you mean 'raptor'"),
        ("raptor+probe+once", UnknownName, "is not a loop"),
        ("comorag+once", UsageError, "searches several layers at once"),
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
    ],
)
def test_a_name_says_the_settings_and_is_read_as_them(text, name):
    variant = parse_variant(text)
    assert variant.label == name
    assert parse_variant(name).settings == variant.settings


def recipe(kit: Kit, *, name: str = "x", deep: bool = False, depth: int = 0, most: int | None = None, json=3) -> System:
    return (kit, name, deep, depth, most, json)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("part", "settings", "message"),
    [
        (recipe, {"depth": True}, "own: depth must be a valid integer, not True"),
        (recipe, {"dept": 1}, "own has no setting 'dept': did you mean 'depth'"),
        (lambda kit, *, least: None, {}, "own needs a value for the setting 'least'"),
        (lambda *, kit: None, {}, "is not a recipe"),
        (3, {}, "is not a recipe"),
    ],
)
def test_what_a_signature_does_not_take(part, settings, message):
    with pytest.raises(UsageError, match=message):
        validate_settings("own", part, settings)


def test_settings_of_any_name_and_type_in_a_text(monkeypatch):
    monkeypatch.setattr(Declared, "find", lambda *_: read_declaration(recipe))
    variant = parse_variant("""own name=2026-01 deep=true 'json={"a": [1]}' most=null""")
    settings = {"name": "2026-01", "deep": True, "json": {"a": [1]}, "most": None}
    assert variant.settings == settings
    assert variant.declaration.recipe("the kit", **settings)[1] == "2026-01"
    settings["name"] = "3"  # written as it is, this text would be read as a number
    text = Variant("own", "own", settings).label
    assert parse_variant(text).settings == settings
    with pytest.raises(UnknownName):
        parse_variant("own kit=1")
