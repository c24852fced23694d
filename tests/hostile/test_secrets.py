"""Keys and passwords stand in no message, so that none is printed, stored or exported."""

import json
import time

import pytest
from tests.language.openai_server import GOOD, Behaviour, OpenAIServer, fail_with, fuse, in_turn

from tomewise.credentials import HIDDEN, hide_credentials, remember_credentials
from tomewise.embedding.openai import OpenAIEmbedder
from tomewise.errors import ModelError, ModelUnavailable, TomewiseError, UsageError
from tomewise.language.chat import ChatModel
from tomewise.language.retry import Backoff
from tomewise.settings import read_key
from tomewise.tome.tome import Tome

KEY = "sk-proj-abcdefghijklmnop1234567890"
PLAIN_KEY = "correct+horse+battery"  # in no form that is known


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("cannot reach https://ada:p4ss:w@rd@host.example/v1", "w@rd"),
        ("cannot reach https://t0ken@host.example/v1", "t0ken"),
        ("ada:hunter22@host.example:8080 is not the address", "hunter22"),
        (f"Incorrect API key provided: {KEY}.", KEY),
        ("Incorrect API key provided: abc123xyz. Find yours", "abc123xyz"),
        ("{'Authorization': 'Bearer abc.def-123'}", "abc.def-123"),
        ("Authorization: Basic YWRhOmh1bnRlcg==", "YWRhOmh1bnRlcg"),
        ("GET /v1?key=AbC123&alt=json failed", "AbC123"),
        ("GET /v1?a=1&access_token=AbC123 failed", "AbC123"),
        ("GET /v1?api_key=AbC123", "AbC123"),
        ('{"x-api-key": "AbC123"}', "AbC123"),
        ("api-key=AbC123", "AbC123"),
        ("the password: AbC123", "AbC123"),
        ('{"password": "AbC123"}', "AbC123"),
        ("used AIzaSyA1234567890abcdefghijklmnopqrs", "AIzaSy"),
        ("gsk_1234567890abcdef", "gsk_1234"),
        ("token eyJhbGciOiJI.eyJzdWIiOiIx.sig", "eyJzdWIi"),
    ],
)
def test_what_gives_access_is_hidden(text, secret):
    assert secret not in hide_credentials(text)
    assert HIDDEN in hide_credentials(text)
    assert secret not in str(TomewiseError(text))


@pytest.mark.parametrize(
    "text",
    [
        "no key for openai:gpt-4o: set OPENAI_API_KEY, or name a server with a base URL",
        "openai:gpt-4o-mini at http://127.0.0.1:8080/v1 keeps failing: status 500: out of memory",
        "the token limit: 4096; ask-about-something-else-2024 was the task-identifier-of-the-day",
        "a bearer of bad news; basic training; write to ada@host.example",
        "/home/ada/notes: 3 documents",
        "no document '/etc/passwd': list_documents lists them",
        "12:30 at https://host.example/a@b",
    ],
)
def test_what_gives_no_access_stays(text):
    assert hide_credentials(text) == text


def test_a_known_key_is_hidden_in_any_form(monkeypatch):
    remember_credentials(PLAIN_KEY, "https://ada:s%40ve+me!@host.example/v1")
    monkeypatch.setenv("SOME_API_KEY", "tr0ub4dor")
    assert read_key("SOME_API_KEY") == "tr0ub4dor"
    hidden = hide_credentials(f"{PLAIN_KEY} correct%2Bhorse%2Bbattery s@ve+me! s%40ve+me! tr0ub4dor")
    assert hidden == " ".join([HIDDEN] * 5)


def hold_no_secret(*texts):
    assert [secret for secret in (PLAIN_KEY, KEY, "hunter22") if any(secret in text for text in texts)] == []


def name_user(server):
    """The address of the server with a name and a password."""
    return server.url.replace("http://", "http://ada:hunter22@")


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_a_key_that_a_server_echoes_is_in_no_error(here, status):
    with OpenAIServer(lambda _: fail_with(status, f"the key '{PLAIN_KEY}' and {KEY} will not do")) as server:
        model = ChatModel("openai:test", base_url=name_user(server), api_key=PLAIN_KEY, backoff=Backoff(retries=0))
        with pytest.raises(ModelError) as caught:
            await fuse(model)
        await model.close()
    hold_no_secret(str(caught.value))
    assert f"{HIDDEN}@127.0.0.1" in str(caught.value)


def test_no_secret_is_shown_exported_or_stored_and_none_is_in_a_traceback(here, command, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", PLAIN_KEY)
    (here / "a.txt").write_text("The keeper lit 7 lamps at nine.")
    command("add", "a.txt", "-m", "memory.tome")
    with OpenAIServer(lambda _: fail_with(400, f"the key {PLAIN_KEY} is odd")) as server:
        words = ("--model", "openai:test", "--base-url", name_user(server))
        built = command("build", "-s", "cogitorag", *words)
        server.handler = lambda _: fail_with(401, f"the key {PLAIN_KEY} is odd")
        asked = command("ask", "Who?", *words, "--debug")
    assert "failed for 1" in built.out
    assert asked.code == 6
    assert "Traceback" in asked.err
    shown = [command(*words).out for words in (("show",), ("show", "--json"), ("export",))]
    assert json.loads(shown[1])["failed"]
    stored = b"".join(path.read_bytes() for path in here.glob("memory.tome*") if path.is_file())
    hold_no_secret(built.out, built.err, asked.err, *shown, stored.decode("latin-1"))


def test_an_embedder_keeps_its_key_to_itself(here):
    with OpenAIServer(in_turn(GOOD)) as server:
        server.pages["/v1/embeddings"] = lambda _: Behaviour({"error": {"message": f"odd key {PLAIN_KEY}"}}, 401)
        embedder = OpenAIEmbedder("m", base_url=name_user(server), api_key=PLAIN_KEY, dimensions=4)
        with pytest.raises(ModelUnavailable, match="odd key") as caught:
            embedder.embed(["text"])
    hold_no_secret(str(caught.value))


@pytest.mark.parametrize(
    "address", ["host.example/v1", "http://", "http://a b/v1", "http://h:99999/v1", "ftp://a:secret1@h"]
)
def test_an_address_is_checked_before_anything_is_written(here, address):
    for given in ({"model": "openai:m", "base_url": address}, {"embedder_base_url": address}):
        with pytest.raises(UsageError, match="not the address") as caught:
            Tome.open(here / "new.tome", settings=given)
        assert "secret1" not in str(caught.value)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("piece", ["a.", "a:", "sk-", "bearer ", "x://", "key=", "api_key="])
def test_a_long_message_is_searched_in_linear_time(piece):
    begun = time.thread_time()
    hide_credentials(piece * (100_000 // len(piece)))
    assert time.thread_time() - begun < 5
