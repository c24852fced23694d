from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tomewise.errors import UnknownName, UsageError
from tomewise.systems import registry
from tomewise.systems.recipe_settings import read_declared
from tomewise.systems.registry import name_variant, parse_variant, parse_variants


def test_systems_settings_and_all():
    naive, hybrid = parse_variants(["naive", "hybrid  limit=3 context=100", "naive"])
    assert (naive.name, naive.system, naive.settings) == ("naive", "naive", {})
    assert (hybrid.name, hybrid.system, hybrid.settings) == (
        "hybrid limit=3 context=100",
        "hybrid",
        {"limit": 3, "context": 100},
    )
    assert [variant.name for variant in parse_variants(["all"])] == list(registry.SYSTEMS)


def test_ablations_are_settings_under_a_name(monkeypatch):
    ablations = {"with less": {"limit": 2}, "with least": {"limit": 1}}
    hybrid = replace(registry.SYSTEMS["hybrid"], ablations=ablations)
    monkeypatch.setattr(registry, "SYSTEMS", {**registry.SYSTEMS, "hybrid": hybrid})
    (found,) = parse_variants(["hybrid:with less context=50"])
    assert (found.name, found.settings) == ("hybrid:with less context=50", {"limit": 2, "context": 50})
    assert [variant.name for variant in parse_variants(["hybrid:all"])] == ["hybrid:with less", "hybrid:with least"]
    with pytest.raises(UnknownName, match="did you mean 'with less'"):
        parse_variants(["hybrid:with les"])


def test_every_ablation_there_is_can_be_named():
    ablations = {name: declared.ablations for name, declared in registry.SYSTEMS.items()}
    named = parse_variants([f"{system}:all" for system in ablations])
    assert len({variant.name for variant in named}) == sum(map(len, ablations.values()))


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
        ("naive cycles=3", UsageError, "no setting 'cycles'"),
        ("naive limit", UsageError, "write 'SYSTEM'"),
        ("naive limit=many", UsageError, "limit must be a valid integer, not 'many'"),
        ("naive limit=2.5", UsageError, "not 2.5"),
        ("naive limit=true", UsageError, "not True"),
        ("naive limit=1 limit=2", UsageError, "gives the setting 'limit' twice"),
        ("probe", UsageError, r"'probe' is a loop and needs a recall: write 'hybrid\+probe'"),
        ("cogitorag blend=-1", UsageError, "blend must be greater than or equal to 0, not -1"),
        ("cogitorag source=novels", UsageError, "source must be 'gists', 'passages' or 'summaries'"),
    ],
)
def test_what_does_not_exist_is_refused(text, error, says):
    with pytest.raises(error, match=says):
        parse_variants([text])


def test_one_variant_is_one():
    assert parse_variant("comorag stride=2").settings == {"stride": 2}
    with pytest.raises(UsageError, match=r"names \d+ systems: name one"):
        parse_variant("all")


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


@pytest.mark.parametrize("text", ["hybrid limit=3 more", "hybrid 'limit=3", "limit=3", ""])
def test_what_names_no_system(text):
    with pytest.raises(UsageError, match="names no system"):
        parse_variant(text)
