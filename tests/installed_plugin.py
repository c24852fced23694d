"""Install the package `examples/own_part` for a test: its entry points on the path, as an installer writes them.

Without an installer, so that it takes no time and needs neither a network nor a build tool.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

PLUGIN = Path(__file__).parents[1] / "examples" / "own_part"
SOURCES = PLUGIN / "src"


def install_plugin(folder: Path) -> None:
    """Write the metadata of the package into `folder`, which is to come on the path together with `SOURCES`."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text("utf-8"))["project"]
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in points.items())
        for group, points in project["entry-points"].items()
    )
    (about / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
