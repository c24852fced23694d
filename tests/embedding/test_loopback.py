"""Requests that reach this machine alone. Every server here is on loopback; the rest is looked at and not connected."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from tests.test_addresses import answer_with, resolve_numbers_alone

from tomewise.embedding.loopback import is_loopback, make_loopback_transport
from tomewise.embedding.openai import OpenAIEmbedder
from tomewise.errors import ModelError, ModelUnavailable


@pytest.fixture
def server():
    """A server that sends each request on to an address of the test, and remembers who was asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            http.hosts.append(self.headers["Host"])
            self.send_response(307)
            self.send_header("Location", http.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.hosts, http.location = [], "/"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield http
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.mark.parametrize(
    "address",
    [
        *("http://user@127.0.0.1/v1", "http://u:p@localhost/v1", "http://127.0.0.1@models.example/v1"),
        *(
            "http://models.example\\@127.0.0.1/v1",
            "http://[::1%25lo]/v1",
            "http://[::1%lo]/v1",
            "http://[fe80::1%2]/v1",
        ),
        *("http://models.example/127.0.0.1", "http://[::1", "http://127.0.0.1:port/v1", "http:///v1", "127.0.0.1"),
        *("http://134744072/v1", "http://0x08080808/v1", "http://01002004010/v1", "http://[::ffff:8.8.8.8]/v1"),
    ],
)
def test_tricks_with_addresses(address):
    assert not is_loopback(address, resolve_numbers_alone)


def test_plain_ones_pass():
    for address in ("http://127.0.0.1:8000/v1", "http://[::1]/v1", "https://127.0.0.1/v1"):
        assert is_loopback(address)
    assert is_loopback("http://localhost./v1", answer_with("127.0.0.1"))


def test_an_answer_that_changes_after_the_check_has_no_effect(server, monkeypatch):
    """The first answer is loopback, each later one is not; nothing but what was checked is connected to."""
    answers = iter([["127.0.0.1"], ["203.0.113.1"]])
    connected = []
    connect = socket.create_connection

    def watch(address, *args, **options):
        connected.append(address[0])
        assert address[0] == "127.0.0.1", address
        return connect(address, *args, **options)

    monkeypatch.setattr(socket, "create_connection", watch)
    transport = make_loopback_transport(lambda host, port, **how: answer_with(*next(answers))(host, port, **how))
    with httpx2.Client(transport=transport) as client:
        url = f"http://models.localhost:{server.server_port}/v1"
        assert client.post(url, content=b"x").status_code == 307
        with pytest.raises(httpx2.ConnectError, match=r"models\.localhost' is not on this machine"):
            client.post(url, content=b"x")
    assert connected == ["127.0.0.1"]
    assert server.hosts == [f"models.localhost:{server.server_port}"]


def test_the_next_address_is_tried(server):
    """`localhost` is often two addresses, and a server listens at one of them."""
    with httpx2.Client(transport=make_loopback_transport(answer_with("127.0.0.2", "127.0.0.1"))) as client:
        assert client.post(f"http://localhost:{server.server_port}/v1", content=b"x").status_code == 307


@pytest.mark.parametrize("location", ["http://203.0.113.1/v1/embeddings", "http://models.example/", "/elsewhere"])
def test_no_redirect_is_followed(server, location, monkeypatch):
    monkeypatch.setattr("tomewise.embedding.openai.RETRIES", 0)
    server.location = location
    embedder = OpenAIEmbedder("m", f"http://127.0.0.1:{server.server_port}/v1", dimensions=3, loopback_only=True)
    with pytest.raises(ModelError, match=r"307|[Rr]edirect"):
        embedder.embed(["a secret question"])
    embedder._client.close()
    assert len(server.hosts) == 1


def test_no_proxy_is_used(server, monkeypatch):
    monkeypatch.setattr("tomewise.embedding.openai.RETRIES", 0)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    embedder = OpenAIEmbedder("m", f"http://127.0.0.1:{server.server_port}/v1", dimensions=3, loopback_only=True)
    with pytest.raises(ModelError):
        embedder.embed(["a"])
    embedder._client.close()
    assert len(server.hosts) == 1


def test_an_embedder_that_may_ask_this_machine_alone_asks_nobody_else(monkeypatch):
    monkeypatch.setattr("tomewise.embedding.openai.RETRIES", 0)
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("something was connected to"))
    embedder = OpenAIEmbedder("m", "http://203.0.113.1/v1", dimensions=3, loopback_only=True)
    with pytest.raises(ModelUnavailable, match="is not on this machine"):
        embedder.embed(["a secret question"])
