"""Pages that are named by their addresses. Every server here is on loopback, which the guard of the test allows."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.reading.documents import pdf
from tests.test_addresses import answer_with

from tomewise.addresses import find_public
from tomewise.errors import ReadingError
from tomewise.reading import read
from tomewise.reading.bounds import Bounds
from tomewise.reading.fetching import fetch
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

    server = Site(("127.0.0.1", 0), Handler)
    server.replies, server.asked = {"/page": (200, {"Content-Type": "text/html"}, PAGE)}, []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    hosts = {"site.example": ("127.0.0.1",), "inside.example": ()}
    monkeypatch.setattr(read, "fetch", partial(fetch, find=lambda host: hosts.get(host, ())))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def tome(here: Path) -> Iterator[Tome]:
    with Tome.open(here / "a.tome", embedder="hash") as opened:
        yield opened


def test_a_page_is_read_under_its_address(site: Site, tome: Tome) -> None:
    address = f"{site.address}/page#part"
    assert tome.add(address, metadata={"topic": "rain"}).added == (address,)
    document = tome.document(address)
    assert (document.text, document.title, document.source) == ("The rain fell on the harbour.", "Rain", address)
    assert document.metadata == {"language": "en", "topic": "rain"}
    assert site.asked == [(f"site.example:{site.server_port}", path) for path in ("/robots.txt", "/page")]
    assert tome.add(address).unchanged == (address,)
    site.replies["/page"] = (200, {"Content-Type": "text/html"}, PAGE.replace(b"rain fell", b"wind rose"))
    assert tome.add(address).replaced == (address,)
    assert tome.search("wind", where=["topic=rain"])
    assert tome.remove(address).documents == (address,)


@pytest.mark.parametrize(
    ("headers", "body", "words"),
    [
        ({"Content-Type": "application/pdf"}, pdf("The rain fell."), "The rain fell."),
        ({"Content-Type": "text/plain; charset=iso-8859-1"}, "Größe".encode("latin-1"), "Größe"),
        ({"Content-Type": "text/html; charset=koi8-r"}, "<p>дождь</p>".encode("koi8-r"), "дождь"),
        ({"Content-Type": "text/html", "Content-Encoding": "gzip"}, gzip.compress(PAGE), "The rain fell"),
        ({"Content-Type": "application/octet-stream"}, b"The rain fell.", "The rain fell."),
        ({}, b'{"text": "The rain fell."}', "The rain fell."),
    ],
)
def test_the_type_that_the_server_states_counts(
    headers: dict[str, str], body: bytes, words: str, site: Site, tome: Tome
) -> None:
    name = "/a.md" if headers else "/a.jsonl"
    site.replies[name] = (200, headers, body)
    (added,) = tome.add(site.address + name).added
    assert words in tome.document(added).text


def test_redirects_are_followed_within_bounds_and_checked_each_time(site: Site, tome: Tome) -> None:
    def send_to(target: str) -> Reply:
        return 302, {"Location": target}, b""

    for number in range(4):
        site.replies[f"/{number}"] = send_to(f"/{number + 1}")
    site.replies["/4"] = send_to("page")
    tome.add(f"{site.address}/0")
    assert [record.id for record in tome.documents()] == [f"{site.address}/0"]
    site.replies["/round"] = send_to("/round")
    with pytest.raises(ReadingError, match="redirects more than 5 times"):
        tome.add(f"{site.address}/round")
    asked = len(site.asked)
    for target in (
        "http://inside.example/",
        f"http://127.0.0.1:{site.server_port}/page",
        "http://metadata/",
        "file:///etc/passwd",
    ):
        site.replies["/in"] = send_to(target)
        with pytest.raises(ReadingError, match=r"not a public address|begins with http"):
            tome.add(f"{site.address}/in")
    assert {path for _, path in site.asked[asked:]} == {"/robots.txt", "/in"}


def test_robots_are_respected(site: Site, tome: Tome) -> None:
    site.replies["/robots.txt"] = (
        200,
        {},
        b"User-agent: *\nDisallow: /private\n\nUser-agent: tomewise\nDisallow: /not-us\n",
    )
    for path in ("/not-us", "/private"):
        site.replies[path] = site.replies["/page"]
    with pytest.raises(ReadingError, match=r"/robots\.txt keeps programs from it"):
        tome.add(f"{site.address}/not-us")
    assert tome.add(f"{site.address}/private").added, "the lines for this program count, and not those for all"
    site.replies["/moved"] = (301, {"Location": "/not-us"}, b"")
    with pytest.raises(ReadingError, match="keeps programs from it"):
        tome.add(f"{site.address}/moved")
    site.replies["/robots.txt"] = (503, {}, b"")
    with pytest.raises(ReadingError, match=r"robots\.txt answers 503"):
        tome.add(f"{site.address}/page")
    assert "/not-us" not in {path for _, path in site.asked}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ((404, {}, b""), "the server answers 404"),
        ((200, {"Content-Type": "image/png"}, b"x"), "is of the type 'image/png', which is not read"),
        ((200, {"Content-Type": "text/html"}, b""), "/a is empty"),
        ((200, {"Content-Type": "text/html"}, b"x" * 5_000), "holds more than 1,000 characters"),
        (
            (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, gzip.compress(b"x" * 9_999)),
            "more than 1,000",
        ),
        ((200, {"Content-Type": "application/pdf"}, b"no pdf"), "/a could not be converted"),
        ((200, {"Content-Length": "9"}, b"x"), "could not be fetched"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_address(reply: Reply, reason: str, site: Site, here: Path) -> None:
    site.replies["/a"] = reply
    with Tome.open(here / "a.tome", embedder="hash", read_characters=1_000) as tome:
        with pytest.raises(ReadingError) as caught:
            tome.add(f"{site.address}/a")
        assert reason in str(caught.value)
        assert site.address in str(caught.value)
        assert "page." not in str(caught.value), "it names the copy of the page"


def test_a_server_that_never_ends_is_left(site: Site) -> None:
    site.replies["/a"] = (200, {"Content-Type": "text/html", "Content-Length": "99"}, b"x")
    fetching = fetch(f"{site.address}/a", Bounds(seconds=0.5), lambda _: ("127.0.0.1",))
    with pytest.raises(ReadingError, match=r"could not be fetched|took longer"), fetching:
        pass


@pytest.mark.parametrize("slow", ["headers", "body", "robots"])
def test_a_server_that_gives_a_byte_at_a_time_is_left_in_time(slow: str) -> None:
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if slow != "robots" and self.path == "/robots.txt":
                self.send_error(404)
                return
            head = (
                b"HTTP/1.0 200 OK\r\n" if slow == "headers" else b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"
            )
            with suppress(OSError):
                self.wfile.write(head)
                while not ended.wait(0.05):
                    self.wfile.write(b"x")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        started = time.monotonic()
        address = f"http://site.example:{server.server_port}/a"
        try:
            fetching = fetch(address, Bounds(seconds=0.5), lambda _: ("127.0.0.1",))
            with pytest.raises(ReadingError, match=r"took longer than 0\.5 seconds"), fetching:
                pass
            assert time.monotonic() - started < 5
        finally:
            ended.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "rot13", "no-such"])
def test_only_encodings_of_texts_count(charset: str, site: Site, tome: Tome) -> None:
    body = f"<p>Größe{'a' * 100_000}</p>".encode()
    site.replies["/a"] = (200, {"Content-Type": f"text/html; charset={charset}"}, body)
    (added,) = tome.add(f"{site.address}/a").added
    assert tome.document(added).text.startswith("Größe")


@pytest.mark.parametrize(
    "address",
    [
        "http://user:word@site.example/",
        "http://[::1/",
        "http://site.example:port/",
        "http://",
        "https:///x",
        "http:// a/",
    ],
)
def test_an_address_that_is_none_is_named(address: str, site: Site, tome: Tome) -> None:
    with pytest.raises(ReadingError):
        tome.add(address)
    assert site.asked == []


@pytest.mark.parametrize("address", ["ftp://site.example/a", "file:///etc/passwd", "gopher://x"])
def test_other_addresses_are_refused(address: str, tome: Tome) -> None:
    with pytest.raises(ReadingError, match="an address of another kind"):
        tome.add(address)


@pytest.mark.parametrize(
    "number",
    [
        *(
            "127.0.0.1",
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
        ),
        *("192.0.0.8", "198.18.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff0e::1"),
        *("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:db8::1", "::ffff:0:a00:1"),
    ],
)
def test_what_is_inside_a_network_is_not_public(number: str) -> None:
    assert find_public("site.example", answer_with(number)) == ()
    assert find_public("site.example", answer_with("8.8.8.8", number)) == ()


def test_public_addresses_are() -> None:
    for number in ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"):
        assert find_public("site.example", answer_with(number)) == (number,)


def test_without_the_guard_of_the_tests_a_server_on_this_machine_is_not_asked(
    site: Site, tome: Tome, monkeypatch
) -> None:
    monkeypatch.setattr(read, "fetch", fetch)
    for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"):
        with pytest.raises(ReadingError, match="not a public address"):
            tome.add(f"http://{host}:{site.server_port}/page")
    assert site.asked == []
