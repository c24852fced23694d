"""What fails the build of the site: the navigation, dead links, foreign addresses, drawings, docstrings."""

from __future__ import annotations

from pathlib import Path

import pytest

griffe = pytest.importorskip("griffe", reason="install the dependency group docs")

from tools.docs import python_pages  # noqa: E402 - the group may be missing
from tools.docs.check_site import find_drawing_faults, find_nav_faults, find_site_faults  # noqa: E402
from tools.docs.griffe_extensions import PlainTwins  # noqa: E402


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_html", ".html").replace("_md", ".md").replace("_svg", ".svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_the_navigation_has_every_page_once(tmp_path: Path) -> None:
    docs = write(tmp_path, a_md="# A", more__b_md="# B")
    assert not list(find_nav_faults(["a.md", {"More": [{"B": "more/b.md"}]}], docs))
    faults = "\n".join(find_nav_faults(["a.md", {"A again": "a.md"}, "gone.md"], docs))
    assert "a.md twice" in faults
    assert "more/b.md is not in the navigation" in faults
    assert "names gone.md, which is not there" in faults


def test_links_lead_somewhere(tmp_path: Path) -> None:
    site = write(
        tmp_path, index_html='<a href="b/#there">b</a><h1 id="top">A</h1>', b__index_html='<h2 id="there">B</h2>'
    )
    assert not list(find_site_faults(site))
    write(tmp_path, index_html='<a href="b/#gone">b</a><a href="c/">c</a><a href="../../etc/passwd">d</a>')
    assert len(list(find_site_faults(site))) == 3


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<img src="https://example.org/a.png">',
    ],
)
def test_nothing_is_loaded_from_elsewhere(tmp_path: Path, tag: str) -> None:
    site = write(tmp_path, index_html=f'<p>A</p>{tag}<a href="https://example.org/">a link may lead out</a>')
    assert len(list(find_site_faults(site))) == 1


def test_drawings_are_small_and_say_what_they_show(tmp_path: Path) -> None:
    good = '<svg role="img" aria-labelledby="a"><title id="a">A</title><desc>B</desc><text>c</text></svg>'
    assert not list(find_drawing_faults(write(tmp_path, good_svg=good)))
    write(tmp_path, large_svg=good + " " * 10_000, coloured_svg=good.replace("<text", '<text fill="#ff0000"'))
    write(tmp_path, silent_svg="<svg></svg>")
    assert len(list(find_drawing_faults(tmp_path))) == 3


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


def read_faults(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> list[str]:
    monkeypatch.setattr(python_pages, "SOURCE", folder)
    monkeypatch.setattr(python_pages, "PAGES", {"tomewise": ()})
    (folder / "tomewise").mkdir(exist_ok=True)
    (folder / "tomewise" / "__init__.py").write_text(text)
    (folder / "tomewise" / "reading.py").write_text('"""Reading."""\n')
    return list(python_pages.find_faults(python_pages.load_package()))


def test_a_public_name_without_a_docstring_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_faults(monkeypatch, tmp_path, MODULE) == []
    assert "tomewise.do has no" in read_faults(monkeypatch, tmp_path, MODULE.replace('    """Do it."""', "    ..."))[0]
    without = MODULE.replace('        """Work on a number."""\n', "")
    assert "tomewise.Thing.work has no" in read_faults(monkeypatch, tmp_path, without)[0]


def test_a_field_says_what_it_holds_or_its_class_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = MODULE.replace("class Thing:", "from dataclasses import dataclass\n\n\n@dataclass\nclass Thing:")
    fields = fields.replace('"""Something."""\n', '"""Something. `named` has a name."""\n\n    named: int\n    FIELD\n')
    assert read_faults(monkeypatch, tmp_path, fields.replace("FIELD", 'size: int\n    """In bytes."""')) == []
    assert "Thing.size has no" in read_faults(monkeypatch, tmp_path, fields.replace("FIELD", "size: int"))[0]


def test_a_docstring_that_names_an_inner_module_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = MODULE.replace("Do it.", "Do it, see `reading.bounds`.")
    assert "names the inner module reading" in read_faults(monkeypatch, tmp_path, text)[0]


def test_a_plain_twin_takes_the_place_of_its_asynchronous_method(tmp_path: Path) -> None:
    (tmp_path / "twin.py").write_text(MODULE)
    module = griffe.load("twin", search_paths=[tmp_path], extensions=griffe.load_extensions(PlainTwins))
    thing = module["Thing"]
    assert "awork" not in thing.members
    assert [each.name for each in thing["work"].parameters] == ["self", "number"]
    assert thing["work"].docstring.value == "Work on a number."
    assert thing["work"].labels == {"also awork"}
