"""Tomes and folders from others name the server of an embedder: only this machine is asked without the user's word.

Nothing here connects to anything but loopback; addresses elsewhere are looked at, and asked for by no test.
"""

import socket
import sqlite3
from contextlib import closing

import pytest
from tests.test_addresses import answer_with

from tomewise.errors import StoreError, UsageError
from tomewise.tome.tome import Tome

ELSEWHERE = [
    *("http://134744072/v1", "http://0x08080808/v1", "http://01002004010/v1", "http://010.8.8.8/v1"),
    *("http://240.0.0.1/v1", "http://203.0.113.1/v1", "http://8.8.8.8/v1", "http://[::ffff:8.8.8.8]/v1"),
    *("http://192.168.1.5/v1", "http://10.1.2.3/v1", "http://[fd00::1]/v1", "http://0.0.0.0/v1"),
    *("http://ollama:11434/v1", "http://models.local/v1", "http://models.internal/v1", "http://trap.localhost/v1"),
    *("http://user@127.0.0.1/v1", "http://models.example\\@127.0.0.1/v1", "http://[::1%25lo]/v1"),
]
NEVER = ["http://169.254.169.254/v1", "http://0xA9FEA9FE/v1", "http://[fe80::1]/v1", "http://100.100.100.200/v1"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Names resolve to a public address, and nothing may be connected to."""
    resolve = socket.getaddrinfo

    def resolve_numbers(host, port, *args, **how):
        numeric = how.get("flags", 0) & socket.AI_NUMERICHOST
        return resolve(host, port, *args, **how) if numeric else answer_with("203.0.113.1")(host, port)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_numbers)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("something was connected to"))


@pytest.fixture
def make_received(here):
    """A tome whose table says where its embedder is."""
    path = here / "received.tome"
    with Tome.open(path, embedder="hash:3"):
        pass

    def name_address(address, embedder="openai:m@3"):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE meta SET value = ? WHERE key = 'embedder'", (embedder,))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('embedder_base_url', ?)", (address,))
        return path

    return name_address


@pytest.mark.parametrize("address", ELSEWHERE)
def test_a_server_elsewhere_is_not_asked_because_a_tome_names_it(make_received, address):
    path = make_received(address)
    with pytest.raises(StoreError, match="TOMEWISE_EMBEDDER_BASE_URL") as refused:
        Tome.open(path)
    assert address in str(refused.value) or "@" in address
    with pytest.raises(StoreError, match="TOMEWISE_EMBEDDER_BASE_URL"):
        Tome.open(path, embedder="openai:m@3")  # to name the embedder does not allow its address


@pytest.mark.parametrize("address", NEVER)
def test_link_local_and_metadata_are_never_asked(make_received, address):
    path = make_received(address)
    with pytest.raises(StoreError, match="never asked"):
        Tome.open(path)
    with pytest.raises(UsageError, match="never asked"):
        Tome.open(path, settings={"embedder_base_url": address})


def test_a_private_network_needs_the_word_of_the_user(make_received, command, here, monkeypatch):
    address = "http://192.168.1.5:11434/v1"
    make_received(address)
    words = ("show", "--tome", "received.tome", "--json")
    ran = command(*words)
    assert ran.code == 4
    assert ran.err.count("\n") == 1
    assert address in ran.err
    # A folder's file cannot give it.
    (here / "tomewise.toml").write_text(f'embedder_base_url = "{address}"')
    ran = command(*words)
    assert (ran.code, "sets embedder_base_url, and only you may do that" in ran.err) == (2, True)
    (here / "tomewise.toml").unlink()
    # The environment is, and the file of the user.
    monkeypatch.setenv("TOMEWISE_EMBEDDER_BASE_URL", address)
    assert command(*words).code == 0
    monkeypatch.delenv("TOMEWISE_EMBEDDER_BASE_URL")
    assert command("config", "set", "embedder_base_url", address).code == 0
    assert command(*words).code == 0


@pytest.mark.parametrize("name", ["mine:http://203.0.113.1/v1", "openai:http://203.0.113.1/v1"])
def test_an_address_in_the_name_of_an_embedder_is_not_taken_from_a_tome(make_received, here, command, name):
    path = make_received("http://127.0.0.1/v1", embedder=name)
    with pytest.raises(UsageError, match="names an address as its embedder"):
        Tome.open(path)
    (here / "tomewise.toml").write_text(f'embedder = "{name}"')
    assert "sets embedder, and only you may do that" in command("show").err
