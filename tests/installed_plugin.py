"""Install the package `examples/own_part` for a test: its entry points on the path, as an installer writes them.

Without an installer, so that it takes no time and needs neither a network nor a build tool.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tomewise import plugins

PLUGIN = Path(__file__).parents[1] / "examples" / "own_part"
SOURCES = PLUGIN / "src"


def install_plugin(folder: Path) -> None:
    """Write the metadata of the package into `folder`, which is to come on the path together with `SOURCES`."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text("utf-8"))["project"]
    write_metadata(folder, project["name"], project["entry-points"], project["version"])


def write_metadata(folder: Path, name: str, points: Mapping[str, Mapping[str, str]], version: str = "1.0") -> None:
    """Write what an installer writes of a package: its name and its entry points."""
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    groups = (
        f"[{group}]\n" + "".join(f"{part} = {place}\n" for part, place in places.items())
        for group, places in points.items()
    )
    (about / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")


def forget_parts(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Let this test begin without registered parts, and without modules that an earlier test imported."""
    monkeypatch.setattr(plugins, "_registered", {})
    monkeypatch.setattr(plugins, "_imported", {})
    for name in [name for name in sys.modules if name.partition(".")[0] in modules]:
        monkeypatch.delitem(sys.modules, name)
