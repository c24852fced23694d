import pytest

from tomewise.types import Place
from tomewise.types.place import as_plain_data, describe_place, read_plain_data


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Place(), ""),
        (Place(chapter=("The Slack Water Book", "3. The Lay of the Case"), page=37), "ch. 3, p. 37"),
        (Place(chapter=("2.1 Setting up",)), "ch. 2.1"),
        (Place(chapter=("2. Install", "On Linux")), "ch. 2, “On Linux”"),
        (Place(chapter=("Guide", "x" * 100)), f"“{'x' * 59}…”"),
        (Place(chapter=("1984 and after",)), "“1984 and after”"),
        (Place(page=3, last_page=5), "p. 3–5"),
        (Place(time="12:04", speaker="Ann"), "12:04, Ann"),
        (Place(speaker="Ann"), "begins with Ann"),
        (Place(slide=2, row=7, last_row=9, cell=3), "slide 2, row 7–9, cell 3"),
    ],
)
def test_a_place_is_described_in_a_few_words(place: Place, words: str) -> None:
    assert str(place) == describe_place(place) == words
    assert describe_place(place, 12) == f"{words}, part 12".removeprefix(", ")


def test_plain_data_holds_only_what_is_set_and_unknown_fields_are_passed_over() -> None:
    place = Place(chapter=("A", "B"), page=1, last_page=2)
    assert read_plain_data(as_plain_data(place)) == place
    assert as_plain_data(Place(page=1)) == {"page": 1}
    assert read_plain_data({"page": 1, "verse": 3}) == Place(page=1)
