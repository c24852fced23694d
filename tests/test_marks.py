"""Marks in the text of an answer, one rendering in every door; and what Markdown does no harm comes back unchanged."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from tomewise.server.mcp_results import AnswerResult
from tomewise.server.openai_api import Draft, write_answer
from tomewise.terminal.render import print_answer
from tomewise.types import Answer, Evidence, Quote, Source, Statement, Support
from tomewise.types.proof import cut_text, escape_markdown, write_marked

TEXT = """## Ships

The **Orion** came at ten. It left in May.

- Ada put out the light.
- The tide turned.

| Ship | Captain |
|---|---|
| Orion | Ada Marsh |
| Vega | Ruth |

```
| log | 17. Ada wrote it. |
```"""
MARKED = """## Ships

The **Orion** came at ten. [1][2] It left in May. [contradicted by 3]

- Ada put out the light. [2]
- The tide turned. [unsupported]

| Ship | Captain |
|---|---|
| Orion | Ada Marsh [1] |
| Vega | Ruth [unsupported] |

```
| log | 17. Ada wrote it. |
```"""


def quote(number: int, text: str = "", **more: Any) -> Quote:
    text = text or f"Words {number}."
    where = {"document": "/d/log.txt", "passage": f"p{number}", "position": number, "start": 0, "end": len(text)}
    return Quote(**where, text=text, **more)


ONE, TWO, THREE = quote(1), quote(2), quote(3)
PROOFS: list[tuple[str, Support, tuple[Quote, ...]]] = [
    ("The **Orion** came at ten.", "quoted", (ONE, TWO)),
    ("It left in May.", "contradicted", (THREE,)),
    ("Ada put out the light.", "inferred", (TWO,)),
    ("The tide turned.", "none", ()),
    ("| Orion | Ada Marsh |", "quoted", (ONE,)),
    ("| Vega | Ruth |", "none", ()),
]


def make_answer(text: str = TEXT, proofs: Any = PROOFS, **more: Any) -> Answer:
    statements = [
        Statement(text=words, start=text.index(words), end=text.index(words) + len(words), support=support, quotes=own)
        for words, support, own in proofs
    ]
    return Answer(**{"text": text, "statements": tuple(statements), "claimed": "full", **more})


def show(answer: Answer, **console: Any) -> str:
    out = io.StringIO()
    print_answer(answer, Console(file=out, width=500, highlight=False, **console))
    return out.getvalue()


def chat(answer: Answer, sent: str = "") -> tuple[str, list[str]]:
    """What a chat client shows, and the words that its annotations span."""
    reply = write_answer(answer, "novel", "http://here", sent)
    whole = sent + reply["content"]
    spans = [each["url_citation"] for each in reply["annotations"]]
    return whole, [whole[span["start_index"] : span["end_index"]] for span in spans]


DOORS = {
    "print": str,
    "markdown": lambda answer: answer.to_markdown().replace("[^", "["),
    "terminal": show,
    "mcp": lambda answer: AnswerResult(answer=answer).write(),
    "chat": lambda answer: chat(answer)[0],
}


@pytest.mark.parametrize("door", ["print", "terminal", "mcp", "chat"])
def test_a_mark_stands_behind_its_statement_in_every_door(door: str):
    assert DOORS[door](make_answer()).startswith(MARKED)


def test_the_pieces_joined_are_the_text():
    assert "".join(piece.text for piece in cut_text(make_answer())) == TEXT


def test_a_statement_whose_offsets_moved_is_found_by_its_words():
    moved = make_answer(text="At 😀: " + TEXT)
    assert write_marked(Answer(text=TEXT, statements=moved.statements)) == MARKED


def test_marks_whose_statements_are_gone_stand_at_the_end():
    answer = Answer(text="It came", statements=make_answer().statements, claimed="full")
    assert write_marked(answer) == "It came [1][2] [contradicted by 3] [2] [unsupported] [1]"


@pytest.mark.parametrize(
    ("support", "quotes", "claimed", "marked"),
    [
        ("quoted", (ONE, TWO), "full", "Ada [1][2]"),
        ("none", (), "full", "Ada [unsupported]"),
        ("none", (ONE,), "none", "Ada [1] [unsupported]"),
        ("none", (ONE,), "full", "Ada [1] [unsupported]"),
        ("contradicted", (ONE,), "full", "Ada [contradicted by 1]"),
    ],
)
def test_the_only_statement_is_marked_as_any_other(support, quotes, claimed, marked):
    answer = make_answer("Ada", [("Ada", support, quotes)], claimed=claimed)
    assert write_marked(answer) == marked


def test_three_hundred_items_are_shown_and_marked_in_every_door():
    items = [f"Item number {number}." for number in range(300)]
    answer = make_answer("\n".join(f"- {item}" for item in items), [(item, "quoted", (ONE,)) for item in items])
    for write in (str, show, lambda each: chat(each)[0], lambda each: AnswerResult(answer=each).write()):
        assert all(f"- {item} [1]" in write(answer) for item in items[::37])
        assert write(answer).count(" [1]\n") >= 299


# ---------------------------------------------------------------- single doors


def test_a_terminal_shows_tables_and_lists_and_what_nothing_supports_in_yellow():
    shown = show(make_answer(), force_terminal=True)
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert re.search(r"^ Ship +Captain *$", plain, re.MULTILINE)
    assert re.search(r"^ Orion +Ada Marsh \[1\] *$", plain, re.MULTILINE)
    assert "| log | 17. Ada wrote it. |" in plain  # as code is
    assert plain.count("|") == 3
    assert "\x1b[33mThe tide turned." in shown
    assert "\x1b[33m Ruth" in shown
    assert "\x1b[1mAda put out the light." in shown
    long = make_answer("- " + "word " * 30 + "end.", [])
    out = io.StringIO()
    print_answer(long, Console(file=out, width=60, force_terminal=True))
    lines = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).splitlines()
    assert lines[0].startswith("-  word")
    assert lines[1].startswith("   word")


def test_a_notebook_shows_lists_and_tables_with_marks_and_no_html_of_a_model():
    answer = make_answer(f"{TEXT}\n<script>x()</script> ![p](http://evil.example/p.png)")
    html = answer._repr_html_()
    assert "<td>Ada Marsh [1]</td>" in html
    assert "<li>The tide turned. [unsupported]</li>" in html
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("<mark>Words 1.</mark>") == 1  # the quotation of two statements has one number


def test_a_chat_annotates_each_mark():
    _, spans = chat(make_answer())
    assert spans == ["[1]", "[2]", "[contradicted by 3]", "[2]", "[1]"]


def test_a_chat_annotates_the_numbers_of_quotations_without_a_mark():
    answer = make_answer("It came.", [("It came.", "quoted", (ONE, TWO))], only_quotes=True)
    text, spans = chat(answer)
    assert spans == ["[1]", "[2]"]
    assert "\n\n[1] “Words 1.” (log.txt, part 2)" in text


REMARKS: dict[str, Any] = {
    "The answer is unfinished: the window is full.": {"unfinished": "the window is full"},
    "Not shown: 1 statement without support.": {"withheld": 1},
    "A guess: no evidence supports it.": {"claimed": "none"},
    "The model would have declined; it was forced to answer.": {"forced": True},
    "Dropped: 2 quotations of the model, found in no passage.": {"dropped_quotes": 2},
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("remark", REMARKS)
def test_a_remark_stands_in_every_door(door: str, remark: str):
    answer = make_answer(**REMARKS[remark])
    assert remark in DOORS[door](answer)
    assert remark in answer.to_dict()["remarks"]


@pytest.mark.parametrize("door", ["mcp", "chat", "print", "markdown", "terminal"])
def test_a_declined_answer_says_what_it_withholds(door: str):
    declined = Answer(text="", resolved=False, withheld=2)
    assert "Not shown: 2 statements without support." in DOORS[door](declined)


@pytest.mark.parametrize("door", ["print", "mcp", "chat"])
def test_a_mark_makes_no_link_of_what_follows(door: str):
    text = "彼は来た。(http://evil.example/x)彼女は行った。"
    answer = make_answer(text, [("彼は来た。", "none", ())])
    assert "[unsupported] (http://evil" in DOORS[door](answer)


def test_a_mark_of_code_stands_behind_its_fence():
    assert write_marked(make_answer("```\nx\n```", [("```\nx\n```", "none", ())])) == "```\nx\n```\n[unsupported]"


def test_a_terminal_shows_every_cell():
    out = io.StringIO()
    print_answer(
        make_answer("| one | two \\|", []), Console(file=out, width=60, force_terminal=True, color_system=None)
    )
    assert re.search(r"one +two \\\|", out.getvalue())


def test_mcp_numbers_its_quotations():
    assert re.search(r'passage="p3"[^>]* number="3"', AnswerResult(answer=make_answer()).write())


# ---------------------------------------------------------------- a chat that streams


def stream(text: str, step: int = 5) -> tuple[str, Draft]:
    draft = Draft()
    return "".join(draft.take(text[at : at + step], replace=False) for at in range(0, len(text), step)), draft


def test_sentences_are_sent_while_they_are_written_and_their_marks_below():
    sent, draft = stream(TEXT)
    assert sent == draft.sent == TEXT.partition("\n\n```")[0]
    whole, spans = chat(make_answer(), sent)
    assert whole.startswith(f"{TEXT}\n\n")
    for line in ("“It left in May.” [contradicted by 3]", "“The tide turned.” [unsupported]", "[3] “Words 3.”"):
        assert f"\n\n{line}" in whole
    assert spans[0] == "The **Orion** came at ten."
    assert spans[-1] == "| Orion | Ada Marsh"


def test_the_last_sentence_has_its_mark_in_place_when_streamed():
    proofs = [("It came.", "quoted", (ONE,)), ("It left.", "quoted", (TWO,))]
    sent, _ = stream("It came. It left.")
    assert sent == "It came."
    assert chat(make_answer("It came. It left.", proofs), sent)[0].startswith("It came. [1] It left. [2]\n\n[1]")


def test_what_may_do_harm_is_not_sent_before_all_is_known():
    sent, _ = stream("One came. Two came. See ![a. Three](http://evil.example/p.png) came. Four left.")
    assert sent == "One came. Two came."


def test_a_draft_that_is_written_again_sends_nothing_twice():
    draft = Draft()
    assert draft.take("One came. Two ", replace=False) == "One came."
    assert draft.take("", replace=True) == ""
    assert draft.take("One came. Two came. Three", replace=False) == " Two came."


def test_a_chat_streams_on_behind_a_paragraph_with_code_and_links():
    text = "Use `tome add` or [x](https://e.example).\n\nIt came. It`s [late]. It left.\n\n<b>It</b> came. It sank."
    answer = make_answer(text, [("It sank.", "none", ())])
    sent, _ = stream(text)
    assert sent == text.partition("\n\n<b>")[0]
    assert chat(answer, sent)[0].startswith(f"{sent}\n\n&lt;b>It&lt;/b> came. It sank. [unsupported]\n\n")


def test_another_answer_than_the_one_that_was_sent_is_said_to_be_one():
    whole, _ = chat(make_answer("Nobody came.", [("Nobody came.", "quoted", (ONE,))]), "One came.")
    assert whole.startswith("One came.\n\nThe model began anew:\n\nNobody came. [1]\n\n")


# ---------------------------------------------------------------- Markdown


class Found(HTMLParser):
    """The tags and addresses of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src")]

    def handle_comment(self, data: str) -> None:
        self.tags.add("!--")


WORDS = st.sampled_from([
    "Ada", "**bold**", "*it*", "snake_case", "2 * 3", "a < b", "c > d", "[x]", "x[0]", "Wow!", "`<b> ![p](q)`",
    "~~no~~", "[link](https://e.example/a_b)", "<https://e.example>", "&", "C:\\dir", "“q”", "# 3", "(see)", "5 %",
])  # fmt: skip
LINES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
MORE = st.lists(LINES, min_size=1, max_size=3)
BLOCKS = st.one_of(
    LINES,
    LINES.map(lambda line: f"## {line}"),
    LINES.map(lambda line: f"> {line}"),
    MORE.map(lambda lines: "\n".join(f"* {line}" for line in lines)),
    MORE.map(lambda rows: "\n".join(["| a |", "|---|", *(f"| {row} |" for row in rows)])),
    LINES.map(lambda line: f"```html\n<b>{line.replace('`', '')}</b>\n```"),
)  # fmt: skip
HARMLESS = st.lists(BLOCKS, min_size=1, max_size=4).map("\n\n".join)
SIGNS = st.sampled_from([
    "a", "b c", " ", "\n", "\n\n", "*", "_", "`", "``", "[", "]", "(", ")", "!", "![", "](", "<b>", "<", "</p>", "<!--",
    "-->", ">", "> ", "- ", "|", "\n|---|\n", "\\", "[x]: ", "http://e/p.png", "javascript:x", "<img src=x>", "    ",
    "```\n", "~~~\n", "<a@b.c>", "&lt;", "[^1]", "[^1]: ",
])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(HARMLESS)
def test_text_without_harm_comes_back_unchanged_through_every_door(text: str):
    assert escape_markdown(text) == text
    answer = Answer(text=text, claimed="full")
    for door in ("print", "terminal", "mcp", "chat"):
        assert text in DOORS[door](answer), door
    whole, draft = stream(text)
    assert chat(answer, whole)[0].startswith(text)
    assert text.startswith(draft.sent)
    marked = Answer(text=text, claimed="full", statements=(Statement(text=text, support="quoted", quotes=(ONE,)),))
    assert marked.to_markdown().replace(" [^1]", "").replace("\n[^1]\n", "").startswith(text.rstrip("| "))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(SIGNS, st.sampled_from(["Ada came. ", "彼は来た。"])), max_size=20).map("".join),
    st.integers(1, 9),
)
def test_what_was_sent_is_the_beginning_of_the_whole(text: str, step: int):
    sent, _ = stream(text, step)
    assert escape_markdown(text).startswith(sent)
    assert "began anew" not in chat(Answer(text=text, claimed="full"), sent)[0]


SUPPORTS = st.sampled_from(["none", "contradicted", "quoted"])


@settings(max_examples=400, deadline=None)
@given(st.lists(SIGNS, max_size=14).map("".join), st.integers(0, 14), st.integers(0, 40), SUPPORTS)
def test_no_text_brings_a_picture_a_tag_or_a_link_elsewhere(text: str, start: int, length: int, support: Support):
    words = text[start : start + length]
    statement = Statement(
        text=words, start=start, end=start + len(words), support=support, quotes=(quote(1, text + "x"),)
    )
    answer = Answer(text=text, statements=(statement, statement), claimed="full")
    for shown in (escape_markdown(text), answer.to_markdown(), chat(answer)[0], chat(answer, stream(text)[0])[0]):
        for parser in (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table")):
            parser.validateLink = lambda url: True  # type: ignore[method-assign]
            found = Found(parser.render(shown))
            assert not found.tags & {"img", "b", "!--", "script"}, shown
            assert all(address.startswith("http") for address in found.addresses), shown
    assert not Found(answer._repr_html_()).tags & {"img", "b", "!--"}


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("**a** ![x](http://e.example) <b>", r"**a** \![x](http://e.example) &lt;b>"),
        ("`<b>` and <b>", "`<b>` and &lt;b>"),
        ("[run](javascript:x) **now**", r"[run]\(javascript:x) **now**"),
        ("[x]: http://e.example\n\n*see* [x]", "[x]\\: http://e.example\n\n*see* [x]"),
        ("a claim [^1]", r"a claim \[^1]"),
        ("[" * 99 + "x](javascript:y)", r"\[" * 99 + r"x\](javascript:y)"),
    ],
)
def test_only_what_does_harm_is_escaped(text: str, escaped: str):
    assert escape_markdown(text) == escaped


def test_a_copy_has_footnotes_and_a_bibliography():
    origin = Source(document="/d/log.txt", passage="p1", position=1)
    metadata = {"author": ["Ada Marsh", "T. Reed"], "date": "1911-05-02"}
    evidence = Evidence(id="p1", layer="passages", text="x", score=1.0, origins=(origin,), metadata=metadata)
    text = make_answer("It came.", [("It came.", "quoted", (ONE, TWO))], evidence=(evidence,)).to_markdown()
    assert text == (
        "It came. [^1][^2]\n\n- Ada Marsh, T. Reed. log.txt. 1911\n\n"
        "[^1]: In log.txt, part 2: “Words 1.”\n\n[^2]: In log.txt, part 3: “Words 2.”"
    )


def test_a_copy_of_a_declined_question_says_so():
    assert Answer(text="", resolved=False, missing="the year").to_markdown() == (
        "The memory does not hold the answer: the year."
    )
