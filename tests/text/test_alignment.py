"""A quotation is placed on the words it was copied from, however it was typed; one that says another thing never is."""

from __future__ import annotations

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tomewise.text.alignment import find_quotation, fold


def place(quotation, text):
    return [text[span.start : span.end] for span in find_quotation(quotation, text)]


@pytest.mark.parametrize(
    ("quotation", "text", "found", "differs"),
    [
        ("the tide turned", "At nine the tide turned.", "the tide turned", set()),
        ("the tide\nturned", "At nine the tide  turned.", "the tide  turned", {"blanks"}),
        ("The Tide turned,", "At nine the tide turned.", "the tide turned", {"case"}),
        ('"the tide" turned.', "At nine the “tide” turned.", "the “tide” turned.", {"signs"}),
        (" • § 5 ends here ✓", "So • § 5 ends here ✓ now", "• § 5 ends here ✓", set()),
        ("'(the tide turned.)'", "Then (the tide turned.)", "(the tide turned.)", set()),
        ("The fee is due", "The **fee** is due", "The **fee** is due", {"signs"}),
        ("Ann Lee 12", "| Ann | Lee | 12 |", "Ann | Lee | 12", {"signs"}),
        ("first officer", "The ﬁrst oﬃcer", "ﬁrst oﬃcer", {"letters"}),
        ("the café clerk", "the cafe\u0301 clerk", "the cafe\u0301 clerk", {"letters"}),
        ("the cafe clerk", "the café clerk", "the café clerk", {"letters"}),
        ("ABC123 in Strasse 9", "ＡＢＣ１２３ in Straße ９", "ＡＢＣ１２３ in Straße ９", {"letters"}),
        ("was evaluated", "was evalu\u00adated", "was evalu\u00adated", {"letters"}),
        ("was evaluated", "was evalu-\nated", "was evalu-\nated", {"letters"}),
        ("half-past nine", "half-\npast nine", "half-\npast nine", {"blanks"}),
        ("an international law", "an inter-\n\n13\n\nnational law", "an inter-\n\n13\n\nnational law", {"letters"}),
        ("Page 12 was torn", "Page 12 was\n\n13\n\ntorn", "Page 12 was\n\n13\n\ntorn", {"notes"}),
        ("in 1911. It rose", "in 1911.[1] It rose", "in 1911.[1] It rose", {"notes"}),
        ("see the mill here", "see [the mill](http://x.example/a) here", None, {"notes", "signs"}),
        ("two\u200b rows", "two<br>rows", "two<br>rows", {"notes"}),
        ("3 1/2 cups", "3½ cups", "3½ cups", {"blanks", "letters"}),
        ("10^2 men", "10² men", "10² men", {"letters"}),
        ("was 10 000 euros", "It was 10 000 euros", "was 10 000 euros", set()),
        ("300 men", "In 1990 300 men", "300 men", set()),
        ("5% of 1990-1995", "5 % of 1990–1995", "5 % of 1990–1995", {"letters"}),
        ("灯台は閉じた", "昔、灯台は閉じた。", "灯台は閉じた", set()),
        ("มีเรือ", "เขามีเรือสองลำ", "มีเรือ", set()),
        ("שלום לך", "שָׁלוֹם לך", "שָׁלוֹם לך", {"letters"}),
    ],
)
def test_a_copy_is_found_and_what_differs_is_named(quotation, text, found, differs):
    (span,) = find_quotation(quotation, text)
    assert text[span.start : span.end] == (found or text)
    assert span.differs == differs


@pytest.mark.parametrize(
    ("quotation", "text"),
    [
        ("5 kg", "1.5 kg"),
        ("15 kg", "1.5 kg"),
        ("31/2 cups", "3½ cups"),
        ("102 men", "10² men"),
        ("5 m wide", "5 m² wide"),
        ("was 5 degrees", "was −5 degrees"),
        ("below >5 mg", "below <5 mg"),
        ("below 5 mg", "below <5 mg"),
        ("costs $5", "costs €5"),
        ("95 of them", "95 % of them"),
        ("it was 10", "it was 10 000 euros"),
        ("was 10 … euros", "was 10 000 euros"),
        ("000 euros", "it was 10\u202f000 euros"),
        ("10 000", "it was 10 000 000 euros"),
        ("C is good", "C++ is good"),
        ("notable case", "no table case"),
        ("мой дом", "мои дом"),
        ("灯台は開いた", "灯台は閉じた"),
        ("the 13 torn", "the\n12\ntorn"),
        ("in 1911.[2] It", "in 1911.[1] It"),
        ("keeper", "keepers"),
        ("is permitted", "is not permitted"),
        ("is permitted", "is <not> permitted"),
        ("**", "a ** b"),
        ("ab", "ab ab"),
    ],
)
def test_another_number_word_or_sense_is_not_found(quotation, text):
    assert not find_quotation(quotation, text)


@pytest.mark.parametrize(
    ("quotation", "text", "found"),
    [
        ("the bell … tide fell", "the bell rang and the tide fell", ["the bell", "tide fell"]),
        ("[...] the bell [...] fell. [...]", "the bell rang and the tide fell.", ["the bell", "fell."]),
        ("the bell ... the bell", "the bell", []),
        ("tide fell … the bell", "the bell rang and the tide fell", []),
        ("the bell … never said", "the bell rang and the tide fell", []),
        ("is … permitted to", "is not permitted to", []),
        ("the lamp . . . lit", "the lamp isn’t ever lit", []),
        ("the bell … fell", "the bell rang not, the bell rang, the tide fell", ["the bell", "fell"]),
        ("the bell.\n\nThe tide", "the bell rang. The tide fell", ["the bell", "The tide"]),
        ("the bell … tide", f"the bell{' rang' * 190} tide", ["the bell", "tide"]),
        ("the bell … tide", f"the bell{' rang' * 210} tide", []),
        (" … ".join(["bell"] * 9), " rang ".join(["bell"] * 9), []),
    ],
)
def test_parts_are_found_in_order_near_each_other_and_over_no_denial(quotation, text, found):
    assert place(quotation, text) == found


def test_of_several_places_the_likest_counts():
    assert [span.start for span in find_quotation("The Tide", "the tide. THE TIDE. The Tide. The Tide.")] == [20]


# ---------------------------------------------------------------- any copy, any change

NAMES = "officer lighthouse café difficult keeper evaluated Straße committee affluent Zürich northern ladder".split()
NUMBERS = "1,250 9.30 -5 $12 40% 1990–1995 B52".split()
READ = (  # what a reader of files makes of a word
    lambda word: word,
    lambda word: f"**{word}**",
    lambda word: word.replace("ffi", "ﬃ").replace("ff", "ﬀ"),
    lambda word: f"{word[:3]}\u00ad{word[3:]}",
    lambda word: f"{word[:3]}-\n{word[3:]}",
    lambda word: word.replace("é", "e\u0301").replace("ü", "u\u0308"),
    lambda word: f"{word}[12]",
    lambda word: f"{word}²",
)
WRITTEN = (  # and a model
    lambda word: word,
    str.upper,
    str.title,
    lambda word: f"*{word}*",
    lambda word: f"“{word}”",
    lambda word: word.replace("é", "e").replace("ß", "ss"),
)
GAPS_READ = (" ", "\n", "  ", "\u00a0", ", ", "\n\n17\n\n", " | ", "<br>")
GAPS_WRITTEN = (" ", "\n", "; ", ". ", " — ", " ** ")


@st.composite
def texts(draw):
    """The words of a text, the text as it was read, and where each word is in it."""
    words = draw(st.lists(st.sampled_from([*NAMES, *NUMBERS]), unique=True, min_size=5, max_size=12))
    text, places = "", []
    for word in words:
        piece = draw(st.sampled_from(READ))(word) if word in NAMES else word
        bare = piece.removesuffix("[12]").removesuffix("²").strip("*")
        start = len(text) + piece.index(bare)
        places.append((start, start + len(bare)))
        text += piece + draw(st.sampled_from(GAPS_READ))
    return words, text, places


def write(draw, words):
    written = [draw(st.sampled_from(WRITTEN))(word) if word in NAMES else word for word in words]
    return "".join(word + draw(st.sampled_from(GAPS_WRITTEN)) for word in written)


@given(texts(), st.data())
def test_a_copy_is_placed_on_its_own_words_however_it_was_read_and_written(made, data):
    words, text, places = made
    first = data.draw(st.integers(0, len(words) - 2))
    last = data.draw(st.integers(first + 1, len(words) - 1))
    quotation = write(data.draw, words[first : last + 1]).strip("*“” \n—;.")
    (span,) = find_quotation(quotation, text)
    start, end = places[first][0], places[last][1]
    assert text[start:end].strip("*“”") in text[span.start : span.end]
    assert not fold(text[span.start : start]).words
    assert not fold(text[end : span.end]).words


@given(texts(), st.data())
def test_a_changed_word_number_or_negation_is_found_nowhere(made, data):
    words, text, _ = made
    at = data.draw(st.integers(1, len(words) - 2))
    another = st.sampled_from(["not", "never", "17", "[12]", *NAMES, *NUMBERS]).filter(lambda word: word != words[at])
    kind = data.draw(st.sampled_from(["another", "more", "less"]))
    if kind == "another":
        changed = [*words[:at], data.draw(another), *words[at + 1 :]]
    elif kind == "more":
        changed = [*words[:at], data.draw(st.sampled_from(["not", "never", "no", "3", "mill"])), *words[at:]]
    else:
        changed = [*words[:at], *words[at + 1 :]]
    assert find_quotation(write(data.draw, changed), text) == []


DENIALS = (
    "not NEVER isn’t refused nirgends nadie nessuno ninguém tidak không hiç без немає 안 않고 不 ません ない ไม่".split()
)


@given(st.lists(st.sampled_from(NAMES), min_size=2, max_size=8), st.sampled_from(DENIALS))
def test_no_ellipsis_hides_a_denial(words, denial):
    text = f"the mill {' '.join(words)} {denial} {' '.join(words)} sank"
    assert place("the mill … sank", text) == []
    assert place("the mill … sank", text.replace(denial, "soon")) == ["the mill", "sank"]


@given(st.text(), st.text(), st.text())
@example("", "0", "\u0301 0")
def test_what_is_found_has_the_words_of_the_quotation(before, quotation, after):
    text = f"{before} {quotation} {after}"
    for span in find_quotation(quotation, text):
        assert 0 <= span.start < span.end <= len(text)
    if sum(map(len, fold(f" {quotation} ").words)) >= 20:
        assert find_quotation(quotation, f"{before}\n\n{quotation}\n\n{after}")


# ---------------------------------------------------------------- hostile texts

UNITS = (
    *("a ", "- ", "(", "…", ". ", " ", "[1", "](a", "](", "<b ", "\n", "\n1", "\n1   ", "1.", "1-\n", "a-\n", "&lt;"),
    *("a-\n\n1\n", "a-   ", "²", "abcd²", "e\u0301", "\u0301", "a\u00ad", "[1, 1", "<", "$ ", "+", "not … ", "abc … "),
    *("abc ", "ก็", "1^", '"[^', "abc-\nabc ", "abc [1] "),
)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("quotation", ["", "abc", "abc … abc … abc"])
def test_four_times_the_text_takes_four_times_the_steps(unit, quotation):
    def count_steps(size):
        text, steps = (unit * size)[:size], 0

        def count(*_):
            nonlocal steps
            steps += 1

        fold.cache_clear()
        sys.setprofile(count)
        try:
            find_quotation(quotation or text[: size // 2] + "x", text)
        finally:
            sys.setprofile(None)
        return steps

    assert count_steps(16_000) <= 4.4 * count_steps(4_000) + 1_000
