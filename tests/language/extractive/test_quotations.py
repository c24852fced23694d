"""Sentences that can be quoted, and the quotations that the extractive model gives as an answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.language.extractive.conftest import show

from tomewise.language.extractive import ExtractiveModel
from tomewise.language.extractive.near_sentences import list_candidates
from tomewise.language.extractive.quoting import MOST_EMBEDDED, MOST_REWRITTEN, SHOWN, quote
from tomewise.language.roles import ANSWER, AnswerIn, Quotable, QuoteIn
from tomewise.language.wrapped import find_name
from tomewise.testing import HashEmbedder, NotingEmbedder


def test_what_is_embedded_begins_with_the_title_and_the_outer_and_inner_headings():
    headings = [(0, ("Allotments",)), (9, ("Allotments", "Money", "Rent"))]
    text = "Welcome. It is 64 pounds."
    first, second = list_candidates([Quotable(label="E1", text=text, title="Hollow Lane", headings=headings)])
    assert (first.prefix, second.prefix) == ("Hollow Lane, Allotments", "Hollow Lane, Allotments, Rent")


# ---------------------------------------------------------------- which are quoted

LIGHT = (
    "Eleven keepers served at the light. The last keeper of the light was Josiah Penrose, who left in 1984. "
    "Is the light open? The tower was built of granite because the sea had carried away two of wood."
)
GARDEN = "The garden at Thorle House is full of roses. Nobody waters the roses on Sundays, since the well is low then."
LAST = "Who was the last keeper of the light?"
OPTIONS = ["Matthew Lisle", "Josiah Penrose", "Brenda Osei"]


def ask(question, *texts, may_decline=True, embedder=None, document="", **more):
    passages = [Quotable(label=f"E{number}", text=text, document=document) for number, text in enumerate(texts, 1)]
    given_ = QuoteIn(question=question, passages=passages, may_decline=may_decline, **more)
    return quote(given_, embedder or HashEmbedder())


def test_whole_sentences_are_quoted_and_no_name_is_cut_out():
    reply = ask(LAST, GARDEN, LIGHT)
    assert reply.quotes[0].label == "E2"
    assert reply.quotes[0].quote == "The last keeper of the light was Josiah Penrose, who left in 1984."
    assert reply.answer.splitlines() == [each.quote for each in reply.quotes]
    assert (len(reply.quotes), reply.supported, reply.choice) == (SHOWN, "partly", None)


@pytest.mark.parametrize(
    ("question", "fields", "missing"),
    [
        ("Who was the last keeper of Vardo?", {}, "nothing here names Vardo"),
        ("Who was the last keeper of Vardo?", {"document": "Vardo/light.txt"}, "nothing here names Vardo"),
        ("How is bread baked in a stone oven?", {}, ""),
        ("???", {"rewrites": [(LIGHT[:40], 0.0)]}, "no word"),
    ],
)
def test_what_nothing_answers_is_declined_and_the_nearest_sentences_are_quoted_all_the_same(question, fields, missing):
    reply = ask(question, GARDEN, LIGHT, **fields)
    assert reply.is_declined(may_decline=True)
    assert len(reply.quotes) == SHOWN
    assert reply.missing
    assert missing in reply.missing


def test_a_guess_that_is_asked_for_is_not_supported_and_is_declined_without_evidence_alone():
    reply = ask("How is bread baked in a stone oven?", LIGHT, may_decline=False)
    assert (reply.is_declined(may_decline=False), reply.supported) == (False, "none")
    reply = ask(LAST, may_decline=False, options=["Ann", "Ben"])
    assert (reply.refused, reply.quotes, reply.missing) == (True, [], "no evidence was found")


@pytest.mark.parametrize(
    ("question", "options", "choice"),
    [
        # Words of denial do not turn a choice round.
        ("Who was the last keeper who left a false light?", OPTIONS, "B"),
        # The opposite is asked for.
        ("Which of these did NOT keep the light?", OPTIONS, None),
        ("All of these kept the light except:", OPTIONS, None),
        # No sentence carries an option.
        (LAST, ["Ann Reed", "Ben Hart"], None),
    ],
)
def test_an_option_stands_beside_a_sentence_that_carries_it_where_this_is_asked_for(question, options, choice):
    reply = ask(question, GARDEN, LIGHT, options=options)
    assert (reply.choice, len(reply.quotes)) == (choice, SHOWN)
    assert reply.answer not in options
    assert choice is None or "Josiah Penrose" in reply.quotes[0].quote


@settings(max_examples=20)
@given(st.integers(1, 30), st.integers(0, 12), st.booleans())
def test_a_bounded_number_of_sentences_is_embedded(sentences, passages, rewritten):
    embedder = NotingEmbedder()
    texts = [
        " ".join(f"Keeper number {number} of light {place} was Josiah." for number in range(sentences))
        for place in range(passages)
    ]
    rewrites = [("Who was the last josiah?", 0.02)] if rewritten else []
    ask("Who was the last keeper?", *texts, embedder=embedder, may_decline=False, rewrites=rewrites)
    bound = MOST_REWRITTEN + 2 if rewritten else MOST_EMBEDDED + 1
    assert len(embedder.texts) <= min(bound, 2 + sentences * passages)


def test_a_rewrite_raises_what_is_near_to_it_but_not_above_the_first():
    texts = ("Signmark is a rapper from Finland.", "In Finland the markka was the currency before the euro came.")
    question = "What was the money in the country that Signmark is from?"
    reply = ask(question, texts[0], GARDEN, texts[1], rewrites=[("in Finland the markka was the currency", 0.0)])
    assert [each.quote for each in reply.quotes[:2]] == list(texts)
    assert ask(question, texts[0], GARDEN, texts[1]).quotes[0].quote == texts[0]


async def test_the_model_quotes_unless_it_is_made_for_short_answers(embedder):
    given_ = AnswerIn(question=LAST, evidence=show(LIGHT))
    short = ExtractiveModel(embedder, short_answers=True)
    assert (await ExtractiveModel(embedder).ask(ANSWER, given_)).answer.startswith("The last keeper")
    assert (await short.ask(ANSWER, given_)).answer == "Josiah Penrose"
    assert find_name(short, ANSWER) != short.name
