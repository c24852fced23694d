"""Every block of the README, the site and the examples is true: it runs, and prints what is shown."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.texts import REPOSITORY
from tools.docs.run_page import fits, read_program, run_page
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


def run_text(folder: Path, text: str, *, update: bool = False) -> list[str]:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return run_page(page, update=update)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("```console\n$ tome show --nothing\n```", "exit code 2"),
        ("```console\n$ tome remove letter.txt\nremoved 7 documents\n```", "but it prints"),
        ('```console\n$ tome ask "Who?" --model openai:gpt-4o-mini\n?\n```', "no reply is recorded for answer"),
        ("```console\n$ cat nothing.txt\n```", "exit code 1"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```", "but it prints"),
        ("```python\nimport nothing\n```", "ModuleNotFoundError"),
        ("```json\n{'a': 1}\n```", "JSONDecodeError"),
        ("```toml\na = \n```", "TOMLDecodeError"),
        ('```bash\ncurl -s "$TOME/api/nothing" -H "$AUTH"\n```', "exit code 22"),
        ("```nginx\nserver {}\n```", "nothing runs 'nginx'"),
    ],
)
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_false_block_is_found(tmp_path: Path, block: str, words: str) -> None:
    (fault,) = run_text(tmp_path, f"# A page\n\n{block}\n")
    assert fault.startswith("page.md, line 3: ")
    assert words in fault
    assert not run_text(tmp_path, f"# A page\n\n<!-- not run: a reason -->\n{block}\n")


def test_blocks_share_a_folder_and_names(tmp_path: Path) -> None:
    text = (
        '```toml title="tomewise.toml"\nlimit = 4\n```\n\n```console\n$ cat tomewise.toml > copy.toml\n'
        "$ export NAME=value && printenv NAME\nvalue\n```\n\n"
        "1. Read:\n\n    ```python\n    from pathlib import Path\n    text = Path('copy.toml').read_text()\n    ```\n\n"
        "```python\nprint(text)\n```\n\n```text\nlimit = 4\n```\n"
    )
    assert not run_text(tmp_path, text)


def test_an_update_writes_what_is_printed(tmp_path: Path) -> None:
    text = (
        "1. Remove:\n\n    ```console\n    $ tome remove letter.txt --yes\n    ?\n    ```\n\n"
        "```python\nprint('a')\n```\n\n```text\n?\n```\n\n```python\n2 + 2\n```\n<!-- shown -->\n<!-- end -->\n"
    )
    assert not run_text(tmp_path, text, update=True)
    new = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "letter.txt --yes\n    removed /home/you/letter.txt: 1 passage" in new
    assert "```text\na\n```" in new
    assert '<!-- shown -->\n<div class="notebook">\n4\n</div>\n<!-- end -->' in new
    assert not run_page(tmp_path / "page.md")


def test_times_prices_and_lines_that_are_left_out_may_differ() -> None:
    assert fits(["12 passages in 3.4 s, $0.0012"], ["12 passages in 10 s,   $0.3"])
    assert not fits(["12 passages in 3.4 s"], ["13 passages in 3.4 s"])
    assert fits(["first", "...", "last"], ["first", "second", "third", "last"])
    assert fits(["..."], ["anything"])
    assert fits(["twenty-three of", "them"], ["twenty-", "  three of them"])
    assert not fits(["first", "..."], ["second"])


def test_a_notebook_is_read(tmp_path: Path) -> None:
    cells = [{"cell_type": "markdown", "source": ["# A"]}, {"cell_type": "code", "source": ["a = 1\n", "print(a)"]}]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert read_program(path) == "a = 1\nprint(a)"
