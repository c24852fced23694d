"""A release is refused while version, changelog and tree disagree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import release

URLS = "".join(f'{name} = "https://example.org/{name}"\n' for name in ("Documentation", "Source", "Issues"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clean tree that is ready for version 0.2.0."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "0.2.0"\n[project.urls]\n' + URLS)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0 (2026-01-31)\n\n- More.\n\n## 0.1.0 (2025-01-31)\n")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "x"]):
        own = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True)
    return tmp_path


def test_each_disagreement_is_named(repository):
    faults = release.find_faults(repository, "0.3.0")
    assert faults == [
        "pyproject.toml has the version 0.2.0: set it to 0.3.0",
        "the newest part of CHANGELOG.md is 0.2.0: write that of 0.3.0",
    ]
    project = repository / "pyproject.toml"
    project.write_text(project.read_text().replace("Issues", "Elsewhere"))
    assert "no address for Issues" in release.find_faults(repository, "0.2.0")[0]
    assert "is not a version such as 0.2.0" in release.find_faults(repository, "v1")[0]


def test_an_unreleased_changelog_an_open_tree_and_a_tag_are_refused(repository):
    changelog = repository / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("2026-01-31", "unreleased"))
    subprocess.run(["git", "tag", "v0.2.0"], cwd=repository, check=True)
    date, tree, tag = release.find_faults(repository, "0.2.0")
    assert "'unreleased' in place of a date" in date
    assert tree == "the tree is not clean: commit or remove CHANGELOG.md"
    assert tag == "the tag v0.2.0 exists: a version is released once"
