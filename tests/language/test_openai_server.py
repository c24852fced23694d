"""The model server of the tests leaves no socket open, however slowly its loop turns."""

from __future__ import annotations

import gc
import socket
import time
from urllib.parse import urlsplit

import pytest
from tests.language.openai_server import OpenAIServer, reply_with


@pytest.mark.parametrize("stalls", [[0.02], [0.03, 0.03], []])
def test_a_connection_that_is_just_being_accepted_is_closed(stalls: list[float]) -> None:
    with OpenAIServer(lambda request: reply_with("")) as server:
        address = urlsplit(server.url)
        for seconds in stalls:
            server._loop.call_soon_threadsafe(time.sleep, seconds)
        client = socket.create_connection((address.hostname, address.port))
    client.close()
    del server
    gc.collect()  # an open socket would warn here, and warnings are errors
