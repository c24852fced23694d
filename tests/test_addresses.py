"""Which hosts are this machine, and which are never asked. No name is resolved but by the resolver of the test."""

import socket

import pytest

from tomewise.addresses import find_loopback, is_never_asked
from tomewise.errors import UsageError
from tomewise.language.spec import check_address


def answer_with(*addresses: str):
    """A resolver that knows one answer."""

    def resolve(host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]

    return resolve


def resolve_numbers_alone(host, port, *, type, flags):
    """As a machine without a network: fails at each name that it is asked for."""
    assert flags & socket.AI_NUMERICHOST, f"{host} was to be resolved"
    return socket.getaddrinfo(host, port, type=type, flags=flags)


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("127.0.0.1", ("127.0.0.1",)),
        ("127.1.2.3", ("127.1.2.3",)),
        ("2130706433", ("127.0.0.1",)),
        ("0x7f.1", ("127.0.0.1",)),
        ("::1", ("::1",)),
        ("::ffff:127.0.0.1", ("::ffff:127.0.0.1",)),
    ],
)
def test_loopback_in_any_notation(host, addresses):
    assert find_loopback(host, resolve_numbers_alone) == addresses


@pytest.mark.parametrize(
    "host",
    [
        *("134744072", "0x08080808", "01002004010", "8.8.8.8", "010.8.8.8", "0xA9FEA9FE"),
        *("169.254.169.254", "240.0.0.1", "203.0.113.1", "0.0.0.0", "::", "192.168.1.5", "10.0.0.1", "fd00::1"),
        *("::ffff:8.8.8.8", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "fe80::1", "::2"),
        *("ollama", "models.local", "models.internal", "models.example", "localhost.example", "notlocalhost", ""),
        *("localhost..", "127.0.0.1.models.example", "a" * 300, "\udcff", "l\u00f6calhost"),
    ],
)
def test_all_else_is_elsewhere_and_no_name_is_resolved(host):
    assert find_loopback(host, resolve_numbers_alone) == ()


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LOCALHOST", "models.localhost", "a.b.localhost."])
def test_a_local_name_is_what_it_resolves_to(host):
    assert find_loopback(host, answer_with("::1", "127.0.0.1", "127.0.0.1")) == ("::1", "127.0.0.1")
    for elsewhere in ("203.0.113.1", "192.168.1.5", "169.254.169.254", "fe80::1%2", "::ffff:8.8.8.8"):
        assert find_loopback(host, answer_with("127.0.0.1", elsewhere)) == (), elsewhere
    assert find_loopback(host, answer_with()) == ()


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "169.254.170.2", "0xa9fea9fe", "2852039166", "::ffff:169.254.169.254", "fe80::1"),
        *("fd00:ec2::254", "100.100.100.200", "metadata.google.internal", "Metadata.Google.Internal."),
    ],
)
def test_link_local_and_metadata_are_never_asked(host):
    assert is_never_asked(host)
    address = f"http://[{host}]/v1" if ":" in host else f"http://{host}/v1"
    with pytest.raises(UsageError, match="never asked"):
        check_address(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "192.168.1.5", "fd00::1", "models.example", "ollama", "240.0.0.1", ""])
def test_others_may_be_asked_by_name(host):
    assert not is_never_asked(host)
