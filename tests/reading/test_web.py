from time import thread_time

import pytest

from tomewise.errors import ReadingError
from tomewise.reading.web_pages import convert_html, find_charset

PAGE = """<?xml version="1.0"?><!DOCTYPE html><html><head><meta charset="utf-8"><title> The
 <b>Town</b> </title><style>p { color: red }</style><script>var hidden = 1;</script></head>
<body><!-- a comment --><h1>Head</h1><p>One &amp; <em>two</em>.</p><p>See <a href="http://x.y/z">this</a>.
<img src="data:image/png;base64,AAAA" alt="x"></p><ul><li>first</li><li>second</li></ul><h2>Sub</h2>
<p>snake_case * star</p><script>more()</script><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
</body></html>"""


def test_a_page_keeps_its_words_and_their_order() -> None:
    title, text = convert_html(PAGE, "it")
    assert title.startswith("The")
    assert "Town" in title
    assert text.startswith("# Head\n\nOne & *two*.\n\nSee this.")
    assert "- first\n- second" in text
    assert "## Sub\n\nsnake_case * star" in text
    assert "| 1 | 2 |" in text
    for dropped in ("hidden", "color", "comment", "x.y", "base64", "more()", "\n\n\n"):
        assert dropped not in text


def test_a_page_without_closing_tags_or_title() -> None:
    assert convert_html("<head><meta name=a><body><p>One<p>Two", "it") == ("", "One\n\nTwo")
    assert convert_html("a &amp; b.txt", "it") == ("", "a & b.txt")


def test_scripts_alone_are_no_text() -> None:
    assert convert_html("<script>f()</script>", "it") == ("", "")


@pytest.mark.parametrize("opening", ["<a ", "<!--", "<!-- > ", "</a", "<![CDATA[", "<?"])
def test_what_nothing_closes_is_text_and_takes_no_quadratic_time(opening: str) -> None:
    begun = thread_time()
    assert convert_html(opening * 15_000 + "end", "it")[1].endswith("end")
    assert thread_time() - begun < 5


def test_what_follows_a_comment_is_read() -> None:
    assert convert_html("<!-- a < b --><p>One</p> 1 < 2", "it")[1].split() == ["One", "1", "<", "2"]


def test_a_page_nested_too_deep_is_refused() -> None:
    with pytest.raises(ReadingError, match=r"^it is HTML but nested too deep: save it"):
        convert_html("<div>" * 20_000 + "x", "it")


def test_a_prolog_is_dropped_where_a_page_begins_alone() -> None:
    assert convert_html('\n<?xml version="1.0"?><p>One</p>', "it") == ("", "One")
    assert "no prolog" in convert_html("<pre>&lt;?xml no prolog?&gt;</pre>", "it")[1]


def test_a_page_full_of_blanks_takes_no_quadratic_time() -> None:
    blanks = " " * 200_000  # minutes, when looked at from each blank on
    assert (
        convert_html(f"{blanks}<p>One{blanks}two</p><pre>a{blanks}b</pre>", "it")[1].split()
        == "One two ``` a b ```".split()
    )


@pytest.mark.parametrize(
    ("raw", "charset"),
    [
        (b'<meta charset="ISO-8859-1">', "ISO-8859-1"),
        (b'<META http-equiv="Content-Type" content="text/html; charset=shift_jis">', "shift_jis"),
        (b'<?xml version="1.0" encoding="koi8-r"?><html>', "koi8-r"),
        (b"<p>charset=none</p>", None),
    ],
)
def test_a_declared_charset(raw: bytes, charset: str | None) -> None:
    assert find_charset(raw) == charset


def test_a_cell_of_a_billion_columns_counts_as_one() -> None:
    html = "<table><tr><td colspan={}>rain</td><td>wind</td></tr></table>"
    assert "| rain | | wind |" in convert_html(html.format(2), "it")[1]
    assert convert_html(html.format(10**9), "it") == convert_html(html.format(1), "it")
