"""What a robots.txt keeps from programs, as RFC 9309 says."""

import pytest

from tomewise.reading.fetching import is_allowed


@pytest.mark.parametrize(
    ("lines", "allowed_paths", "kept_paths"),
    [
        ("Disallow: /a", ["/b"], ["/a/b"]),
        ("Disallow:", ["/a"], []),
        ("Allow: /\nDisallow: /a", [], ["/a"]),
        ("Disallow: /\nAllow: /a", ["/a/b"], []),
        ("Disallow: /a\nAllow: /a", ["/a"], []),
        ("Disallow: /*.pdf$", ["/a/b.pdf.html"], ["/a/b.pdf"]),
        ("Disallow: /*.pdf", [], ["/a/b.pdf.html"]),
        ("Disallow: /a$", ["/ab"], ["/a"]),
        ("Disallow: /*/c*d", [], ["/a/b/c/x/d/e"]),
        ("Disallow: /ab*ba$", ["/aba"], []),
        ("Disallow: *?id=", [], ["/a?id=1"]),
        ("Disallow: /caf%c3%a9", [], ["/café"]),
        ("Disallow: /%7Eada", [], ["/~ada"]),
        ("Disallow: /a%2Fb", ["/a/b"], []),
        ("disallow : /a # the rest is free", [], ["/a"]),
    ],
)
def test_the_longest_rule_that_fits_wins(lines, allowed_paths, kept_paths):
    robots = f"User-agent: *\n{lines}\n".encode()
    paths = [*allowed_paths, *kept_paths]
    assert [path for path in paths if is_allowed(robots, "tomewise", path)] == allowed_paths


@pytest.mark.parametrize(
    ("robots", "allowed"),
    [
        ("\ufeffUser-agent: *\nDisallow: /", False),
        ("User-agent: tome\nDisallow: /", True),
        ("User-agent: tomewise-news\nDisallow: /", True),
        ("User-agent: TomeWise/2.0\nDisallow: /", False),
        ("User-agent: other\nUser-agent: tomewise\n\nDisallow: /", False),
        ("User-agent: tomewise\nAllow: /b\nUser-agent: *\nDisallow: /", True),
        ("User-agent: tomewise\nDisallow: /b\nUser-agent: x\nAllow: /\nUser-agent: tomewise\nDisallow: /a", False),
        ("Disallow: /", True),
        ("", True),
    ],
)
def test_the_groups_that_name_the_program_count(robots, allowed):
    assert is_allowed(robots.encode(), "tomewise", "/a") is allowed
