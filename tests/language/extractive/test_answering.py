from itertools import permutations

import pytest
from tests.language.extractive.conftest import show

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import answering
from tomewise.language.extractive.question_words import read_question
from tomewise.language.extractive.relevance import read_lines
from tomewise.language.roles import AnswerIn, AnswerOut, Shown

EMBEDDER = HashEmbedder()
HARBOUR = (
    "The harbour of Sker was built in 1843 by Matthew Lisle. It has room for 40 boats. "
    "Mrs. Moy keeps the key of the harbour office in Pellmarsh. "
    "The old clock stopped because salt had eaten its spring."
)
GARDEN = "The garden at Thorle House is full of roses. Nobody waters the roses on Sundays."
MEETING = (
    "Ann Lee: Um I think the remote control should be {vocalsound} cheap to make.\n"
    "Bob Ray: Is the remote control heavy?\n"
    "Ann Lee: The remote control must weigh less than a phone. The case can be plastic.\n"
    "Bob Ray: I will bring biscuits next week."
)
EVIDENCE = show(GARDEN, HARBOUR)
BUILT = "Who built the harbour of Sker?"


def answer(question, evidence=EVIDENCE, **fields):
    return answering.answer(AnswerIn(question=question, evidence=evidence, **fields), EMBEDDER)


@pytest.mark.parametrize(
    ("question", "want"),
    [
        ("Who built the harbour?", "person"),
        ("When did the man who built it die?", "date"),
        ("Where was she born?", "place"),
        ("In what city is the tower?", "place"),
        ("How many boats are there?", "number"),
        ("Why did the clock stop?", "reason"),
        ("What did he find?", "clause"),
        ("What hangs on the wall?", "clause"),
        ("What company published it?", "name"),
        ("Is the key lost?", "yes-no"),
        ("Summarize the discussion.", "summary"),
        ("What did Ann think about the case?", "summary"),
        ("", "clause"),
    ],
)
def test_what_a_question_wants(question, want):
    assert read_question(question).want == want


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (BUILT, "Matthew Lisle"),
        ("When was the harbour of Sker built?", "1843"),
        ("How many boats does the harbour have room for?", "40"),
        ("Where does Mrs. Moy keep the key of the harbour office?", "Pellmarsh"),
        ("Does nobody water the roses?", "Yes"),
        ("Does somebody water the roses?", "No"),
        ("Why had the old clock stopped?", "The old clock stopped because salt had eaten its spring."),
    ],
)
def test_short_answers(question, expected):
    assert expected in answer(question).answer


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        # A name found beside the question leads to the answer.
        (
            "When did the country where Baure is located leave the British Empire?",
            [
                "Baure is a town in Katsina, Nigeria.",
                "Nigeria left the British Empire on 1 October 1960.",
                "The roses flowered in 1901.",
            ],
            "1 October 1960",
        ),
        ("他为什么离开？", ["天下雨了。他离开因为他病了。"], "他离开因为他病了。"),
    ],
)
def test_an_answer_from_other_evidence(question, texts, expected):
    assert answer(question, show(*texts)).answer == expected


def test_quotes_are_whole_sentences_of_the_labelled_evidence():
    found = answer(BUILT, may_decline=True)
    assert found.answer == "Matthew Lisle", "good evidence is not declined"
    assert [(q.label, q.quote) for q in found.quotes] == [
        ("E2", "The harbour of Sker was built in 1843 by Matthew Lisle.")
    ]


def test_a_note_answers_but_the_evidence_is_quoted():
    notes = ["The lighthouse of Anner was painted by Jory Teague."]
    found = answer("Who painted the lighthouse of Anner?", notes=notes)
    assert found.answer == "Jory Teague"
    assert all(quote.label in {"E1", "E2"} for quote in found.quotes)


# ---------------------------------------------------------------- how far the evidence holds


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Which composer taught Wolfgang the violin in Salzburg?", "nothing here names Wolfgang or Salzburg"),
        ("What is the capital of Mongolia?", "nothing here names Mongolia"),
        ("Who built the harbour of Pellmarsh Regis in 1843?", "nothing here names Pellmarsh Regis"),
        ("Who built the lighthouse?", "nothing here mentions lighthouse"),
        ("Who waters the clock of the harbour?", "nothing here says enough about waters, clock or harbour"),
        ("When had salt eaten the spring of the old clock?", "nothing here gives the date asked for"),
    ],
)
def test_a_declined_question_says_what_the_evidence_lacks(question, missing):
    declined = answer(question, may_decline=True)
    assert declined == AnswerOut(answer="*", supported="none", missing=missing)
    assert declined.failed


@pytest.mark.parametrize(
    ("question", "supported"),
    [
        (BUILT, "full"),
        ("Which poet praised the gales of Thessaly?", "none"),
        # The sentence is there, but the one date stands in another sentence.
        ("When did the old clock stop because salt had eaten its spring?", "partly"),
    ],
)
def test_an_answer_that_is_not_declined_says_how_far_the_evidence_holds_it(question, supported):
    found = answer(question)
    assert (found.supported, found.failed) == (supported, False)


def test_without_evidence_a_forced_choice_is_the_first_option():
    assert answer("Who?", [], options=["Ann", "Bob"]).choice == "A"
    assert answer("Who?", [], options=["Ann", "Bob"], may_decline=True).failed
    assert answer("Who?", []).missing == "no evidence was found"


def test_the_supported_option_is_chosen():
    found = answer("Why did the clock stop?", options=["A thief", "Salt in the spring", "Frost"])
    assert (found.choice, found.answer) == ("B", "Salt in the spring")
    assert found.quotes[0].quote.startswith("The old clock")


def test_an_option_is_fully_supported_only_where_it_leads_clearly():
    def choose(*options, evidence=EVIDENCE, may_decline=True):
        return answer("Why did the old clock stop?", evidence, options=list(options), may_decline=may_decline)

    options = ("Salt had eaten its spring", "A thief took it", "Frost had split the case")
    assert (choose(*options).choice, choose(*options).supported) == ("A", "full")
    assert choose("Frost had split the case", "Frost had split the glass").supported == "partly"
    assert choose(*options, evidence=show(GARDEN)).failed
    forced = choose(*options, evidence=show(GARDEN), may_decline=False)
    assert (bool(forced.choice), forced.supported) == (True, "none")


# ---------------------------------------------------------------- summaries, order and lines


def test_a_summary_is_never_declined_and_instructions_bound_it():
    assert not answer("Summarize the whole discussion.", may_decline=True).failed
    assert answer("Summarize.", instructions="Summarise in 1 sentences").answer.count(".") <= 2


def test_a_summary_names_its_speakers_and_leaves_out_noise_and_questions():
    found = answer("What did Ann Lee think about the remote control?", show(MEETING))
    assert found.answer.startswith("Ann Lee: I think the remote control should be cheap to make.")
    assert "heavy" not in found.answer
    assert all(quote.quote in MEETING for quote in found.quotes)


@pytest.mark.parametrize("options", [[], ["the red lamp", "the green lamp"]])
@pytest.mark.parametrize(
    "question",
    [
        BUILT,
        "Which lamp did the keeper of the tower light?",
        "Who keeps the lamp?",
        "Summarize the story of the lamp.",
        "Was the lamp lit?",
        "Why was the lamp lit?",
    ],
)
def test_the_order_of_the_evidence_decides_nothing(question, options):
    # Alike but for the name, so that only the order could tell which one is best.
    pieces = [f"{name} keeps the lamp of the tower. The lamp was lit." for name in ("Ann Lee", "Bob Ray", "Cy Orr")]
    answers = set()
    for order in permutations([*pieces, HARBOUR, GARDEN]):
        found = answer(question, show(*order), options=options)
        answers.add((found.answer, tuple(quote.quote for quote in found.quotes), found.supported))
    assert len(answers) == 1


def test_what_summaries_and_notes_repeat_is_one_line():
    sentence = "The old clock stopped because salt had eaten its spring."
    evidence = [Shown(label="E1", text=HARBOUR, kind="passages"), Shown(label="E2", text=sentence, kind="tree")]
    lines = read_lines(evidence, [sentence, "No."])
    assert [line.label for line in lines if line.sentence.text == sentence] == ["E1"]
    assert lines[-1].sentence.text == "No."


def test_sentences_picked_for_a_summary_are_no_surroundings_of_each_other():
    text = "Ann rowed to Sker. The lamp was lit."
    passage, picked = (read_lines(show(text, kind=kind)) for kind in ("passage", "episode"))
    assert "lamp" in passage[0].around
    assert "lamp" not in picked[0].around
