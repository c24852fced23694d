"""Build the site of the documentation: write the generated pages, build, check, and write what agents read.

    python -m tools.docs.build            # into build/site
    python -m tools.docs.build --serve    # builds again whenever a page changes, at http://localhost:8000
    python -m tools.docs.build --write    # the generated pages alone
    python -m tools.docs.build --check    # whether these are current

Generated pages lie in `docs/reference/`, parts of pages in `docs/parts/`. Git keeps both: every link leads somewhere.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import griffe
import yaml
from tools.docs.agent_files import write_agent_files
from tools.docs.check_site import find_drawing_faults, find_nav_faults, find_site_faults
from tools.docs.command_pages import write_command_pages
from tools.docs.event_pages import write_event_page
from tools.docs.export_difference import write_export_difference
from tools.docs.limit_pages import write_limit_page
from tools.docs.python_pages import find_faults, load_package, write_python_pages
from tools.docs.reference_pages import write_reference_pages
from tools.docs.system_parts import write_system_parts

DOCS, SITE, CONFIG = Path("docs"), Path("build/site"), Path("mkdocs.yml")
GENERATED = DOCS / "reference", DOCS / "parts"


def main() -> None:
    """Build the site, or serve it. Raises SystemExit with all faults that were found."""
    package = load_package()
    texts = generate_texts(package)
    if "--check" in sys.argv[1:]:
        kept = {path: path.read_text(encoding="utf-8") for path in list_generated()}
        stale = sorted(path.as_posix() for path in kept.keys() | texts if kept.get(path) != texts.get(path))
        stop([f"{path} is not current: run `python -m tools.docs.build --write`" for path in stale])
        return
    write_files(texts)
    if "--write" in sys.argv[1:]:
        return
    config = read_config()
    stop([*find_nav_faults(config["nav"], DOCS), *find_faults(package), *find_drawing_faults(DOCS / "drawings")])
    if "--serve" in sys.argv[1:]:
        subprocess.run([_find_builder(), "serve", "-f", str(CONFIG)], check=True)
        return
    shutil.rmtree(SITE, ignore_errors=True)
    if subprocess.run([_find_builder(), "build", "--strict", "--clean", "-f", str(CONFIG)], check=False).returncode:
        sys.exit("the site was not built: see above")
    write_agent_files(SITE, config["nav"], config["site_description"])
    stop(list(find_site_faults(SITE)))


def generate_texts(package: griffe.Module) -> dict[Path, str]:
    """The texts of all generated files by their paths."""
    reference, parts = GENERATED
    pages = {**write_command_pages(), **write_reference_pages(), **write_python_pages(package)}
    pages |= {"events.md": write_event_page(), "limits.md": write_limit_page()}
    included = {**write_system_parts(), "changes": write_export_difference()}
    return {reference / name: text for name, text in pages.items()} | {
        parts / f"{name}.txt": text for name, text in included.items()
    }


def list_generated() -> list[Path]:
    """The generated files that are there."""
    return [path for folder in GENERATED for path in folder.rglob("*.*")]


def write_files(texts: Mapping[Path, str]) -> None:
    """Write the generated files, and delete others. A file that does not change keeps its time."""
    for path in list_generated():
        if path not in texts:
            path.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def read_config() -> dict[str, Any]:
    """What `mkdocs.yml` says, without the objects that some of its values name."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    return config


def stop(faults: list[str]) -> None:
    """Raise SystemExit with these faults, if there are any."""
    if faults:
        sys.exit("\n".join([*faults, f"{len(faults)} faults"]))


def _find_builder() -> str:
    return str(Path(sys.executable).with_name("zensical"))


if __name__ == "__main__":
    main()
