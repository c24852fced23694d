from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.extractive.quotations import MOST_EMBEDDED, MOST_REWRITTEN, SHOWN, quote
from tomewise.language.roles import ANSWER, AnswerIn, Quotable, QuoteIn, Shown

LIGHT = (
    "Eleven keepers served at the light. The last keeper of the light was Josiah Penrose, who left in 1984. "
    "Is the light open? The tower was built of granite because the sea had carried away two of wood."
)
GARDEN = "The garden at Thorle House is full of roses. Nobody waters the roses on Sundays, since the well is low then."


class Counting(HashEmbedder):
    """Remembers what it embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return super().embed(texts)


def ask(question: str, *texts: str, may_decline: bool = True, **more: Any):
    passages = [Quotable(label=f"E{number}", text=text) for number, text in enumerate(texts, 1)]
    return quote(QuoteIn(question=question, passages=passages, may_decline=may_decline, **more), HashEmbedder())


def test_whole_sentences_are_quoted_and_no_name_is_cut_out():
    reply = ask("Who was the last keeper of the light?", GARDEN, LIGHT)
    assert reply.quotes[0].label == "E2"
    assert reply.quotes[0].quote == "The last keeper of the light was Josiah Penrose, who left in 1984."
    assert reply.answer.splitlines() == [each.quote for each in reply.quotes]
    assert (len(reply.quotes), reply.supported, reply.choice) == (SHOWN, "partly", None)


@pytest.mark.parametrize(
    ("question", "opening"),
    [
        ("Why was the tower of the light built of granite?", "The tower was built"),
        ("When did the keeper of the light leave?", "The last keeper"),
    ],
)
def test_a_sentence_of_the_kind_that_the_question_wants_comes_first(question: str, opening: str):
    assert ask(question, LIGHT).quotes[0].quote.startswith(opening)


def test_a_question_in_the_text_is_no_answer_to_it():
    assert ask("Is the light open?", "Is the light open? The light is open.").quotes[0].quote == "The light is open."


@pytest.mark.parametrize("question", ["Who was the last keeper of Vardo?", "How is bread baked in a stone oven?"])
def test_what_nothing_answers_is_declined_and_the_nearest_sentences_are_quoted_all_the_same(question: str):
    reply = ask(question, GARDEN, LIGHT)
    assert reply.is_declined(may_decline=True)
    assert len(reply.quotes) == SHOWN
    assert reply.missing


def test_the_name_that_is_in_no_passage_is_named():
    assert ask("Who was the last keeper of Vardo?", LIGHT).missing == "nothing here names Vardo"


def test_a_guess_that_is_asked_for_is_not_declined_and_not_supported():
    reply = ask("How is bread baked in a stone oven?", LIGHT, may_decline=False)
    assert (reply.is_declined(may_decline=False), reply.supported) == (False, "none")


def test_an_option_comes_with_the_sentence_on_which_it_rests():
    options = ["Matthew Lisle", "Josiah Penrose", "Brenda Osei"]
    reply = ask("Who was the last keeper of the light?", GARDEN, LIGHT, options=options)
    assert reply.choice == "B"
    assert "Josiah Penrose" in reply.quotes[0].quote
    assert reply.answer not in options


OPTIONS = ("Matthew Lisle", "Josiah Penrose", "Brenda Osei")


@pytest.mark.parametrize(
    "question",
    [
        "Who was the last keeper who left a false light?",
        "Which keeper left the light that nobody except him saw in the dark?",
    ],
)
def test_words_of_denial_do_not_turn_a_choice_round(question: str):
    assert ask(question, GARDEN, LIGHT, options=OPTIONS).choice == "B"


@pytest.mark.parametrize(
    "question",
    [
        "Which of these did NOT keep the light?",
        "Which of these is false about the last keeper of the light?",
        "All of these kept the light except:",
    ],
)
def test_no_option_stands_beside_a_sentence_where_the_opposite_is_asked_for(question: str):
    reply = ask(question, GARDEN, LIGHT, options=OPTIONS)
    assert (reply.choice, len(reply.quotes)) == (None, SHOWN)


def test_no_option_stands_beside_a_sentence_that_does_not_carry_it():
    assert ask("Who was the last keeper of the light?", GARDEN, LIGHT, options=["Ann Reed", "Ben Hart"]).choice is None


def test_a_bounded_number_of_options_is_compared():
    embedder = Counting()
    passages = [Quotable(label="E1", text=LIGHT)]
    options = [f"Keeper {number}" for number in range(500)]
    quote(QuoteIn(question="Who was the last keeper?", options=options, passages=passages), embedder)
    assert len(embedder.texts) <= 1 + 60 + MOST_EMBEDDED


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who keeps the light?", "Ada Marsh keeps the light at Skagen with two dogs and a lame horse from Jutland."),
        ("Where does Mrs Marsh live?", "Ada Marsh lives at Skagen."),
        ("Where does Anna live?", "Anna lives in Berlin"),
        ("What Did The Clerk Find?", "The clerk found a coin. He will find another."),
    ],
)
def test_what_one_sentence_has_in_all_its_words_is_not_declined(question: str, text: str):
    reply = ask(question, GARDEN, text)
    assert reply.supported == "partly"
    assert text.startswith(reply.quotes[0].quote)


def test_the_folders_of_a_path_name_nothing():
    passages = [Quotable(label="E1", text=LIGHT, document="Vardo/light.txt")]
    reply = quote(
        QuoteIn(question="Who was the last keeper of Vardo?", passages=passages, may_decline=True), HashEmbedder()
    )
    assert reply.missing == "nothing here names Vardo"


def test_a_passage_without_words_is_evidence_that_cannot_be_quoted():
    assert ask("Who was the last keeper?", "----").missing == "nothing here can be quoted"


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(0, 12), st.booleans())
def test_a_bounded_number_of_sentences_is_embedded(sentences: int, passages: int, rewritten: bool):
    embedder = Counting()
    texts = [
        " ".join(f"Keeper number {number} of light {place} was Josiah." for number in range(sentences))
        for place in range(passages)
    ]
    given = QuoteIn(
        question="Who was the last keeper?",
        passages=[Quotable(label=f"E{number}", text=text) for number, text in enumerate(texts, 1)],
        rewrites=[("Who was the last josiah?", 0.02)] if rewritten else [],
    )
    quote(given, embedder)
    bound = MOST_REWRITTEN + 2 if rewritten else MOST_EMBEDDED + 1
    assert len(embedder.texts) <= min(bound, 2 + sentences * passages)
    assert (MOST_EMBEDDED, MOST_REWRITTEN) == (24, 40)


def test_a_rewrite_raises_what_is_near_to_it_but_not_above_the_first():
    texts = ("Signmark is a rapper from Finland.", "In Finland the markka was the currency before the euro came.")
    question = "What was the money in the country that Signmark is from?"
    plain = ask(question, texts[0], GARDEN, texts[1])
    reply = ask(question, texts[0], GARDEN, texts[1], rewrites=[("in Finland the markka was the currency", 0.0)])
    assert [each.quote for each in reply.quotes[:2]] == list(texts)
    assert plain.quotes[0].quote == texts[0]


async def test_the_model_quotes_unless_it_is_made_for_short_answers():
    given = AnswerIn(question="Who was the last keeper of the light?", evidence=[Shown(label="E1", text=LIGHT)])
    short = ExtractiveModel(HashEmbedder(), short_answers=True)
    assert (await ExtractiveModel(HashEmbedder()).ask(ANSWER, given)).answer.startswith("The last keeper")
    assert (await short.ask(ANSWER, given)).answer == "Josiah Penrose"
    assert short.name_for(ANSWER) != short.name


def test_nothing_to_quote_is_declined_even_where_a_guess_is_asked_for():
    reply = ask("Who was the last keeper?", may_decline=False, options=["Ann", "Ben"])
    assert (reply.refused, reply.quotes, reply.missing) == (True, [], "no evidence was found")
