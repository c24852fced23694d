"""What a robots.txt keeps from programs, as RFC 9309 says."""

import time

import pytest

from tomewise.reading.robots import is_allowed


@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        ("Disallow: /a", "/a/b", False),
        ("Disallow: /a", "/b", True),
        ("Disallow:", "/a", True),
        ("Allow: /\nDisallow: /a", "/a", False),
        ("Disallow: /\nAllow: /a", "/a/b", True),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Disallow: /*.pdf$", "/a/b.pdf", False),
        ("Disallow: /*.pdf$", "/a/b.pdf.html", True),
        ("Disallow: /*.pdf", "/a/b.pdf.html", False),
        ("Disallow: /a$", "/a", False),
        ("Disallow: /a$", "/ab", True),
        ("Disallow: /*/c*d", "/a/b/c/x/d/e", False),
        ("Disallow: /ab*ba$", "/aba", True),
        ("Disallow: *?id=", "/a?id=1", False),
        ("Disallow: /caf%c3%a9", "/café", False),
        ("Disallow: /%7Eada", "/~ada", False),
        ("Disallow: /a%2Fb", "/a/b", True),
        ("disallow : /a # the rest is free", "/a", False),
    ],
)
def test_the_longest_rule_that_fits_wins(lines: str, path: str, allowed: bool) -> None:
    assert is_allowed(f"User-agent: *\n{lines}\n".encode(), "tomewise", path) is allowed


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
def test_the_groups_that_name_the_program_count(robots: str, allowed: bool) -> None:
    assert is_allowed(robots.encode(), "tomewise", "/a") is allowed


def test_many_wildcards_take_no_time() -> None:
    started = time.perf_counter()
    assert is_allowed(b"User-agent: *\n" + b"Disallow: /" + b"a*" * 200_000 + b"b$", "tomewise", "/" + "a" * 50_000)
    assert time.perf_counter() - started < 2
