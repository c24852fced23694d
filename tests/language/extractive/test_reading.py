"""What the extractive model makes of a text: names, triples, relations, gists, summaries; and how it judges one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tomewise.language.extractive import judging
from tomewise.language.extractive.extracting import extract_entities, extract_relations, extract_triples
from tomewise.language.extractive.gist import write_gist
from tomewise.language.extractive.names import find_gender, find_mentions, find_sort
from tomewise.language.extractive.summarising import count_tokens, narrate, shorten, summarise
from tomewise.language.roles import ExtractIn, JudgeIn, LevelIn, PassageIn, ShortenIn, StatementsIn, SummaryIn
from tomewise.language.sentences import split_sentences

LISLE = "Matthew Lisle founded Tide House in 1843. Mrs. Moy worked for Matthew Lisle. The stair is steep."


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "Jean Valjean met Inspector Javert at the University of Paris on 5 May 1832. "
            "Then he read “Les Temps Modernes” and paid 600 francs.",
            {
                "Jean Valjean": "name",
                "Inspector Javert": "name",
                "University of Paris": "name",
                "5 May 1832": "date",
                "Les Temps Modernes": "title",
                "600": "number",
            },
        ),
        ("Suddenly the door opened. However, nobody came. Rain fell on Sker.", {"Sker": "name"}),
        ("They saw Scrooge's Christmas tree.", {"Scrooge": "name", "Christmas": "name"}),
    ],
)
def test_names_titles_dates_and_numbers_are_found_by_their_form(text, names):
    assert [(mention.text, mention.kind) for mention in find_mentions(text)] == list(names.items())


@pytest.mark.parametrize(
    ("name", "sort", "he_or_she"),
    [
        ("Mrs. Moy", "person", "she"),
        ("Arthur Dent", "person", "he"),
        ("Oxford University", "organization", ""),
        ("Baker Street", "place", ""),
        ("G. Stanley Hall", "person", ""),
        ("Sri Lanka", "place", ""),
        ("Zork", "", ""),
    ],
)
def test_kinds_of_names(name, sort, he_or_she):
    assert (find_sort(name), find_gender(name)) == (sort, he_or_she)


@given(st.text(max_size=300))
def test_mentions_are_ordered_disjoint_and_in_the_text(text):
    named = find_mentions(text)
    assert all(a.end <= b.start for a, b in pairwise(named))
    assert all(m.text == " ".join(text[m.start : m.end].split()) for m in named)


def test_entities_are_distinct_and_begin_with_the_title():
    found = extract_entities(PassageIn(text=LISLE, title="Tide House")).entities
    assert found == ["Tide House", "Matthew Lisle", "1843", "Mrs. Moy"]


@pytest.mark.parametrize(
    ("fields", "triples"),
    [
        # Neighbours are related by the words between them.
        (
            {"text": LISLE},
            [
                ["Matthew Lisle", "founded", "Tide House"],
                ["Matthew Lisle", "founded in", "1843"],
                ["Mrs. Moy", "worked for", "Matthew Lisle"],
            ],
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
    found = extract_triples(ExtractIn(**fields)).triples
    assert [triple for triple in triples if triple not in found] == []
    assert all(len(triple) == 3 for triple in found)
    assert len(found) <= len(triples) + 1


def test_relations_describe_by_the_sentence_and_count_how_often():
    found = extract_relations(PassageIn(text="Mr. Stroud met Mrs. Moy at Tide House. Mrs. Moy thanked Mr. Stroud."))
    assert [(e.name, e.type) for e in found.entities] == [
        ("Mr. Stroud", "person"),
        ("Mrs. Moy", "person"),
        ("Tide House", "geo"),
    ]
    pair = found.relationships[0]
    assert {pair.source, pair.target} == {"Mr. Stroud", "Mrs. Moy"}
    assert (pair.strength, pair.description) == (2.0, "Mr. Stroud met Mrs. Moy at Tide House.")


@pytest.mark.parametrize(
    ("text", "title", "memory", "notes"),
    [
        (
            "Ebenezer Scrooge was cold. He sat down. Mrs. Moy saw Scrooge and took his hat.",
            "",
            "Ebenezer Scrooge was cold. Ebenezer Scrooge sat down. Mrs. Moy saw Ebenezer Scrooge and took his hat.",
            "He = Ebenezer Scrooge; Scrooge = Ebenezer Scrooge",
        ),
        # It owns with possessives, and leaves speech alone.
        (
            "Mrs. Moy came in. Her hat was wet. “She is late,” said the judge.",
            "",
            "Mrs. Moy came in. Mrs. Moy's hat was wet. “She is late,” said the judge.",
            None,
        ),
        # A titled passage is about its title.
        (
            "It was built in 1843. It was clear that it leaked.",
            "Tide House",
            "Tide House was built in 1843. It was clear that it leaked.",
            None,
        ),
    ],
)
def test_a_gist_resolves_pronouns_and_short_names_and_says_so(text, title, memory, notes):
    found = write_gist(PassageIn(text=text, title=title))
    assert found.memory == memory
    assert notes in (None, found.notes)


# ---------------------------------------------------------------- summaries

TEXTS = [
    "The pilot drowned near the withy. The withy marks the road over the Wade. Rain fell.",
    "Annis found the withy cut. The cuts in the withy count the depth of the Wade. A dog barked at nothing.",
    "The inspector read the cuts. The depth of the Wade gave the hour at which the pilot drowned.",
]


def test_what_fits_is_kept_whole():
    assert summarise(SummaryIn(texts=["One line.", "One line.", "Two."])).summary == "One line.\nTwo."


def test_a_summary_is_sentences_of_its_texts_within_its_room():
    summary = summarise(SummaryIn(texts=TEXTS, max_tokens=40)).summary
    chosen = [s.text for s in split_sentences(summary)]
    assert set(chosen) <= {s.text for text in TEXTS for s in split_sentences(text)}
    assert len(chosen) >= 2
    assert count_tokens(summary) <= 40
    assert "A dog barked at nothing." not in chosen


def test_a_narration_tells_of_every_text_in_order():
    parts = narrate(SummaryIn(texts=TEXTS, max_tokens=45)).summary.split("\n")
    assert len(parts) == 3
    assert all(part.split(".")[0] in text for part, text in zip(parts, TEXTS, strict=True))


def test_a_page_is_shortened_to_its_bound_in_words():
    page = " ".join(f"On day {number} the keeper wrote down the height of the tide." for number in range(60))
    given_ = ShortenIn(text=page)
    gist = shorten(given_).gist
    assert 30 < len(gist.split()) <= given_.words < len(page.split()) / 4
    assert all(f"{sentence}." in page for sentence in gist.rstrip(".").split(". "))


# ---------------------------------------------------------------- judging


def test_token_f1_and_recall_by_hand():
    # two of three and two of four tokens are shared: F1 = 2 * 2 / 7
    overlap = judging.measure_overlap("the red house burned", "a red house stood empty")
    assert overlap == pytest.approx((4 / 7, 2 / 3))


WATCH = "salt ate the spring of the old clock"
PART = "People say that salt ate the spring of some clock, whatever that may mean to them"


@pytest.mark.parametrize(
    ("judge", "reference", "prediction", "correct"),
    [
        ("judge_correct", "Matthew Lisle", "Matthew Lisle", True),
        ("judge_correct", "Matthew Lisle", "It was built by Matthew Lisle in 1843.", True),
        ("judge_correct", "Matthew Lisle", "Mrs. Moy", False),
        ("judge_correct", "He was late", "He was not late", False),
        ("judge_correct", "Matthew Lisle", "", False),
        ("judge_correct", "", "", False),
        ("judge_correct", WATCH, PART, True),
        ("judge_entailed", WATCH, PART, False),
        ("judge_entailed", WATCH, f"{PART}: {WATCH}", True),
    ],
)
def test_correct_shares_words_and_entailed_needs_the_whole_reference(judge, reference, prediction, correct):
    given_ = JudgeIn(question="?", reference=reference, prediction=prediction)
    assert getattr(judging, judge)(given_).correct is correct


@pytest.mark.parametrize(
    ("prediction", "level", "score"), [("The pilot drowned.", "very high", 100), ("Roses", "very low", 0)]
)
def test_levels_follow_the_share_covered(prediction, level, score):
    given_ = LevelIn(question="?", reference="pilot drowned", prediction=prediction, quality="comprehensiveness")
    judged = judging.judge_level(given_)
    assert (judged.level, judged.score) == (level, score)


def test_statements_are_sorted_by_whether_the_other_side_says_them():
    prediction = "The pilot drowned near the withy. Roses are red."
    reference = "Near the withy the pilot drowned. Annis found the watch."
    found = judging.judge_statements(StatementsIn(question="?", prediction=prediction, reference=reference))
    assert (found.supported, found.unsupported, found.missing) == (
        ["The pilot drowned near the withy."],
        ["Roses are red."],
        ["Annis found the watch."],
    )
