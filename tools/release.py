"""Prepare a release: check everything, build, and tag. Uploads and pushes nothing.

    python tools/release.py 0.2.0

`docs/versions.md` says what is checked. Files are built into `dist/`, which is emptied first.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
TARGETS = ("check", "test", "test-wheel")
_URLS = ("Documentation", "Source", "Issues")
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


def find_faults(repository: Path, version: str) -> list[str]:
    """What stands against a release of this version; empty if nothing does."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) \((.+)\)$", changelog, re.MULTILINE)
    faults = []
    if not _VERSION.fullmatch(version):
        faults.append(f"{version!r} is not a version such as 0.2.0 or 0.2.0rc1")
    if project["version"] != version:
        faults.append(f"pyproject.toml has the version {project['version']}: set it to {version}")
    if newest is None or newest[1] != version:
        faults.append(
            f"the newest part of CHANGELOG.md is {newest[1] if newest else 'missing'}: write that of {version}"
        )
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", newest[2]):
        faults.append(f"CHANGELOG.md has {newest[2]!r} in place of a date for {version}: write it as 2026-01-31")
    if missing := [name for name in _URLS if not project.get("urls", {}).get(name, "").startswith("https://")]:
        faults.append(f"[project.urls] of pyproject.toml has no address for {', '.join(missing)}: write it")
    if changed := run_git(repository, "status", "--porcelain"):
        faults.append(f"the tree is not clean: commit or remove {', '.join(line[3:] for line in changed.splitlines())}")
    if run_git(repository, "tag", "--list", f"v{version}"):
        faults.append(f"the tag v{version} exists: a version is released once")
    return faults


def run_git(repository: Path, *words: str) -> str:
    """What git writes, without blanks at its end."""
    ran = subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True, check=True)
    return ran.stdout.rstrip()


def run(*words: object) -> None:
    """Run a command in the repository; its failure ends this program."""
    print("+", " ".join(map(str, words)), flush=True)
    if code := subprocess.run(list(map(str, words)), cwd=REPOSITORY, check=False).returncode:
        raise SystemExit(code)


def build(folder: Path, version: str) -> list[Path]:
    """Build the sdist, and the wheel from it; check both with twine. Returns the two files."""
    shutil.rmtree(folder, ignore_errors=True)
    run(UV, "build", "--quiet", "--out-dir", folder)
    files = [folder / f"tomewise-{version}.tar.gz", folder / f"tomewise-{version}-py3-none-any.whl"]
    if missing := [file.name for file in files if not file.exists()]:
        raise SystemExit(f"the build has not made {', '.join(missing)}")
    run(UV, "tool", "run", "--quiet", "twine", "check", "--strict", *files)
    return files


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("version")
    version = options.parse_args().version
    if faults := find_faults(REPOSITORY, version):
        raise SystemExit("\n".join(faults))
    for target in TARGETS:
        run("make", target)
    files = build(REPOSITORY / "dist", version)
    run("git", "tag", "--annotate", f"v{version}", "--message", f"Tomewise {version}")
    print(f"\ntagged v{version}. To publish it:\n  git push origin v{version}")
    print(f"  {UV.name} publish {' '.join(str(file.relative_to(REPOSITORY)) for file in files)}")


if __name__ == "__main__":
    main()
