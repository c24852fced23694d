"""What fails the build of the site: the navigation, dead links, foreign addresses, drawings, docstrings."""

from __future__ import annotations

from pathlib import Path

import pytest

griffe = pytest.importorskip("griffe", reason="install the dependency group docs")

from tools.docs import python_pages  # noqa: E402 - the group may be missing
from tools.docs.check_site import find_nav_faults, find_site_faults  # noqa: E402


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_navigation_has_every_page_once(tmp_path: Path) -> None:
    docs = write(tmp_path, {"a.md": "# A", "more/b.md": "# B"})
    assert not list(find_nav_faults(["a.md", {"More": [{"B": "more/b.md"}]}], docs))
    faults = "\n".join(find_nav_faults(["a.md", {"A again": "a.md"}, "gone.md"], docs))
    for fault in ("a.md twice", "more/b.md is not in the navigation", "names gone.md, which is not there"):
        assert fault in faults


LINKED = {"index.html": '<a href="b/#there">b</a><h1 id="top">A</h1>', "b/index.html": '<h2 id="there">B</h2>'}


@pytest.mark.parametrize(
    ("page", "faults"),
    [
        (LINKED["index.html"], 0),
        ('<a href="b/#gone">b</a><a href="c/">c</a><a href="../../etc/passwd">d</a>', 3),
        ('<p>A</p><a href="https://example.org/">a link may lead out</a>', 0),
        ('<script src="https://cdn.example/a.js"></script>', 1),
        ('<img src="https://example.org/a.png">', 1),
    ],
)
def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(tmp_path: Path, page: str, faults: int) -> None:
    assert len(list(find_site_faults(write(tmp_path, {**LINKED, "index.html": page})))) == faults


MODULE = '''
"""A module."""

__all__ = ["Thing", "do"]


class Thing:
    """Something."""

    async def awork(self, number: int) -> str:
        """Work on a number."""
        return str(number)

    work = plain(awork)


def do() -> None:
    """Do it."""
'''


FIELDS = MODULE.replace("class Thing:", "from dataclasses import dataclass\n\n\n@dataclass\nclass Thing:").replace(
    '"""Something."""\n', '"""Something. `named` has a name."""\n\n    named: int\n    FIELD\n'
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (MODULE, ""),
        (MODULE.replace('    """Do it."""', "    ..."), "tomewise.do has no"),
        (MODULE.replace('        """Work on a number."""\n', ""), "tomewise.Thing.work has no"),
        (FIELDS.replace("FIELD", 'size: int\n    """In bytes."""'), ""),
        (FIELDS.replace("FIELD", "size: int"), "Thing.size has no"),
        (MODULE.replace("Do it.", "Do it, see `reading.bounds`."), "names the inner module reading"),
    ],
)
def test_a_public_name_has_a_docstring_without_inner_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, fault: str
) -> None:
    monkeypatch.setattr(python_pages, "SOURCE", tmp_path)
    monkeypatch.setattr(python_pages, "PAGES", {"tomewise": ()})
    write(tmp_path / "tomewise", {"__init__.py": text, "reading.py": '"""Reading."""\n'})
    faults = list(python_pages.find_faults(python_pages.load_package()))
    assert fault in faults[0] if fault else not faults
