"""A memory that grows from the command: `tome add` and `tome build --system cam` after each batch."""

from __future__ import annotations

import json

TOPICS = ("the tide and the harbour pilot", "a ledger of grain and barley", "the school bell and the teacher")


def write_batch(folder, numbers):
    lines = [{"id": f"d{n}", "text": f"{TOPICS[n % 3]} on day {n % 5}, note {n}."} for n in numbers]
    path = folder / f"batch{numbers[0]}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def show(command):
    return json.loads(command("show", "--json").out)


def test_batches_grow_one_memory(command, here):
    assert command("add", write_batch(here, range(60))).code == 0
    first = json.loads(command("build", "--system", "cam", "--json").out)
    whole = first["usage"]["calls"]
    network = show(command)["networks"]["schemata"]
    assert network["passages"] == 60
    assert network["clusters"]
    assert command("add", write_batch(here, range(60, 63))).code == 0
    second = json.loads(command("build", "--system", "cam", "--json").out)
    assert 0 < second["usage"]["calls"] < whole
    grown = show(command)["networks"]["schemata"]
    assert grown["passages"] == 63
    assert json.loads(command("build", "--system", "cam", "--json").out)["usage"]["calls"] == 0
    assert command("remove", "d0").code == 0
    assert command("build", "--system", "cam").code == 0
    assert show(command)["networks"]["schemata"]["passages"] == 62
    words = " ".join(command("show").out.split())
    assert "schemata: alpha 0.7, sigma 1, k 10; 62 passages, 1 in no cluster; clusters by level" in words
    assert "summaries older than their members; the last build asked for" in words
    assert command("ask", "Who keeps the ledger of grain?", "--system", "cam").code == 0
    assert command("search", "the tide", "--system", "cam").code == 0
