"""What is found in a text: every place of words, of a value, of a pattern, and no other."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.sample import STORY
from tomewise.text.alignment import find_places
from tomewise.text.finding import make_finder
from tomewise.text.values import find_values


def find(text, wanted, kind="words", **how):
    return [text[start:end] for start, end in make_finder(wanted, kind, **how)(text)]


@pytest.mark.parametrize(
    ("wanted", "text", "found"),
    [
        ("Scrooge", "SCROOGE and Scrooge's nephew, scrooge-like; Scrooges", ["SCROOGE", "Scrooge", "scrooge"]),
        ("Muller", "Müller, Mu\u0308ller, MÜLLER and Mueller", ["Müller", "Mu\u0308ller", "MÜLLER"]),
        ("strasse", "Straße und STRASSE", ["Straße", "STRASSE"]),
        ("office", "The oﬃce, the of-\nfice and the of\u00adfice", ["oﬃce", "of-\nfice", "of\u00adfice"]),
        ("two words", "two\n  words, two-words; two. Words!", ["two\n  words", "two-words", "two. Words"]),
        ("it", "It is in the kit; 'it'.", ["It", "it"]),
        ("7", "7 of 17, 7.5 and 70", ["7"]),
        ("Тим", "Тим и ТИМ", ["Тим", "ТИМ"]),
        ("漢字", "この漢字は漢字", ["漢字", "漢字"]),
        ("C++", "C++ and C", ["C++"]),
    ],
)  # fmt: skip
def test_words_are_found_in_each_spelling(wanted, text, found):
    assert find(text, wanted) == found


def test_tags_between_two_words_do_not_hide_them():
    tag = f'<a href="{"x" * 250}">'
    for tags in (1, 2, 10):
        text = f"{'filler ' * 600}Ada {tag * tags}Marsh kept it. {'filler ' * 600}"
        assert [text[start:end].startswith("Ada <a") for start, end in make_finder("Ada Marsh")(text)] == [True], tags


def test_capitals_count_where_they_are_asked_for():
    assert find("Reed, reed, REED", "Reed", case=True) == ["Reed"]
    assert find("Tom Reed and tom reed", "Tom Reed", case=True) == ["Tom Reed"]


_SIGNS = st.sampled_from([*"aceflinorstß \n-.,'’“”1²½\u0301\u00adﬁéÖт漢", "[1]", "-\n", "\n\n", "5\n"])
_TEXTS = st.lists(_SIGNS | st.just("coffee stain"), max_size=120).map("".join)


@given(_TEXTS, _TEXTS | st.sampled_from(["coffee", "fi", "a", "stain coffee", "é", "1", "ss", "in-\nter"]))
def test_only_the_text_around_some_letters_is_read_and_nothing_is_missed(text, wanted):
    text = text + " x" * 700 + text  # what stands far apart is read apart
    try:
        found = list(make_finder(wanted[:8])(text))
    except ValueError:
        assert not any(map(str.isalnum, wanted[:8]))
        return
    assert set(found) == {(span.start, span.end) for span in find_places(wanted[:8], text, least=1)}


@pytest.mark.parametrize(
    ("wanted", "text", "found"),
    [
        ("1,200", "1200 men, twelve hundred, £1,200, 1 200 and 12,000", ["1200", "twelve hundred", "£1,200", "1 200"]),
        ("twenty-five", "five and twenty, 25, 25th, 2.5", ["five and twenty", "25", "25th"]),
        ("3 May 1911", "May 3rd, 1911; 1911-05-03; 4 May 1911", ["May 3rd, 1911", "1911-05-03"]),
        ("3 May", "the third of May", ["third of May"]),
        ("half past seven", "at 7:30, not 8:30", ["7:30"]),
        ("2 km", "2,000 metres or two miles", ["2,000 metres"]),
        ("Tom Reed", "Mr. Tom Reed saw Reed and Tom Reed's boat.", ["Mr. Tom Reed", "Tom Reed"]),
        ("0.5", "half a mile, 0.5 and ½", ["half a mile", "0.5"]),
    ],
)  # fmt: skip
def test_a_value_is_found_in_other_spellings(wanted, text, found):
    assert [each.strip() for each in find(text, wanted, "value")] == found


@given(st.sampled_from([0, 2, 7, 13, 20, 21, 99, 100, 112, 700, 1200, 1912, 2000, 45_000, 10**6, 2.5, 1_300_000]))
def test_no_spelling_of_a_number_is_passed_over(number):
    spelt = ["seven", "thirteen", "twenty-one", "a hundred and twelve", "seven hundred", "twelve hundred", "two"]
    spelt += ["nineteen twelve", "forty-five thousand", "2.5", "1.3 million", "one million", "٧", "2 000", "99th"]
    for text in spelt:
        gives = {key[1] for value in find_values(f"of {text}") for key in value.gives if key[0] == "number"}
        assert bool(find(f"of {text} men", f"{number}", "value")) == (number in gives), (number, text)


def test_a_pattern_is_found_by_lines_and_in_any_script():
    text = "Größe 5\ncolour and color\nGröße 12"
    assert find(text, r"colou?r", "pattern") == ["colour", "color"]
    assert find(text, r"^größe \d+$", "pattern") == ["Größe 5", "Größe 12"]
    assert find(text, r"größe", "pattern", case=True) == []
    assert find(text, r"gr\w+", "pattern") == ["Größe", "Größe"]
    assert find("٣ é_1 [a] \\w", r"[\w-]+", "pattern") == ["٣", "é_1", "a", "w"]
    assert find("٣ é", r"\d", "pattern") == ["٣"]
    assert find("a\\w", r"\\w", "pattern") == ["\\w"]
    assert find("a]b", r"[]a]+", "pattern") == ["a]"]
    assert find(text, r"x*", "pattern") == []


@pytest.mark.parametrize(
    ("wanted", "kind", "problem"),
    [
        ("(", "pattern", r"cannot read the pattern '\(': missing \); the syntax is that of RE2"),
        (r"(a)\1", "pattern", "invalid escape sequence"),
        ("(?=a)", "pattern", "invalid perl operator"),
        ("((a{100}){100}){100}", "pattern", "cannot read the pattern"),
        ("", "pattern", "the pattern is empty"),
        (r"[^\W\d]+", "pattern", "cannot read .* in a pattern: write classes of all languages"),
        (r"[[:alpha:]]", "pattern", "write classes of all languages"),
        (r"\C", "pattern", "write classes of all languages"),
        ("\ud800", "pattern", "bytes that are not UTF-8"),
        ("a" * 1001, "words", "1,001 characters are too many to look for: give 1,000 or fewer"),
        ("?!", "words", "has no letter and no figure"),
        ("5 men and 7 women", "value", "is 2 values: give one number"),
        ("nothing here", "value", "is no value"),
    ],
)
def test_what_cannot_be_looked_for_is_refused_in_one_line(wanted, kind, problem):
    with pytest.raises(ValueError, match=problem) as refused:
        make_finder(wanted, kind)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+b", r"(.*)*x", r"(?:a?){50}a{50}"])
def test_a_hostile_pattern_takes_linear_time(pattern):
    assert find("a" * 50_000 + "!", pattern, "pattern") in ([], ["a" * 50_000], ["a" * 100] * 500)


def test_words_are_counted_as_a_search_by_lines_counts_them():
    text = STORY.read_text()
    for word in ("Ada", "the", "light", "harbour"):
        assert len(find(text, word)) == len(re.findall(rf"(?i)(?<![^\W_]){word}(?![^\W_])", text))
