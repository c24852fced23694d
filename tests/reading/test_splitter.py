import itertools
import random
import string

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.places import find_sections, mark_headings
from tomewise.reading.splitter import PassageSplitter
from tomewise.types import Document, Passage


def count(tokenizer: Tokenizer, text: str) -> int:
    """What an embedder sees, special tokens included."""
    return len(tokenizer.encode(text).ids)


def split(
    tokenizer: Tokenizer, text: str, size: int, overlap: int = 0, *, title: str = "", marked: bool = False
) -> list[Passage]:
    """The passages of a text, after what holds of all passages was checked; `marked` is with marks of its headings."""
    document = Document(id="/d.txt", text=text, title=title, marks=mark_headings(text) if marked else ())
    passages = list(PassageSplitter(tokenizer, size, overlap).split(document))
    covers = [0] * len(text)
    for position, passage in enumerate(passages):
        assert passage.position == position
        assert passage.text == text[passage.start : passage.end] == passage.text.strip() != ""
        assert count(tokenizer, passage.content) <= size
        assert passage.end - passage.start <= 8 * size
        for index in range(passage.start, passage.end):
            covers[index] += 1
    assert not [index for index, times in enumerate(covers) if not times and not text[index].isspace()]
    assert overlap or max(covers, default=0) <= 1
    assert [p.start for p in passages] == sorted({p.start for p in passages})
    assert [p.end for p in passages] == sorted({p.end for p in passages})
    assert len({p.id for p in passages}) == len(passages)
    return passages


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


@pytest.fixture(params=["minilm", "unigram", "byte_level"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return request.getfixturevalue(request.param)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, title=st.one_of(st.just(""), st.text(max_size=30)), overlap=st.sampled_from([0, 0, 10]))
@example(text="a\x0cb " * 200, title="", overlap=0)
@example(text="a b c d e f g h\n\n\u200b\n\n" * 20, title="", overlap=0)
@example(text="000000" + " " * 289 + "The rain fell. 00000000000", title="", overlap=10)
@example(text="[SEP]a[MASK] b" * 50, title="[CLS]", overlap=0)
def test_any_text_is_covered_by_passages_that_fit(tokenizer, text, title, overlap):
    split(tokenizer, text, 40, overlap, title=title)


def test_prose_ends_at_sentences(tokenizer):
    text = " ".join(f"The man number {n} came to the town in the night. What did he want?" for n in range(200))
    passages = split(tokenizer, text, 128)
    assert all(passage.text[-1] in ".?" for passage in passages)
    assert all(count(tokenizer, passage.text) > 64 for passage in passages[:-1])


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


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=MARKDOWN, overlap=st.sampled_from([0, 0, 10]))
def test_no_passage_of_any_marked_text_goes_on_across_a_heading(tokenizer, text, overlap):
    passages = split(tokenizer, text, 40, overlap, marked=True)
    sections = find_sections(Document(id="/d.txt", text=text, marks=mark_headings(text)))
    assert not [(p, start) for p in passages for start in sections if p.start < start < p.end]


SENTENCE = "The rain fell on the town in the night. "


def test_a_heading_begins_a_passage_even_if_there_is_room(minilm):
    text = f"# Book\n\n## One\n\n{SENTENCE}\n\n## Two\n{SENTENCE * 20}\n\n### Three\n\n{SENTENCE}\n\n## Last\n"
    passages = split(minilm, text, 128, marked=True)
    heads = [(p.text.split("\n")[0], p.place.chapter) for p in passages if p.text.startswith("#")]
    assert heads == [("# Book", ("Book", "One")), ("## Two", ("Book", "Two")), ("### Three", ("Book", "Two", "Three"))]
    assert passages[-1].text.endswith("## Last")


def test_a_scrap_joins_the_passage_before_it_or_gets_a_part_of_it(minilm):
    fits = "\n\n".join([(SENTENCE * 3).strip()] * 4 + ["Then he left."])  # a paragraph has 30 tokens
    assert [p.text for p in split(minilm, fits, 130)] == [fits]
    passages = split(minilm, fits, 122)
    assert [p.text.count("\n\n") for p in passages] == [2, 1]
    assert min(count(minilm, p.text) for p in passages) > 0.15 * 122


def test_a_passage_does_not_end_within_a_quotation_if_a_paragraph_ends_near(minilm):
    text = f"{SENTENCE * 4}\n\n“{(SENTENCE * 8).strip()}”\n\n{SENTENCE * 4}"
    passages = split(minilm, text, 128)
    assert [p.text.count("“") - p.text.count("”") for p in passages] == [0] * len(passages)
    straight = text.replace("“", '"').replace("”", '"')
    assert [p.start for p in split(minilm, straight, 128)] == [p.start for p in passages]


def test_a_quotation_that_is_never_closed_does_no_harm(minilm):
    assert all(passage.text.endswith(".") for passage in split(minilm, f'"{SENTENCE * 300}', 128))


def test_paragraphs_and_headings_are_preferred(minilm):
    paragraph = "One two three four five. Six seven eight nine ten."
    passages = split(minilm, f"{paragraph}\n\n{paragraph}\n\n# Head\n\n{paragraph}", 34)
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
def test_sentences_of_many_scripts_are_kept_whole(sentence, end, minilm):
    passages = split(minilm, sentence * 100, 64)
    assert len(passages) > 5
    assert all(passage.text.startswith(sentence.strip()[:3]) and passage.text.endswith(end) for passage in passages)


def test_thai_is_cut_at_its_spaces_and_a_hard_cut_keeps_accents_with_their_letters(minilm):
    text = "สวัสดีครับผมชื่อสมชาย ยินดีที่ได้รู้จัก " * 100
    assert all(text[passage.end] == " " for passage in split(minilm, text, 64))
    assert all(passage.text.startswith("e") for passage in split(minilm, "e\u0301" * 3000, 64))


def test_overlap_repeats_whole_sentences_and_no_more_than_asked(minilm):
    text = " ".join(f"Sentence {n} says that it is here." for n in range(300))
    for left, right in itertools.pairwise(split(minilm, text, 102, 30)):
        shared = text[right.start : left.end]
        assert shared.startswith("Sentence")
        assert shared.endswith("here.")
        assert 0 < count(minilm, shared) - 2 <= 30


@pytest.mark.parametrize("title", ["word " * 5000, "x" * 100_000, "Mr. Title"])
def test_a_title_is_counted_and_shortened_where_it_is_too_long(title, minilm):
    (shortened,) = {passage.title for passage in split(minilm, RAIN, 64, title=title)}
    assert title.startswith(shortened)
    assert shortened


RAIN = "The rain fell on the town. " * 200


def test_truncation_and_padding_do_not_count_and_stay_as_they_are(package_tokenizer, minilm):
    before = package_tokenizer.to_str()
    document = Document(id="/d.txt", text="word " * 2000)
    passages = list(PassageSplitter(package_tokenizer, 512).split(document))
    assert passages == list(PassageSplitter(minilm, 512).split(document))
    assert package_tokenizer.to_str() == before


BASE64 = "".join(random.Random(0).choices(string.ascii_letters + string.digits + "+/", k=100_000))
LINES = {
    "x": "x" * 100_000,
    "base64": BASE64,
    "cjk": "漢字" * 30_000,
    "quotes": '."' * 50_000,
    "spaces": "a" + " " * 100_000,
}


@pytest.mark.parametrize("line", LINES)
def test_one_long_line_is_bounded_too(line, minilm):
    split(minilm, LINES[line], 512)


def test_passages_come_while_a_long_text_is_still_being_cut(minilm):
    document = Document(id="/d.txt", text="The rain fell on the town. " * 100_000)
    first = next(PassageSplitter(minilm, 512).split(document))
    assert first.position == 0
    assert first.end < 5000


@pytest.mark.parametrize(("size", "overlap"), [(10, 0), (0, 0), (64, 33), (64, -1)])
def test_impossible_sizes_are_refused(size, overlap, minilm):
    with pytest.raises(UsageError, match="ask for"):
        PassageSplitter(minilm, size, overlap)


def test_half_surrogate_pairs_are_refused(minilm):
    with pytest.raises(ReadingError, match="half a surrogate pair at character 2"):
        split(minilm, "ab\ud83d", 64)
