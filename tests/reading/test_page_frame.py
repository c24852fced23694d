from pathlib import Path

from tomewise.reading.web_pages import read_html

PAGE = """<html><head><title>Rain</title></head><body class="has-sidebar">
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


def read(path: Path, page: str) -> str:
    path.write_text(page)
    return read_html(path)[0].text


def test_navigation_and_notices_about_cookies_are_left_out(tmp_path: Path) -> None:
    for tag in ("main", "article"):
        text = read(tmp_path / "a.html", PAGE.format(text=f"<{tag}>{TEXT}</{tag}>"))
        assert not [words for words in FRAME if words in text]
        for words in ("Rain over the town", "seven days", "Cookies were baked", "recipe", "Soup of the day", "Anna"):
            assert words in text


def test_a_page_that_is_almost_only_frame_stays_whole(tmp_path: Path) -> None:
    listing = "".join(f"<li><a>Ship number {number} of the line</a></li>" for number in range(50))
    page = f"<body><div class='nav'><ul>{listing}</ul></div><p>Ships.</p></body>"
    assert "Ship number 49" in read(tmp_path / "a.html", page)
    assert "Home" in read(tmp_path / "b.html", "<nav><a>Home</a></nav>")
    assert read(tmp_path / "c.html", page.replace("<p>", "<main><p>").replace("</p>", "</main>")) == "Ships."


def test_the_title_of_the_page_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(PAGE.format(text=f"<main>{TEXT}</main>"))
    assert read_html(path)[0].title == "Rain"


def test_banners_and_bare_notices_about_cookies_are_left_out_and_recipes_stay(tmp_path: Path) -> None:
    frame = '<div class="cookie">We use cookies. Please accept.</div><div class="banner">Sale of ships</div>'
    rain = "<p>The rain fell for seven days, and the harbour was empty.</p>"
    hero = '<div class="hero banner"><h1>Rain</h1></div>'
    recipe = '<article><div class="cookie"><p>Bake the cookies for nine minutes.</p></div></article>'
    text = read(tmp_path / "a.html", f"<body>{frame}{hero}{rain}{recipe}</body>")
    assert "accept" not in text
    assert "Sale" not in text
    assert "# Rain" in text
    assert "nine minutes" in text
