import pytest

from tomewise.reading.web_pages import convert_html, find_charset

PAGE = """<?xml version="1.0"?><!DOCTYPE html><html><head><meta charset="utf-8"><title> The
 <b>Town</b> </title><style>p { color: red }</style><script>var hidden = 1;</script></head>
<body><!-- a comment --><h1>Head</h1><p>One &amp; <em>two</em>.</p><p>See <a href="http://x.y/z">this</a>.
<img src="data:image/png;base64,AAAA" alt="x"></p><ul><li>first</li><li>second</li></ul><h2>Sub</h2>
<p>snake_case * star</p><script>more()</script><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
</body></html>"""


def test_a_page_keeps_its_words_and_their_order():
    title, text, *_ = convert_html(PAGE, "it")
    assert title.startswith("The")
    assert "Town" in title
    assert text.startswith("# Head\n\nOne & *two*.\n\nSee this.")
    assert "- first\n- second" in text
    assert "## Sub\n\nsnake_case * star" in text
    assert "| 1 | 2 |" in text
    for dropped in ("hidden", "color", "comment", "x.y", "base64", "more()", "\n\n\n"):
        assert dropped not in text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<head><meta name=a><body><p>One<p>Two", "One\n\nTwo"),
        ("a &amp; b.txt", "a & b.txt"),
        ("<script>f()</script>", ""),
        ('\n<?xml version="1.0"?><p>One</p>', "One"),
        ("<!-- a < b --><p>One</p> 1 < 2", "One\n\n1 < 2"),
    ],
    ids=["no closing tags", "no tags", "scripts alone", "a prolog at the beginning", "behind a comment"],
)
def test_odd_pages(html, text):
    assert convert_html(html, "it")[:3] == ("", text, {})


@pytest.mark.parametrize(
    ("raw", "charset"),
    [
        (b'<meta charset="ISO-8859-1">', "ISO-8859-1"),
        (b'<META http-equiv="Content-Type" content="text/html; charset=shift_jis">', "shift_jis"),
        (b'<?xml version="1.0" encoding="koi8-r"?><html>', "koi8-r"),
        (b"<p>charset=none</p>", None),
    ],
)
def test_a_declared_charset(raw, charset):
    assert find_charset(raw) == charset


FRAMED = """<html><head><title>Rain</title></head><body class="has-sidebar">
<a class="skip-link" href="#m">Skip to text</a><header><h1>The Harbour Daily</h1><nav><a>Home</a></nav></header>
<div id="cookie-banner" role="dialog"><p>We use cookies. <button>Accept</button></p></div>
<div class="breadcrumb"><a>News</a> &gt; <a>Weather</a></div>
{text}
<div class="sidebar"><a href="1">Most read today</a> <a href="2">Old wind</a></div>
<div id="onetrust-consent-sdk">Manage consent</div><aside>Advice column</aside><footer>Imprint</footer></body></html>"""
TEXT = """<div class="article"><header><h2>Rain over the town</h2></header><p>The rain fell for seven days.</p>
<p>Cookies were baked all the same: see the <a href="x">recipe</a>.</p><div class="menu"><p>Soup of the day, fish and
bread with butter</p></div><footer>Written by Anna</footer></div>"""
FRAME = ("Harbour Daily", "Home", "We use", "Accept", "News", "Most read", "consent", "Imprint", "Skip", "Advice")
WORDS = ("Rain over the town", "seven days", "Cookies were baked", "recipe", "Soup of the day", "Anna")


@pytest.mark.parametrize("tag", ["main", "article"])
def test_navigation_and_notices_about_cookies_are_left_out(tag, read_document):
    document = read_document("a.html", FRAMED.format(text=f"<{tag}>{TEXT}</{tag}>"))
    assert document.title == "Rain"
    assert not [words for words in FRAME if words in document.text]
    assert not [words for words in WORDS if words not in document.text]


def test_a_page_that_is_almost_only_frame_stays_whole(read_document):
    listing = "".join(f"<li><a>Ship number {number} of the line</a></li>" for number in range(50))
    page = f"<body><div class='nav'><ul>{listing}</ul></div><p>Ships.</p></body>"
    assert "Ship number 49" in read_document("a.html", page).text
    assert "Home" in read_document("b.html", "<nav><a>Home</a></nav>").text
    with_main = page.replace("<p>", "<main><p>").replace("</p>", "</main>")
    assert read_document("c.html", with_main).text == "Ships."


@pytest.mark.parametrize("tag", "address details fieldset form header legend main option summary textarea".split())
def test_a_block_joins_no_words(tag):
    _, text, *_ = convert_html(f"<div>one<{tag}>two</{tag}>three</div>", "it")
    assert text.split() == ["one", "two", "three"]
