"""What fails the build of the site: the navigation, dead links, foreign addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

griffe = pytest.importorskip("griffe", reason="install the dependency group docs")

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
