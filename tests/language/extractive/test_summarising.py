from __future__ import annotations

from tomewise.language.extractive.summarising import count_tokens, narrate, shorten, summarise
from tomewise.language.roles import ShortenIn, SummaryIn
from tomewise.language.sentences import split_sentences

TEXTS = [
    "The pilot drowned near the withy. The withy marks the road over the Wade. Rain fell.",
    "Annis found the withy cut. The cuts in the withy count the depth of the Wade. A dog barked at nothing.",
    "The inspector read the cuts. The depth of the Wade gave the hour at which the pilot drowned.",
]


def test_what_fits_is_kept_whole():
    assert summarise(SummaryIn(texts=["One line.", "One line.", "Two."])).summary == "One line.\nTwo."


def test_a_summary_is_sentences_of_its_texts_within_its_room():
    summary = summarise(SummaryIn(texts=TEXTS, max_tokens=40)).summary
    verbatim = {s.text for text in TEXTS for s in split_sentences(text)}
    chosen = [s.text for s in split_sentences(summary)]
    assert set(chosen) <= verbatim
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
