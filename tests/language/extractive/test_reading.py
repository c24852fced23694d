"""What the extractive model makes of a text: triples, relations, gists, summaries; and how it judges one."""

import pytest

from tomewise.language import roles
from tomewise.language.extractive import judging
from tomewise.language.extractive.extracting import extract_relations, extract_triples
from tomewise.language.extractive.pronouns import write_gist
from tomewise.language.extractive.summarising import count_tokens, summarise
from tomewise.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("fields", "triples"),
    [
        (
            {"text": "Matthew Lisle founded Tide House in 1843. The stair is steep."},
            [["Matthew Lisle", "founded", "Tide House"], ["Matthew Lisle", "founded in", "1843"]],
        ),
        # A sentence without a subject is about the title.
        ({"text": "It was built in 1843.", "title": "Tide House"}, [["Tide House", "was built in", "1843"]]),
        # Entities named beforehand are found in any case.
        (
            {"text": "The repeater belongs to Mrs. Moy.", "entities": ["Repeater"]},
            [["Repeater", "belongs to", "Mrs. Moy"]],
        ),
    ],
)
def test_triples_relate_what_a_sentence_names(fields, triples):
    found = extract_triples(roles.ExtractIn(**fields)).triples
    assert [triple for triple in triples if triple not in found] == []
    assert len(found) <= len(triples) + 1


def test_relations_describe_by_the_sentence_and_count_how_often():
    text = "Mr. Stroud met Mrs. Moy at Tide House. Mrs. Moy thanked Mr. Stroud."
    found = extract_relations(roles.PassageIn(text=text))
    assert [(e.name, e.type) for e in found.entities] == [
        ("Mr. Stroud", "person"),
        ("Mrs. Moy", "person"),
        ("Tide House", "geo"),
    ]
    pair = found.relationships[0]
    assert {pair.source, pair.target} == {"Mr. Stroud", "Mrs. Moy"}
    assert (pair.strength, pair.description) == (2.0, "Mr. Stroud met Mrs. Moy at Tide House.")


def test_a_gist_resolves_pronouns_and_short_names_and_says_so():
    found = write_gist(roles.PassageIn(text="Ebenezer Scrooge was cold. He sat down. Mrs. Moy saw Scrooge."))
    assert found.memory == ("Ebenezer Scrooge was cold. Ebenezer Scrooge sat down. Mrs. Moy saw Ebenezer Scrooge.")
    assert found.notes == "He = Ebenezer Scrooge; Scrooge = Ebenezer Scrooge"
    text = "Ann Lee is at Lee Bay."
    assert write_gist(roles.PassageIn(text=text)).memory == text, "a short name inside a longer one is none"
    speech = "“She is late,” said the judge."
    found = write_gist(roles.PassageIn(text=f"Mrs. Moy came in. Her hat was wet. {speech}"))
    assert found.memory == f"Mrs. Moy came in. Mrs. Moy's hat was wet. {speech}"


# ---------------------------------------------------------------- summaries

TEXTS = [
    "The pilot drowned near the withy. The withy marks the road over the Wade. Rain fell.",
    "Annis found the withy cut. The cuts in the withy count the depth of the Wade. A dog barked at nothing.",
    "The inspector read the cuts. The depth of the Wade gave the hour at which the pilot drowned.",
]


def test_a_summary_is_sentences_of_its_texts_within_its_room():
    summary = summarise(TEXTS, 40)
    chosen = [s.text for s in split_sentences(summary)]
    assert set(chosen) <= {s.text for text in TEXTS for s in split_sentences(text)}
    assert len(chosen) >= 2
    assert count_tokens(summary) <= 40
    assert "A dog barked at nothing." not in chosen
    assert summarise(["One line.", "One line.", "Two."], 1_000) == "One line.\nTwo."


# ---------------------------------------------------------------- judging

WATCH = "salt ate the spring of the old clock"
PART = "People say that salt ate the spring of some clock, whatever that may mean to them"


@pytest.mark.parametrize(
    ("judge", "reference", "prediction", "correct"),
    [
        ("judge_correct", "Matthew Lisle", "It was built by Matthew Lisle in 1843.", True),
        ("judge_correct", "He was late", "He was not late", False),
        ("judge_correct", WATCH, PART, True),
        ("judge_entailed", WATCH, PART, False),
        ("judge_entailed", WATCH, f"{PART}: {WATCH}", True),
        # Two of three and two of four tokens are shared: F1 is 0.57. One more is 0.67.
        ("judge_correct", "the red house burned", "a red house stood empty", False),
        ("judge_correct", "the red house burned", "a red house stood", True),
    ],
)
def test_correct_shares_words_and_entailed_needs_the_whole_reference(judge, reference, prediction, correct):
    given_ = roles.JudgeIn(question="?", reference=reference, prediction=prediction)
    assert getattr(judging, judge)(given_).correct is correct


def test_statements_stand_where_the_other_side_says_them():
    prediction = "The pilot drowned near the withy. Roses are red."
    reference = "Near the withy the pilot drowned. Annis found the watch."
    found = judging.judge_statements(roles.JudgeIn(question="?", prediction=prediction, reference=reference))
    assert (found.supported, found.unsupported) == (["The pilot drowned near the withy."], ["Roses are red."])
    assert found.missing == ["Annis found the watch."]
