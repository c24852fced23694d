import pytest
from tests.language.extractive.conftest import show

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import short_answers
from tomewise.language.roles import AnswerIn, AnswerOut

EMBEDDER = HashEmbedder()
HARBOUR = (
    "The harbour of Sker was built in 1843 by Matthew Lisle. It has room for 40 boats. "
    "Mrs. Moy keeps the key of the harbour office in Pellmarsh. "
    "The old clock stopped because salt had eaten its spring."
)
GARDEN = "The garden at Thorle House is full of roses. Nobody waters the roses on Sundays."
EVIDENCE = show(GARDEN, HARBOUR)
BUILT = "Who built the harbour of Sker?"


def answer(question, evidence=EVIDENCE, **fields):
    return short_answers.answer(AnswerIn(question=question, evidence=evidence, **fields), EMBEDDER)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (BUILT, "Matthew Lisle"),
        ("When was the harbour of Sker built?", "1843"),
        ("How many boats does the harbour have room for?", "40"),
        ("Where does Mrs. Moy keep the key of the harbour office?", "Pellmarsh"),
        ("Does somebody water the roses?", "No"),
        ("Why had the old clock stopped?", "The old clock stopped because salt had eaten its spring."),
    ],
)
def test_short_answers(question, expected):
    assert expected in answer(question).answer


def test_quotes_are_whole_sentences_of_the_labelled_evidence():
    found = answer(BUILT, may_decline=True)
    assert found.answer == "Matthew Lisle", "good evidence is not declined"
    assert [(q.label, q.quote) for q in found.quotes] == [
        ("E2", "The harbour of Sker was built in 1843 by Matthew Lisle.")
    ]


# ---------------------------------------------------------------- how far the evidence holds


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Which composer taught Wolfgang the violin in Salzburg?", "nothing here names Wolfgang or Salzburg"),
        ("How is bread baked in a stone oven?", "no sentence is near to it"),
    ],
)
def test_a_declined_question_says_what_the_evidence_lacks(question, missing):
    declined = answer(question, may_decline=True)
    assert declined == AnswerOut(answer="*", supported="none", missing=missing)
    assert declined.is_declined(False)


def test_the_supported_option_is_chosen_and_without_evidence_the_first_one_or_none():
    assert answer("Who?", [], options=["Ann", "Bob"]).choice == "A"
    assert answer("Who?", [], options=["Ann", "Bob"], may_decline=True).is_declined(False)
    found = answer("Why did the clock stop?", options=["A thief", "Salt in the spring", "Frost"])
    assert (found.choice, found.answer) == ("B", "Salt in the spring")
    assert found.quotes[0].quote.startswith("The old clock")


def test_a_summary_has_the_nearest_sentences_and_no_more_than_sixty_words():
    piece = " ".join(f"Keeper {number} of the lamp wrote one more line about it." for number in range(20))
    found = answer("Summarize the story.", show(piece, HARBOUR))
    assert 1 < len(found.quotes) < len(found.answer.split()) <= 60
