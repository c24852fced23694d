"""Every block of the README, the site and the examples is true: it runs, and prints what is shown."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.texts import REPOSITORY
from tools.docs.run_page import read_program, run_page
from tools.docs.snippets import list_pages, list_snippets

PAGES = list_pages(REPOSITORY)
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.ipynb"))  # tests/examples runs them; mypy reads the others anyway
MOST_NOT_RUN = 5
by_path = {"ids": lambda path: path.relative_to(REPOSITORY).as_posix()}


@pytest.mark.parametrize("path", PAGES, **by_path)
def test_a_page_is_true(path: Path) -> None:
    assert not run_page(path)


def test_types(tmp_path: Path) -> None:
    """Mypy accepts the Python of all pages and examples."""
    for path in (*PAGES, *EXAMPLES):
        if program := read_program(path):
            name = path.relative_to(REPOSITORY).with_suffix("").as_posix().replace("/", "_").replace("-", "_")
            (tmp_path / f"{name.lower()}.py").write_text(program, encoding="utf-8")
    options = ["--allow-redefinition", "--config-file", str(REPOSITORY / "pyproject.toml")]
    words = [sys.executable, "-m", "mypy", *options, str(tmp_path)]
    ran = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_little_is_not_run() -> None:
    texts = [path.read_text(encoding="utf-8") for path in PAGES]
    reasons = [snippet.reason for text in texts for snippet in list_snippets(text) if snippet.reason]
    assert len(reasons) <= MOST_NOT_RUN, reasons
    assert len(re.findall("<!-- not run", "".join(texts))) == len(reasons), "a mark stands before no block"


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("```console\n$ tome show --nothing\n```", "exit code 2"),
        ("```console\n$ tome remove letter.txt\nremoved 7 documents\n```", "but it prints"),
        ('```console\n$ tome ask "Who?" --model openai:gpt-4o-mini\n?\n```', "no reply is recorded for answer"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```", "but it prints"),
        ("```json\n{'a': 1}\n```", "JSONDecodeError"),
        ('```bash\ncurl -s "$TOME/api/nothing" -H "$AUTH"\n```', "exit code 22"),
        ("```nginx\nserver {}\n```", "nothing runs 'nginx'"),
    ],
)
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_false_block_is_found(tmp_path: Path, block: str, words: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{block}\n", encoding="utf-8")
    (fault,) = run_page(page)
    assert fault.startswith("page.md, line 3: ")
    assert words in fault
    page.write_text(f"# A page\n\n<!-- not run: a reason -->\n{block}\n", encoding="utf-8")
    assert not run_page(page)
