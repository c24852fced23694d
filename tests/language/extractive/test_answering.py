from __future__ import annotations

from itertools import permutations

import pytest

from tomewise.language.extractive.answering import answer
from tomewise.language.extractive.question_words import read_question
from tomewise.language.extractive.relevance import read_lines
from tomewise.language.roles import AnswerIn, AnswerOut, Shown
from tomewise.types import Embedder

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
EVIDENCE = [Shown(label="E1", text=GARDEN), Shown(label="E2", text=HARBOUR)]


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
def test_what_a_question_wants(question: str, want: str):
    assert read_question(question).want == want


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who built the harbour of Sker?", "Matthew Lisle"),
        ("When was the harbour of Sker built?", "1843"),
        ("How many boats does the harbour have room for?", "40"),
        ("Where does Mrs. Moy keep the key of the harbour office?", "Pellmarsh"),
        ("Does nobody water the roses?", "Yes"),
        ("Does somebody water the roses?", "No"),
        ("Why had the old clock stopped?", "The old clock stopped because salt had eaten its spring."),
    ],
)
def test_short_answers(embedder: Embedder, question: str, expected: str):
    assert expected in answer(AnswerIn(question=question, evidence=EVIDENCE), embedder).answer


def test_quotes_are_whole_sentences_of_the_labelled_evidence(embedder: Embedder):
    found = answer(AnswerIn(question="Who built the harbour of Sker?", evidence=EVIDENCE), embedder)
    assert [(q.label, q.quote) for q in found.quotes] == [
        ("E2", "The harbour of Sker was built in 1843 by Matthew Lisle.")
    ]


def test_the_supported_option_is_chosen(embedder: Embedder):
    asked = AnswerIn(
        question="Why did the clock stop?", options=["A thief", "Salt in the spring", "Frost"], evidence=EVIDENCE
    )
    found = answer(asked, embedder)
    assert (found.choice, found.answer) == ("B", "Salt in the spring")
    assert found.quotes[0].quote.startswith("The old clock")


def test_thin_evidence_is_declined_only_where_it_may_be(embedder: Embedder):
    asked = AnswerIn(question="Which composer taught Wolfgang the violin in Salzburg?", evidence=EVIDENCE)
    declined = answer(asked.model_copy(update={"may_decline": True}), embedder)
    assert declined == AnswerOut(answer="*", supported="none", missing="nothing here names Wolfgang or Salzburg")
    assert declined.failed
    forced = answer(asked, embedder)
    assert not forced.failed
    assert forced.supported == "none"


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("What is the capital of Mongolia?", "nothing here names Mongolia"),
        ("Who built the lighthouse?", "nothing here mentions lighthouse"),
        ("Who waters the clock of the harbour?", "nothing here says enough about waters, clock or harbour"),
        ("When had salt eaten the spring of the old clock?", "nothing here gives the date asked for"),
    ],
)
def test_a_declined_question_says_what_the_evidence_lacks(embedder: Embedder, question: str, missing: str):
    asked = AnswerIn(question=question, evidence=EVIDENCE, may_decline=True)
    assert answer(asked, embedder) == AnswerOut(answer="*", supported="none", missing=missing)


def test_a_name_that_the_evidence_lacks_is_not_answered_about(embedder: Embedder):
    asked = AnswerIn(question="Who built the harbour of Pellmarsh Regis in 1843?", evidence=EVIDENCE, may_decline=True)
    assert answer(asked, embedder).missing == "nothing here names Pellmarsh Regis"


def test_an_answer_says_how_far_the_evidence_holds_it(embedder: Embedder):
    def judge(question: str) -> str:
        return answer(AnswerIn(question=question, evidence=EVIDENCE), embedder).supported

    assert judge("Who built the harbour of Sker?") == "full"
    assert judge("Which poet praised the gales of Thessaly?") == "none"
    # The sentence is there, but the one date stands in another sentence.
    assert judge("When did the old clock stop because salt had eaten its spring?") == "partly"


def test_a_summary_of_all_the_evidence_is_never_declined(embedder: Embedder):
    asked = AnswerIn(question="Summarize the whole discussion.", evidence=EVIDENCE, may_decline=True)
    assert not answer(asked, embedder).failed


@pytest.mark.parametrize(
    "question",
    [
        "Who built the harbour of Sker?",
        "Which lamp did the keeper of the tower light?",
        "Who keeps the lamp?",
        "Summarize the story of the lamp.",
        "Was the lamp lit?",
        "Why was the lamp lit?",
    ],
)
def test_the_order_of_the_evidence_decides_nothing(embedder: Embedder, question: str):
    # Alike but for the name, so that only the order could tell which one is best.
    pieces = [f"{name} keeps the lamp of the tower. The lamp was lit." for name in ("Ann Lee", "Bob Ray", "Cy Orr")]
    pieces += [HARBOUR, GARDEN]
    for options in ([], ["the red lamp", "the green lamp"]):
        answers = set()
        for order in permutations(pieces):
            evidence = [Shown(label=f"E{number}", text=text) for number, text in enumerate(order, 1)]
            found = answer(AnswerIn(question=question, options=options, evidence=evidence), embedder)
            answers.add((found.answer, tuple(quote.quote for quote in found.quotes), found.supported))
        assert len(answers) == 1


def test_good_evidence_is_not_declined(embedder: Embedder):
    asked = AnswerIn(question="Who built the harbour of Sker?", evidence=EVIDENCE, may_decline=True)
    assert answer(asked, embedder).answer == "Matthew Lisle"


def test_without_evidence_a_forced_choice_is_the_first_option(embedder: Embedder):
    assert answer(AnswerIn(question="Who?", options=["Ann", "Bob"]), embedder).choice == "A"
    assert answer(AnswerIn(question="Who?", options=["Ann", "Bob"], may_decline=True), embedder).failed
    assert answer(AnswerIn(question="Who?"), embedder).missing == "no evidence was found"


def test_a_note_answers_but_the_evidence_is_quoted(embedder: Embedder):
    notes = ["The lighthouse of Anner was painted by Jory Teague."]
    found = answer(AnswerIn(question="Who painted the lighthouse of Anner?", evidence=EVIDENCE, notes=notes), embedder)
    assert found.answer == "Jory Teague"
    assert all(quote.label in {"E1", "E2"} for quote in found.quotes)


def test_a_summary_names_its_speakers_and_leaves_out_noise_and_questions(embedder: Embedder):
    asked = AnswerIn(
        question="What did Ann Lee think about the remote control?", evidence=[Shown(label="E1", text=MEETING)]
    )
    found = answer(asked, embedder)
    assert found.answer.startswith("Ann Lee: I think the remote control should be cheap to make.")
    assert "heavy" not in found.answer
    assert all(quote.quote in MEETING for quote in found.quotes)


def test_instructions_bound_a_summary(embedder: Embedder):
    asked = AnswerIn(question="Summarize.", instructions="Summarise in 1 sentences", evidence=EVIDENCE)
    assert answer(asked, embedder).answer.count(".") <= 2


def test_a_name_found_beside_the_question_leads_to_the_answer(embedder: Embedder):
    evidence = [
        Shown(label="E1", title="Baure", text="Baure is a town in Katsina, Nigeria."),
        Shown(label="E2", title="Nigeria", text="Nigeria left the British Empire on 1 October 1960."),
        Shown(label="E3", title="Roses", text="The roses flowered in 1901."),
    ]
    question = "When did the country where Baure is located leave the British Empire?"
    assert answer(AnswerIn(question=question, evidence=evidence), embedder).answer == "1 October 1960"


def test_chinese_evidence_is_answered_in_its_own_sentences(embedder: Embedder):
    found = answer(
        AnswerIn(question="他为什么离开？", evidence=[Shown(label="E1", text="天下雨了。他离开因为他病了。")]), embedder
    )
    assert found.answer == "他离开因为他病了。"


def test_an_option_is_fully_supported_only_where_it_leads_clearly(embedder: Embedder):
    asked = AnswerIn(
        question="Why did the old clock stop?",
        options=["Salt had eaten its spring", "A thief took it", "Frost had split the case"],
        evidence=EVIDENCE,
        may_decline=True,
    )
    clear = answer(asked, embedder)
    assert (clear.choice, clear.supported) == ("A", "full")
    alike = asked.model_copy(update={"options": ["Frost had split the case", "Frost had split the glass"]})
    assert answer(alike, embedder).supported == "partly"
    elsewhere = asked.model_copy(update={"evidence": [Shown(label="E1", text=GARDEN)]})
    assert answer(elsewhere, embedder).failed
    forced = answer(elsewhere.model_copy(update={"may_decline": False}), embedder)
    assert (bool(forced.choice), forced.supported) == (True, "none")


def test_what_summaries_and_notes_repeat_is_one_line():
    sentence = "The old clock stopped because salt had eaten its spring."
    evidence = [Shown(label="E1", text=HARBOUR, kind="passages"), Shown(label="E2", text=sentence, kind="tree")]
    lines = read_lines(evidence, [sentence, "No."])
    assert [line.label for line in lines if line.sentence.text == sentence] == ["E1"]
    assert lines[-1].sentence.text == "No."


def test_sentences_picked_for_a_summary_are_no_surroundings_of_each_other():
    text = "Ann rowed to Sker. The lamp was lit."
    passage, picked = (read_lines([Shown(label="E1", text=text, kind=kind)]) for kind in ("passage", "episode"))
    assert "lamp" in passage[0].around
    assert "lamp" not in picked[0].around
