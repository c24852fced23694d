"""The measure of the house counts what Python reads, and a rise of a room is a fault."""

from __future__ import annotations

from pathlib import Path

from tools.measure_house import ALL, Size, find_rises, measure_rooms, write_tables

SIZES = {"store": Size(tokens=1_200, lines=90, files=2), ALL: Size(tokens=1_500, lines=120, files=3)}


def make_page(sizes: dict[str, Size]) -> str:
    return f"# A page\n\n<!-- house -->\n{write_tables(sizes, {})}<!-- /house -->\n"


def test_tokens_are_counted_without_layout_and_comments(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "rows.py").write_text(
        '"""A text of any length is one token."""\n\n# a comment\nx = (1,\n  2)\n'
    )
    (tmp_path / "place.py").write_text("def find():\n    return 1\n")
    sizes = measure_rooms(tmp_path)
    assert sizes == {"place": Size(7, 2, 1), "store": Size(8, 5, 1), ALL: Size(15, 7, 2)}


def test_a_rise_and_a_new_room_are_faults_and_a_fall_is_none() -> None:
    page = make_page(SIZES)
    assert find_rises(SIZES, page) == []
    assert find_rises({"store": Size(tokens=900), ALL: Size(tokens=900)}, page) == []
    (rise,) = find_rises({**SIZES, "store": Size(tokens=1_201)}, page)
    assert rise.startswith("store: 1,201 tokens, 1,200 are recorded: delete as much")
    (new,) = find_rises({**SIZES, "attic": Size(tokens=7)}, page)
    assert new.startswith("attic: 7 tokens, 0 are recorded")
    (gone,) = find_rises({ALL: SIZES[ALL]}, page)
    assert gone.startswith("store: is gone")
    assert len(find_rises(SIZES, "a page without tables")) == 2
