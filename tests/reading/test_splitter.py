import itertools
import random
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.places import find_sections, mark_headings
from tomewise.reading.splitter import PassageSplitter
from tomewise.types import Document, Passage

NOVEL = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "novels" / "gods_of_mars.txt"
KINDS = ("minilm", "unigram", "byte_level")


def document(text: str, title: str = "") -> Document:
    return Document(id="/d.txt", text=text, title=title)


def tokens(tokenizer: Tokenizer, text: str) -> int:
    """What an embedder sees, special tokens included."""
    return len(tokenizer.encode(text).ids)


def check(tokenizer: Tokenizer, text: str, passages: list[Passage], max_tokens: int, overlap: int = 0) -> None:
    covers = [0] * len(text)
    for position, passage in enumerate(passages):
        assert passage.position == position
        assert passage.text == text[passage.start : passage.end] == passage.text.strip() != ""
        assert tokens(tokenizer, passage.content) <= max_tokens
        assert passage.end - passage.start <= 8 * max_tokens
        for index in range(passage.start, passage.end):
            covers[index] += 1
    uncovered = [index for index, count in enumerate(covers) if not count and not text[index].isspace()]
    assert uncovered == []
    if not overlap:
        assert max(covers, default=0) <= 1
    assert [p.start for p in passages] == sorted({p.start for p in passages})
    assert [p.end for p in passages] == sorted({p.end for p in passages})
    assert len({p.id for p in passages}) == len(passages)


FRAGMENTS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet=" \n\t\r\x0b\x0c\x1c\x85\u00a0\u200b\u2028\u3000", max_size=6),
    st.text(alphabet=".!?…。！？؟\"'”」)#", max_size=6),
    st.sampled_from(
        ["The rain fell. ", "word ", "日本語の文。", "สวัสดีครับ", "السلام عليكم؟ ", "\n\n", "\n# Head\n", "é́", "ﷺ"]
    ),
    st.builds(lambda c, n: c * n, st.sampled_from("xé.\u200b가\n 😀😶‍🌫️\x01"), st.integers(1, 400)),
)
TEXTS = st.lists(FRAGMENTS, max_size=40).map("".join)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, title=st.one_of(st.just(""), st.text(max_size=30)), overlap=st.sampled_from([0, 0, 10]))
@example(text="a\x0cb " * 200, title="", overlap=0)
@example(text="a b c d e f g h\n\n\u200b\n\n" * 20, title="", overlap=0)
@example(text="000000" + " " * 289 + "The rain fell. 00000000000", title="", overlap=10)
@example(text="[SEP]a[MASK] b" * 50, title="[CLS]", overlap=0)
def test_any_text_is_covered_by_passages_that_fit(
    kind: str, text: str, title: str, overlap: int, request: pytest.FixtureRequest
) -> None:
    tokenizer = request.getfixturevalue(kind)
    passages = PassageSplitter(tokenizer, 40, overlap).split(document(text, title))
    check(tokenizer, text, passages, 40, overlap)


@pytest.mark.parametrize("kind", KINDS)
def test_prose_ends_at_sentences(kind: str, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(kind)
    text = " ".join(f"The man number {n} came to the town in the night. What did he want?" for n in range(200))
    passages = PassageSplitter(tokenizer, 128).split(document(text))
    check(tokenizer, text, passages, 128)
    assert all(passage.text[-1] in ".?" for passage in passages)
    assert all(tokens(tokenizer, passage.text) > 64 for passage in passages[:-1])


MARKDOWN = st.lists(
    st.one_of(
        FRAGMENTS,
        st.builds(
            lambda level, words: f"\n{'#' * level} {words}\n",
            st.integers(1, 6),
            st.sampled_from(["A", "B c", "D" * 90]),
        ),
        st.sampled_from(['"', "“He came. ", "She left.” ", "\n\n", '"Rain?" he said. ', "```\n"]),
    ),
    max_size=40,
).map("".join)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=MARKDOWN, overlap=st.sampled_from([0, 0, 10]))
def test_no_passage_of_any_marked_text_goes_on_across_a_heading(
    kind: str, text: str, overlap: int, request: pytest.FixtureRequest
) -> None:
    tokenizer = request.getfixturevalue(kind)
    marked = Document(id="/d.md", text=text, marks=mark_headings(text))
    passages = PassageSplitter(tokenizer, 40, overlap).split(marked)
    check(tokenizer, text, passages, 40, overlap)
    sections = find_sections(marked)
    assert not [(p, start) for p in passages for start in sections if p.start < start < p.end]


SENTENCE = "The rain fell on the town in the night. "


def test_a_heading_begins_a_passage_even_if_there_is_room(minilm: Tokenizer) -> None:
    text = f"# Book\n\n## One\n\n{SENTENCE}\n\n## Two\n{SENTENCE * 20}\n\n### Three\n\n{SENTENCE}\n\n## Last\n"
    marked = Document(id="/d.md", text=text, marks=mark_headings(text))
    passages = PassageSplitter(minilm, 128).split(marked)
    check(minilm, text, passages, 128)
    heads = [(p.text.split("\n")[0], p.place.chapter) for p in passages if p.text.startswith("#")]
    assert heads == [("# Book", ("Book", "One")), ("## Two", ("Book", "Two")), ("### Three", ("Book", "Two", "Three"))]
    assert passages[-1].text.endswith("## Last")


def test_a_scrap_joins_the_passage_before_it_or_gets_a_part_of_it(minilm: Tokenizer) -> None:
    paragraph = (SENTENCE * 3).strip()  # 30 tokens
    fits = "\n\n".join([paragraph] * 4 + ["Then he left."])
    assert [p.text for p in PassageSplitter(minilm, 130).split(document(fits))] == [fits]
    passages = PassageSplitter(minilm, 122).split(document(fits))
    assert [p.text.count("\n\n") for p in passages] == [2, 1]
    scraps_before_and_after = [tokens(minilm, p.text) for p in passages]
    assert min(scraps_before_and_after) > 0.15 * 122


def test_a_scrap_after_a_heading_joins_nothing_across_it(minilm: Tokenizer) -> None:
    text = f"# One\n\n{SENTENCE * 3}\n\n# Two\n\nHe left."
    marked = Document(id="/d.md", text=text, marks=mark_headings(text))
    assert [p.text.split("\n")[0] for p in PassageSplitter(minilm, 128).split(marked)] == ["# One", "# Two"]


def test_a_passage_does_not_end_within_a_quotation_if_a_paragraph_ends_near(minilm: Tokenizer) -> None:
    speech = f"“{(SENTENCE * 8).strip()}”"
    text = f"{SENTENCE * 4}\n\n{speech}\n\n{SENTENCE * 4}"
    passages = PassageSplitter(minilm, 128).split(document(text))
    check(minilm, text, passages, 128)
    assert [p.text.count("“") - p.text.count("”") for p in passages] == [0] * len(passages)
    straight = text.replace("“", '"').replace("”", '"')
    assert [p.start for p in PassageSplitter(minilm, 128).split(document(straight))] == [p.start for p in passages]


def test_a_quotation_that_is_never_closed_does_no_harm(minilm: Tokenizer) -> None:
    text = f'"{SENTENCE * 300}'
    passages = PassageSplitter(minilm, 128).split(document(text))
    check(minilm, text, passages, 128)
    assert all(passage.text.endswith(".") for passage in passages)


def test_a_short_text_is_one_passage(minilm: Tokenizer) -> None:
    (passage,) = PassageSplitter(minilm, 512).split(document("  One.\n\nTwo.\n", "A title"))
    assert (passage.start, passage.end, passage.text, passage.title) == (2, 12, "One.\n\nTwo.", "A title")
    assert passage.content == "A title\nOne.\n\nTwo."
    assert passage.document == "/d.txt"


@pytest.mark.parametrize("text", ["", " \n\t\n ", "\n" * 1000])
def test_white_space_makes_no_passage(text: str, minilm: Tokenizer) -> None:
    assert PassageSplitter(minilm, 64).split(document(text)) == []


def test_paragraphs_and_headings_are_preferred(minilm: Tokenizer) -> None:
    paragraph = "One two three four five. Six seven eight nine ten."
    text = f"{paragraph}\n\n{paragraph}\n\n# Head\n\n{paragraph}"
    passages = PassageSplitter(minilm, 34).split(document(text))
    assert [p.text for p in passages] == [f"{paragraph}\n\n{paragraph}", f"# Head\n\n{paragraph}"]


@pytest.mark.parametrize(
    ("sentence", "end"),
    [
        ("他说：「你好吗？」", "」"),
        ("これは日本語の文です。", "。"),
        ("ذهب الرجل إلى المدينة في الليل. ", "."),
        ("“He came,” she said. ", "."),
        ("He said “Come in.” ", "”"),
        ("Mr. Smith saw Dr. J. Brown in St. Albans! ", "!"),
    ],
)
def test_sentences_of_many_scripts_are_kept_whole(sentence: str, end: str, minilm: Tokenizer) -> None:
    text = sentence * 100
    passages = PassageSplitter(minilm, 64).split(document(text))
    check(minilm, text, passages, 64)
    assert len(passages) > 5
    assert all(passage.text.startswith(sentence.strip()[:3]) and passage.text.endswith(end) for passage in passages)


def test_thai_is_cut_at_its_spaces(minilm: Tokenizer) -> None:
    text = "สวัสดีครับผมชื่อสมชาย ยินดีที่ได้รู้จัก " * 100
    passages = PassageSplitter(minilm, 64).split(document(text))
    check(minilm, text, passages, 64)
    assert all(text[passage.end] == " " for passage in passages)


def test_a_hard_cut_keeps_accents_with_their_letters(minilm: Tokenizer) -> None:
    text = "e\u0301" * 3000
    passages = PassageSplitter(minilm, 64).split(document(text))
    check(minilm, text, passages, 64)
    assert all(passage.text.startswith("e") for passage in passages)


def test_overlap_repeats_whole_sentences_and_no_more_than_asked(minilm: Tokenizer) -> None:
    text = " ".join(f"Sentence {n} says that it is here." for n in range(300))
    passages = PassageSplitter(minilm, 102, 30).split(document(text))
    check(minilm, text, passages, 102, 30)
    for left, right in itertools.pairwise(passages):
        shared = text[right.start : left.end]
        assert shared.startswith("Sentence")
        assert shared.endswith("here.")
        assert 0 < tokens(minilm, shared) - 2 <= 30


@pytest.mark.parametrize("title", ["word " * 5000, "x" * 100_000, "Mr. Title"])
def test_a_title_is_counted_and_shortened_where_it_is_too_long(title: str, minilm: Tokenizer) -> None:
    text = "The rain fell on the town. " * 200
    passages = PassageSplitter(minilm, 64).split(document(text, title))
    check(minilm, text, passages, 64)
    assert {p.title for p in passages} == {passages[0].title}
    assert title.startswith(passages[0].title)
    assert passages[0].title


def test_ids_derive_from_content(minilm: Tokenizer) -> None:
    text = "The rain fell on the town. " * 200
    splitter = PassageSplitter(minilm, 64)
    first = splitter.split(document(text))
    assert first == splitter.split(document(text))
    other_passages = splitter.split(Document(id="/other.txt", text=text))
    assert not {p.id for p in first} & {p.id for p in other_passages}
    assert all(p.id.startswith("p-") for p in first)


def test_truncation_and_padding_do_not_count_and_stay_as_they_are(
    package_tokenizer: Tokenizer, minilm: Tokenizer
) -> None:
    before = package_tokenizer.to_str()
    text = "word " * 2000
    assert PassageSplitter(package_tokenizer, 512).split(document(text)) == PassageSplitter(minilm, 512).split(
        document(text)
    )
    assert package_tokenizer.to_str() == before


LETTERS = "".join(random.Random(0).choices(string.ascii_letters, k=300_000))
BASE64 = "".join(random.Random(0).choices(string.ascii_letters + string.digits + "+/", k=300_000))


@pytest.mark.parametrize(
    "text",
    [
        "x" * 300_000,
        LETTERS,
        BASE64,
        "ab3,xyzq," * 33_000,
        "." * 300_000,
        "漢字" * 50_000,
        '."' * 100_000,
        "a" + " " * 300_000,
    ],
    ids=["x", "letters", "base64", "commas", "dots", "cjk", "quotes", "spaces"],
)
def test_one_long_line_is_bounded_too(text: str, minilm: Tokenizer) -> None:
    passages = PassageSplitter(minilm, 512).split(document(text))
    check(minilm, text, passages, 512)


def test_passages_come_while_a_long_text_is_still_being_cut(minilm: Tokenizer) -> None:
    text = "The rain fell on the town. " * 100_000
    first = next(PassageSplitter(minilm, 512).stream(document(text)))
    assert first.position == 0
    assert first.end < 5000


def test_a_novel(minilm: Tokenizer) -> None:
    if not NOVEL.exists():
        pytest.skip("../shared/data is absent")
    text = NOVEL.read_text(encoding="utf-8-sig")
    passages = PassageSplitter(minilm, 512).split(document(text, "The Gods of Mars"))
    check(minilm, text, passages, 512)
    assert len(passages) < 260  # well filled
    assert sum(passage.text[-1] in ".!?\"'" for passage in passages) > 0.9 * len(passages)


@pytest.mark.parametrize(("size", "overlap"), [(10, 0), (0, 0), (64, 33), (64, -1)])
def test_impossible_sizes_are_refused(size: int, overlap: int, minilm: Tokenizer) -> None:
    with pytest.raises(UsageError, match="ask for"):
        PassageSplitter(minilm, size, overlap)


def test_half_surrogate_pairs_are_refused(minilm: Tokenizer) -> None:
    with pytest.raises(ReadingError, match="half a surrogate pair at character 2"):
        PassageSplitter(minilm, 64).split(document("ab\ud83d"))
