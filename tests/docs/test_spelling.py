"""Words of the pages and the examples are spelt as codespell knows them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.texts import REPOSITORY


def test_no_word_is_misspelt() -> None:
    pytest.importorskip("codespell_lib", reason="install the dependency group dev")
    files = subprocess.run(
        ["git", "ls-files", ":(glob)*.md", "docs/*.md", "bench/RESULTS.md", "examples", "mkdocs.yml"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    ran = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *files], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
