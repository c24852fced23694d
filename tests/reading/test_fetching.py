"""Pages that are named by their addresses. Every server here is on loopback, which the guard of the test allows."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.reading.documents import pdf
from tests.test_addresses import answer_with

from tomewise.addresses import find_public
from tomewise.errors import ReadingError
from tomewise.reading import fetching
from tomewise.reading.fetching import fetch
from tomewise.reading.process import Bounds
from tomewise.tome.tome import Tome

PAGE = b'<html lang="en"><title>Rain</title><nav>Home</nav><main><p>The rain fell on the harbour.</p></main></html>'
Reply = tuple[int, dict[str, str], bytes]


class Site(ThreadingHTTPServer):
    """A server with these replies by path, and what it was asked for."""

    replies: dict[str, Reply]
    asked: list[tuple[str, str]]

    @property
    def address(self) -> str:
        return f"http://site.example:{self.server_port}"


@contextmanager
def serve(server: ThreadingHTTPServer) -> Iterator[Any]:
    """Run a server in a thread."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        server: Site

        def do_GET(self) -> None:
            self.server.asked.append((self.headers["Host"], self.path))
            status, headers, body = self.server.replies.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    hosts = {"site.example": ("127.0.0.1",), "inside.example": ()}
    monkeypatch.setattr(fetching, "fetch", partial(fetch, find=lambda host: hosts.get(host, ())))
    with serve(Site(("127.0.0.1", 0), Handler)) as server:
        server.replies, server.asked = {"/page": (200, {"Content-Type": "text/html"}, PAGE)}, []
        yield server


def test_a_page_is_read_under_its_address(site: Site, tome: Tome) -> None:
    address = f"{site.address}/page#part"
    assert tome.add(address, metadata={"topic": "rain"}).added == (address,)
    document = tome.documents[address]
    assert (document.text, document.title, document.source) == ("The rain fell on the harbour.", "Rain", address)
    assert document.metadata == {"language": "en", "topic": "rain"}
    assert site.asked == [(f"site.example:{site.server_port}", path) for path in ("/robots.txt", "/page")]
    assert tome.add(address).unchanged == (address,)
    site.replies["/page"] = (200, {"Content-Type": "text/html"}, PAGE.replace(b"rain fell", b"wind rose"))
    assert tome.add(address).replaced == (address,)
    assert tome.within(where=["topic=rain"]).search("wind")
    assert tome.remove(address).documents == (address,)


@pytest.mark.parametrize(
    ("name", "stated", "body", "words"),
    [
        ("a.md", "application/pdf", pdf("The rain fell."), "The rain fell."),
        ("a.md", "text/plain; charset=iso-8859-1", "Größe".encode("latin-1"), "Größe"),
        ("a.md", "text/html; charset=koi8-r", "<p>дождь</p>".encode("koi8-r"), "дождь"),
        ("a.md", "application/octet-stream", b"The rain fell.", "The rain fell."),
        ("a.jsonl", "", b'{"text": "The rain fell."}', "The rain fell."),
        *(
            ("a", f"text/html; charset={charset}", f"<p>Größe{'a' * 100_000}</p>".encode(), "Größe")
            for charset in ("punycode", "idna", "unicode_escape", "rot13", "no-such")  # no encodings of texts
        ),
    ],
)
def test_the_type_that_the_server_states_counts(name, stated, body, words, site: Site, tome: Tome) -> None:
    site.replies[f"/{name}"] = (200, {"Content-Type": stated} if stated else {}, body)
    (added,) = tome.add(f"{site.address}/{name}").added
    assert words in tome.documents[added].text


def send_to(target: str) -> Reply:
    return 302, {"Location": target}, b""


def test_redirects_are_followed_within_bounds(site: Site, tome: Tome) -> None:
    for number in range(4):
        site.replies[f"/{number}"] = send_to(f"/{number + 1}")
    site.replies["/4"] = send_to("page")
    site.replies["/page"] = (200, SQUEEZED, gzip.compress(PAGE))
    tome.add(f"{site.address}/0")
    assert "The rain fell" in tome.documents[f"{site.address}/0"].text
    site.replies["/round"] = send_to("/round")
    with pytest.raises(ReadingError, match="redirects more than 5 times"):
        tome.add(f"{site.address}/round")


@pytest.mark.parametrize("target", ["http://inside.example/", "{own}/page", "http://metadata/", "file:///etc/passwd"])
def test_what_a_redirect_leads_to_is_checked_each_time(target: str, site: Site, tome: Tome) -> None:
    site.replies["/in"] = send_to(target.format(own=f"http://127.0.0.1:{site.server_port}"))
    with pytest.raises(ReadingError, match=r"not a public address|begins with http"):
        tome.add(f"{site.address}/in")
    assert {path for _, path in site.asked} == {"/robots.txt", "/in"}


def test_robots_are_respected(site: Site, tome: Tome) -> None:
    lines = b"User-agent: *\nDisallow: /private\n\nUser-agent: tomewise\nDisallow: /not-us\n"
    site.replies["/robots.txt"] = (200, {}, lines)
    site.replies["/not-us"] = site.replies["/private"] = site.replies["/page"]
    site.replies["/moved"] = send_to("/not-us")
    for path in ("/not-us", "/moved"):
        with pytest.raises(ReadingError, match=r"/robots\.txt keeps programs from it"):
            tome.add(f"{site.address}{path}")
    assert tome.add(f"{site.address}/private").added, "the lines for this program count, and not those for all"
    site.replies["/robots.txt"] = (503, {}, b"")
    with pytest.raises(ReadingError, match=r"robots\.txt answers 503"):
        tome.add(f"{site.address}/page")
    assert "/not-us" not in {path for _, path in site.asked}


HTML = {"Content-Type": "text/html"}
SQUEEZED = {**HTML, "Content-Encoding": "gzip"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ((404, {}, b""), "the server answers 404"),
        ((200, {"Content-Type": "image/png"}, b"x"), "is of the type 'image/png', which is not read"),
        ((200, HTML, b""), "/a is empty"),
        ((200, HTML, b"x" * 5_000), "holds more than 1,000 characters"),
        ((200, SQUEEZED, gzip.compress(b"x" * 9_999)), "more than 1,000"),
        ((200, {"Content-Type": "application/pdf"}, b"no pdf"), "/a could not be converted"),
        ((200, {"Content-Length": "9"}, b"x"), "could not be fetched"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_address(reply: Reply, reason: str, site: Site, here: Path) -> None:
    site.replies["/a"] = reply
    with Tome.open(here / "a.tome", embedder="hash", settings={"read_characters": 1_000}) as tome:
        with pytest.raises(ReadingError) as caught:
            tome.add(f"{site.address}/a")
        assert reason in str(caught.value)
        assert site.address in str(caught.value)
        assert "page." not in str(caught.value), "it names the copy of the page"


@pytest.mark.parametrize("slow", ["headers", "body", "robots"])
def test_a_server_that_gives_a_byte_at_a_time_is_left_in_time(slow: str) -> None:
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if slow != "robots" and self.path == "/robots.txt":
                self.send_error(404)
                return
            head = b"HTTP/1.0 200 OK\r\n" + (b"" if slow == "headers" else b"Content-Type: text/html\r\n\r\n")
            with suppress(OSError):
                self.wfile.write(head)
                while not ended.wait(0.05):
                    self.wfile.write(b"x")

        def log_message(self, *_: object) -> None:
            pass

    with serve(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        started = time.monotonic()
        fetching = fetch(f"http://site.example:{server.server_port}/a", Bounds(seconds=0.5), lambda _: ("127.0.0.1",))
        with pytest.raises(ReadingError, match=r"took longer than 0\.5 seconds"), fetching:
            pass
        assert time.monotonic() - started < 5
        ended.set()


NO_ADDRESSES = ("http://user:word@site.example/", "http://[::1/", "http://site.example:port/", "http://", "https:///x")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        *((address, None) for address in (*NO_ADDRESSES, "http:// a/")),
        *((address, "of another kind") for address in ("ftp://site.example/a", "file:///etc/passwd", "gopher://x")),
    ],
)
def test_an_address_that_is_none_is_named(address, message, site: Site, tome: Tome) -> None:
    with pytest.raises(ReadingError, match=message):
        tome.add(address)
    assert site.asked == []


INSIDE = (
    "127.0.0.1 10.0.0.1 192.168.1.1 172.16.0.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 192.0.0.8 198.18.0.1 "
    "255.255.255.255 ::1 :: fe80::1 fc00::1 fec0::1 ff0e::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1:: 2001:db8::1 "
    "::ffff:0:a00:1"
).split()


@pytest.mark.parametrize("number", INSIDE)
def test_what_is_inside_a_network_is_not_public(number: str) -> None:
    assert find_public("site.example", answer_with(number)) == ()
    assert find_public("site.example", answer_with("8.8.8.8", number)) == ()


@pytest.mark.parametrize("number", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_what_is_outside_is_public(number: str) -> None:
    assert find_public("site.example", answer_with(number)) == (number,)


def test_without_the_guard_of_the_tests_a_server_on_this_machine_is_not_asked(
    site: Site, tome: Tome, monkeypatch
) -> None:
    monkeypatch.setattr(fetching, "fetch", fetch)
    for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"):
        with pytest.raises(ReadingError, match="not a public address"):
            tome.add(f"http://{host}:{site.server_port}/page")
    assert site.asked == []
