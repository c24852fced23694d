from hypothesis import given
from hypothesis import strategies as st

from tomewise.reading.transcripts import join_turns


def test_turns_become_lines() -> None:
    turns = [{"speaker": "Ann", "content": "Hello.\nAll well?"}, {"speaker": "Bob", "content": "Yes. "}]
    assert join_turns(turns) == ("Ann: Hello. All well?\nBob: Yes.", [(0, 21), (22, 31)])


def test_no_turns() -> None:
    assert join_turns([]) == ("", [])


@given(st.lists(st.fixed_dictionaries({"speaker": st.text(), "content": st.text()}), min_size=1))
def test_each_turn_is_one_line_where_the_offsets_say(turns: list[dict[str, str]]) -> None:
    text, offsets = join_turns(turns)
    assert [text[start:end] for start, end in offsets] == text.split("\n")
    assert len(offsets) == len(turns)
