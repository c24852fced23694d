"""Support of values: a statement may use other forms of what its texts name, and no other values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.text.support import Grounds

PASSAGE = (
    "Dr. Hart's sister, mary, met John O'Brien in the U.S. on 2 Mar. 1871. They paid 3 million dollars for "
    "1,500 acres; the United Nations came. It lasted 1914-18, in Italy's north. Twenty-one men died. "
    "José went by NATO train."
)
GERMAN = "Der Hund und die Katze liefen auf der Straße, und das war nicht gut."


@pytest.mark.parametrize(
    ("memory", "source", "inventions"),
    [
        # Other forms of what the passage names.
        ("Doctor Hart met Mary.", PASSAGE, []),  # an abbreviation spelled out, a name without its capital
        ("Mary O'Brien met John.", PASSAGE, []),  # words of names in a new combination
        ("However, the Italian men died.", PASSAGE, []),  # a word that begins a sentence, an adjective of a name
        ("On 2 March 1871 they paid three million dollars.", PASSAGE, []),
        ("In 1918 UN troops left. 21 men died.", PASSAGE, []),  # a range of years, an acronym, number words
        ("It cost 3,000,000 dollars and 1500 acres.", PASSAGE, []),
        ("Both sisters met two men.", PASSAGE, []),  # number words up to two are not checked
        ("Jose and Mary’s brother went by train.", PASSAGE, []),  # an accent and an apostrophe
        ("They say that Mr. Reed left.", "It was Tom Reed who left.", []),  # a title
        ("It was Margaret.", "It was Mar\u00adga\u200bret.", []),  # invisible characters
        ("The men of the World Health Organization left.", "Men of the WHO left.", []),  # an acronym spelled out
        ("It was a Libyan ship.", "A ship left Libya.", []),
        ("The VCRs of the L_C_D_ were old.", "A VCR with an LCD was old.", []),
        ("It happened on 5 March 1871.", "Date: 1871-03-05.", []),
        # A word that begins a sentence is not checked.
        ("Troops came. Meanwhile they paid.", PASSAGE, []),
        ("Later the men died.\n- Reportedly Mary left.", PASSAGE, []),
        ("Meanwhile Mary left. Meanwhile they paid.", PASSAGE, []),
        ("Yesterday's men died.", PASSAGE, []),
        ('Mary said, “Travel with John.” John said, "Certainly."', PASSAGE, []),
        # German nouns are no names.
        ("Das schnelle Tier lief auf dem Weg.", GERMAN, []),
        # What the passage does not name.
        ("Das schnelle Tier lief 17 Meter.", GERMAN, ["17 Meter"]),
        ("It happened on 5 April 1871.", "Date: 1871-03-05.", ["5 April 1871"]),
        ("John met Napoleon Bonaparte in Paris.", PASSAGE, ["Napoleon Bonaparte", "Paris"]),
        ("Napoleon came.", PASSAGE, ["Napoleon"]),
        ("Napoleon Bonaparte came.", PASSAGE, ["Napoleon Bonaparte"]),
        # Dates, times, ages and numerals in another spelling.
        ("On 22 April they came.", "They came on the twenty-second of April.", []),
        ("He had been there for 38 years.", "He had been there for eight-and-thirty years.", []),
        ("It was 2.15.", "It was a quarter past two.", []),
        ("It was on floor 1.", "It was on the first floor.", []),
        ("They met Napoleon's army.", PASSAGE, ["Napoleon"]),
        ("They paid $4,000 in April.", PASSAGE, ["$4,000", "April"]),
        ("Five men left.", PASSAGE, ["Five"]),
        ("Mary met John in 1872 and in 1872.", PASSAGE, ["1872"]),
        ("王さんは1871年に1999ドル払った。", PASSAGE, ["1999"]),
        ("McDonald came.", PASSAGE, ["McDonald"]),
        (
            "Present: Ada Marsh, Marshal Blücher, Prince Metternich.",
            PASSAGE,
            ["Ada Marsh", "Marshal Blücher", "Prince Metternich"],
        ),
    ],
)
def test_what_the_passage_does_not_name_in_any_form_is_found(memory: str, source: str, inventions: list[str]) -> None:
    assert Grounds([source]).find_missing(memory) == inventions


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_every_text_supports_itself(text: str) -> None:
    assert Grounds([text]).find_missing(text) == []


@given(st.lists(st.sampled_from(PASSAGE.split()), max_size=30).map(" ".join))
def test_words_of_the_passage_are_supported_in_any_order(memory: str) -> None:
    unsupported = [
        number for number in Grounds([PASSAGE]).find_missing(memory) if not any(sign.isdigit() for sign in number)
    ]
    allowed = {"million", "Twenty-one"}  # numbers in a new combination are other numbers
    assert [name for name in unsupported if not allowed.intersection(name.replace(",", "").split())] == []


LOG = (
    "The Marten sailed from Troy on 7 July with five ships and forty men. The harbour master signed the log on Sunday. "
    "No pilot was aboard the Marten. The owner never paid the crew. In the winter of 1871 the court of Pellmarsh heard "
    "eleven witnesses, and the clerk read their statements aloud for three hours."
)


@pytest.mark.parametrize(
    ("statement", "support", "findings"),
    [
        ("Marten sailed from Troy on 7 July", "quoted", []),
        ("The Marten sailed from Troy with five ships.", "inferred", []),
        ("The harbour master signed the log on Sunday. No pilot was aboard.", "quoted", []),
        ("Five ships and forty men sailed from Troy.", "inferred", []),  # the same words, in another order
        ("The court heard 11 witnesses.", "inferred", []),
        ("The owner did not pay the crew.", "inferred", []),
        ("The Marten sailed on 8 July.", "contradicted", [("8 July", "differs", "7 July")]),
        ("The Marten sailed from Troy with six ships.", "contradicted", [("six", "differs", "five")]),
        (
            "The clerk read the statements aloud for two hours.",
            "contradicted",
            [("two hours", "differs", "three hours")],
        ),
        ("The clerk did not read the statements aloud.", "contradicted", [("not", "differs", None)]),
        ("The owner paid the crew.", "contradicted", [("never", "differs", None)]),
        ("No one signed the log on Sunday.", "contradicted", [("No", "differs", None)]),
        ("The pilot was aboard [3], as the log of the court has it (1872).", "none", [("1872", "missing", None)]),
        ("The harbour master signed the log on Sunday [7].", "quoted", []),
        ("The Marten sailed from Sparta.", "none", [("Sparta", "missing", None)]),
        ("The weather was fair and the sea calm.", "none", []),
        ("Yes.", "none", []),
    ],
)
def test_a_statement_has_the_support_of_its_words_and_values(
    statement: str, support: str, findings: list[tuple[str, str, str | None]]
) -> None:
    judgement = Grounds([LOG]).judge(statement)
    found = [each for each in judgement.findings if each.verdict != "stands"]
    shown = [(each.value.text, each.verdict, each.counterpart and each.counterpart.text) for each in found]
    assert (judgement.support, shown) == (support, findings)


@pytest.mark.parametrize(
    ("answer", "support"),
    [("Eleven.", "quoted"), ("Forty.", "contradicted"), ("Pellmarsh, in Spain", "none")],
)
def test_a_short_answer_belongs_to_its_question(answer: str, support: str) -> None:
    judgement = Grounds([LOG]).judge(answer, about="How many witnesses did the court of Pellmarsh hear?")
    assert judgement.support == support


@pytest.mark.parametrize(
    ("statement", "text", "support"),
    [
        ("The clerk", "A clerk forged it.", "quoted"),
        ("not refundable", "The deposit is refundable.", "contradicted"),
        ("Nobody died.", "He died.", "contradicted"),
        ("before 1900", "It was after 1900.", "inferred"),
        ("He dies.", "He died.", "inferred"),
        ("Ada’s lamp", "It was Ada's lamp.", "quoted"),
        ("東京", "東京都に住む。", "inferred"),
        ("Plan B", "Plan A was chosen.", "none"),
        ("* !", "The clerk", "none"),
        # One behind the other, and nothing denies it.
        ("Tom Reed forged the letter.", "Tom Reed said that Ada Marsh forged the letter.", "inferred"),
        ("Tom Reed forged the letter.", "Nobody believed that Tom Reed forged the letter.", "inferred"),
        ("Karl Meier fälschte den Brief.", "Karl Meier fälschte den Brief nicht.", "inferred"),
        ("Temperatures fell to 5 °C.", "Temperatures fell to -5 °C.", "contradicted"),
        ("“Who was he?”", "“Who was he?” she asked.", "quoted"),
        ("He was fined over £1,000.", "He was fined £1,250.", "none"),
        ("№ 5 is sold.", "№ 5 is sold here.", "quoted"),
        ("He came to Troy in spring.", "He came to Troy in spring on 22 Apr.", "quoted"),
    ],
)
def test_what_is_quoted_has_all_words_as_they_are(statement: str, text: str, support: str) -> None:
    assert Grounds([text]).judge(statement).support == support


def test_a_hint_comes_first_among_equals() -> None:
    texts = ["The tide turns at nine.", "He said so. The tide turns at nine."]
    assert Grounds(texts).judge("The tide turns at nine.").sentences == ((0, 0, 23),)
    assert Grounds(texts).judge("The tide turns at nine.", hints=[(1, 12, 35)]).sentences == ((1, 12, 35),)


def test_a_counterpart_has_its_place_in_the_texts() -> None:
    texts = ["Café\u0301 first.", "The Marten sailed on 7\u00a0July."]
    counterpart = Grounds(texts).judge("The Marten sailed on 8 July.").findings[-1].counterpart
    assert counterpart is not None
    assert texts[1][counterpart.start : counterpart.end] == counterpart.text == "7\u00a0July"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200))
def test_sentences_of_a_judgement_stand_in_their_texts(text: str) -> None:
    texts = [text, LOG]
    for number, start, end in Grounds(texts).judge(f"{text} The owner never paid.").sentences:
        assert texts[number][start:end].strip()


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("Le capitaine est parti de Londres avec cinq navires et trente hommes.", LOG),
        ("The captain left Troy with five ships and thirty men in the winter.", "Капитан " * 20),
        ("Kapteeni lähti Helsingistä viidellä laivalla, eikä kukaan nähnyt häntä enää.", "Helsinki on kaupunki. " * 9),
        ("艦長は五隻の船でロンドンを出た。", LOG),
    ],
)
def test_nothing_but_digits_is_compared_in_languages_that_are_not_read(statement: str, source: str) -> None:
    assert Grounds([source]).find_missing(statement) == []
    assert Grounds([source]).find_missing(f"{statement} 1999") == ["1999"]


@given(st.lists(st.sampled_from(LOG.split()), max_size=40).map(" ".join))
def test_a_new_name_is_always_missing(words: str) -> None:
    assert "Quillon" in Grounds([LOG]).find_missing(f"It is of the and to that Quillon was here. {words}")
