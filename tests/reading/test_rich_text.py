"""RTF as Word writes it."""

from pathlib import Path

import pytest

from tomewise.errors import ReadingError
from tomewise.reading.rich_text import read_rtf


def test_rtf_is_read_as_text_without_its_tables_of_fonts(tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    path.write_text(
        r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\froman Times New Roman;}}{\colortbl;\red255;}"
        r"{\info{\title The caf\'e9}{\author Zo\'eb}}\pard The \b rain\b0  fell on the caf\'e9 \u8212- twice.\par"
        r"{\*\generator Msftedit;}The wind rose.\par}"
    )
    (document,) = read_rtf(path)
    assert document.text == "The rain fell on the café — twice.\nThe wind rose."
    assert (document.title, document.metadata["author"]) == ("The café", "Zoë")


def test_footnotes_follow_their_paragraph_and_a_title_may_hold_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    path.write_text(
        r"{\rtf1\ansi{\info{\title The {\b red} harbour}}\pard The rain{\super\chftn{\footnote \pard{\super\chftn} It "
        r"was {\i warm}.\par And wet.}} fell.\par The wind{\footnote From the west.} rose.}"
    )
    (document,) = read_rtf(path)
    assert [line.strip() for line in document.text.splitlines()] == [
        *("The rain fell.", "It was warm.", "And wet.", "The wind rose.", "From the west.")
    ]
    assert document.title == "The red harbour"


def test_what_is_not_rtf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_text("The rain fell.")
    with pytest.raises(ReadingError, match="is not RTF"):
        read_rtf(tmp_path / "a.rtf")
