"""Hostile texts in which a search could begin again at each character: reading them takes no quadratic time."""

import time
from pathlib import Path

import pytest

from tomewise.reading.fetching import is_allowed
from tomewise.reading.folder import FolderRules, list_files
from tomewise.reading.web_pages import convert_html

BLANKS = " " * 200_000
LONG_TYPE = '"a;' * 20_000


@pytest.fixture(autouse=True)
def measure_time():
    """Bound the processor time of the test: it takes some hundredths of a second, and minutes where it is quadratic."""
    started = time.thread_time()
    yield
    assert time.thread_time() - started < 5


@pytest.mark.parametrize("opened", ["<v a", "<v.", "<v", "<v ", "<v \t"])
def test_voices_of_captions_that_are_never_closed(opened, read_document):
    blanks = " " * 300_000 if opened == "<v" else ""
    document = read_document("a.vtt", f"WEBVTT\n\n00:00.000 --> 00:00.500\n{opened * 50_000}{blanks}\n")
    assert [place.speaker for _, place in document.marks] == [""]


@pytest.mark.parametrize("name", ["Content-Type", "Content-Disposition"])
def test_a_long_type_of_a_message(name, read_document):
    mail = f"From: a@example.org\nSubject: Rain\n{name}: text/plain; boundary={LONG_TYPE}\n\nIt rains.\n"
    assert read_document("a.eml", mail).title == "Rain"


@pytest.mark.parametrize("opening", ["<a ", "<!--", "<!-- > ", "</a", "<![CDATA[", "<?"])
def test_tags_that_nothing_closes_are_text(opening):
    assert convert_html(opening * 15_000 + "end", "it")[1].endswith("end")


def test_a_page_full_of_blanks():
    found = convert_html(f"{BLANKS}<p>One{BLANKS}two</p><pre>a{BLANKS}b</pre>", "it")[1]
    assert found.split() == ["One", "two", "```", "a", "b", "```"]


def test_many_wildcards_of_a_robots_file():
    assert is_allowed(b"User-agent: *\n" + b"Disallow: /" + b"a*" * 200_000 + b"b$", "tomewise", "/" + "a" * 50_000)


def list_names(folder: Path) -> list[str]:
    entries = list_files(folder, frozenset({".txt"}), FolderRules())
    return [entry.name for entry in entries if isinstance(entry, Path)]


@pytest.mark.parametrize("line", ["a*" * 100 + "b", "**/" * 50 + "x", "[" * 10_000, "!", "\\", "a[z-a]", ""])
def test_a_hostile_line_of_a_gitignore_neither_stops_nor_delays_the_others(line, tmp_path):
    for name in ("a" * 200, "b", "c"):
        (tmp_path / f"{name}.txt").write_text("The rain fell.")
    (tmp_path / ".gitignore").write_text(f"{line}\nb.txt\n")
    assert list_names(tmp_path) == [f"{'a' * 200}.txt", "c.txt"]


def test_long_names_and_many_slow_lines_of_a_gitignore(tmp_path):
    names = [f"{'a' * 240}{number:03}.txt" for number in range(20)]
    for name in names:
        (tmp_path / name).write_text("The rain fell.")
    lines = (f"*a*a*b{number}\n*a*b{number}\n*c{number}*\n" for number in range(300))
    (tmp_path / ".gitignore").write_text("".join(lines))
    assert list_names(tmp_path) == names
