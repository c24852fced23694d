"""The endpoints, over HTTP, in a process of their own."""

from __future__ import annotations

import json
import re

from tests import bridges
from tests.server.served import Served, serve

from tomewise.tome.tome import Tome

QUESTION = "Who put out the light?"


def events_of(text: str) -> list[tuple[str, dict]]:
    return [(name, json.loads(data)) for name, data in re.findall(r"event: (.*)\ndata: (.*)\n", text)]


def test_health_info_and_openapi(served: Served):
    assert served.http.get("/api/health", headers={"authorization": ""}).json() == {"ok": True}
    info = served.http.get("/api/info").json()
    assert info["model"] == "extractive"
    assert {"naive", "comorag"} <= {system["name"] for system in info["systems"]}
    paths = served.http.get("/openapi.json").json()["paths"]
    assert {"/api/tomes/{tome}/ask", "/api/jobs/{id}/events", "/v1/chat/completions"} <= set(paths)


def test_a_tome_and_its_documents(served: Served):
    shown = served.http.get("/api/tomes/novel").json()
    assert (shown["tome"], shown["embedder"]) == ("novel", "hash")
    assert "hybrid" in shown["ready"]
    assert "comorag" not in shown["ready"]
    page = served.http.get("/api/tomes/novel/documents", params={"limit": 1}).json()
    assert ([record["id"] for record in page["documents"]], page["next"]) == (["letter"], "letter")
    following = served.http.get("/api/tomes/novel/documents", params={"after": page["next"]}).json()
    assert "light" in [record["id"] for record in following["documents"]]
    piece = served.http.get("/api/tomes/novel/text", params={"document": "light", "start": 0, "end": 9}).json()
    passage = piece["passages"][0]["id"]
    assert piece == {
        "document": "light",
        "title": "",
        "start": 0,
        "end": 9,
        "characters": 72,
        "text": "Ada Marsh",
        "passages": [{"id": passage, "position": 0, "start": 0, "end": 72, "place": {}}],
    }
    document = served.http.get("/api/tomes/novel/document", params={"document": "light"}).json()
    assert document["passages"][0]["text"].startswith("Ada Marsh")


def test_a_part_of_a_text_counts_characters(served: Served):
    text = "Émile 🕯 blew it out. " * 6000
    job = served.post("/api/tomes/novel/documents", {"id": "émile", "text": text}).json()
    assert served.wait_for_job(job["id"], seconds=60)["state"] == "done"
    url = "/api/tomes/novel/text"
    for start, end in ((0, 7), (6, 8), (99_990, 100_010), (len(text) - 3, len(text) + 9), (9, 3)):
        part = served.http.get(url, params={"document": "émile", "start": start, "end": end}).json()
        assert (part["text"], part["characters"]) == (text[start:end], len(text))
        assert part["end"] == start + len(part["text"])
    assert len(served.http.get(url, params={"document": "émile"}).json()["text"]) == 100_000


def test_a_request_without_a_system_takes_the_one_of_the_settings(here):
    from tests.server.conftest import make_tome

    make_tome(here / "novel.tome")
    with serve(here, "novel.tome", TOMEWISE_SYSTEM="raptor") as own:
        assert own.post("/api/tomes/novel/estimate", {}).json()["system"] == "raptor"
        assert own.post("/api/tomes/novel/ask", {"question": QUESTION}).status_code == 409  # it is not built
        assert own.post("/api/tomes/novel/ask", {"question": QUESTION, "system": "naive"}).status_code == 200
        assert own.post("/api/tomes/novel/search", {"query": QUESTION}).status_code == 409
        accepted = {"accept": {"calls": 1000}}
        assert own.post("/api/tomes/novel/builds", accepted).json()["system"] == "raptor"


def test_a_question_gives_what_the_command_prints(command, here):
    from tests.server.conftest import make_tome

    make_tome(here / "novel.tome")
    printed = json.loads(command("ask", QUESTION, "-m", "novel.tome", "--json").out)
    with serve(here, "novel.tome") as own:
        answer = own.post("/api/tomes/novel/ask", {"question": QUESTION}).json()
    assert answer.pop("trace") >= 1
    for reply in (printed, answer):
        reply.pop("usage")
    assert answer == printed
    assert answer["text"].startswith("Ada Marsh put out the light at nine.")


def test_a_stream_of_events_ends_with_the_answer(served: Served):
    body = {"question": QUESTION, "system": "naive"}
    reply = served.http.post("/api/tomes/novel/ask", json=body, headers={"accept": "text/event-stream"})
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = events_of(reply.text)
    assert [name for name, _ in events] == ["started", "retrieved", "usage", "answer"]
    assert events[1][1]["detail"]["evidence"]
    assert events[-1][1]["text"].startswith("Ada Marsh put out the light at nine.")


def test_a_search_and_an_estimate(served: Served):
    found = served.post("/api/tomes/novel/search", {"query": "the forged letter", "limit": 1}).json()["evidence"]
    assert found[0]["sources"][0]["document"] == "letter"
    costs = served.post("/api/tomes/novel/estimate", {"system": "cogitorag"}).json()
    assert costs["total"]["calls"] >= 1


def test_a_search_and_a_trace_say_which_rewritten_question_brought_a_piece(here):
    (here / "lib").mkdir()
    with Tome.open(here / "lib" / "lands.tome", embedder="hash") as tome:
        tome.add(*bridges.DOCUMENTS)
    with serve(here, "--root", "lib") as running:
        found = running.post("/api/tomes/lands/search", {"query": bridges.QUESTION}).json()["evidence"]
        number = running.post("/api/tomes/lands/ask", {"question": bridges.QUESTION}).json()["trace"]
        events = running.http.get(f"/api/tomes/lands/traces/{number}").json()["events"]
    shown = next(event["detail"]["evidence"] for event in events if event["name"] == "retrieved")
    for pieces in (found, shown):
        expected = {"text": bridges.REWRITE, "name": "finland", "source": "Signmark"}
        assert bridges.find_rewrite(pieces) == expected


def test_traces_are_listed_shown_and_deleted(served: Served):
    number = served.post("/api/tomes/novel/ask", {"question": "Who forged the letter?"}).json()["trace"]
    listed = served.http.get("/api/tomes/novel/traces").json()["traces"]
    assert (listed[0]["id"], listed[0]["question"]) == (number, "Who forged the letter?")
    assert served.http.get(f"/api/tomes/novel/traces/{number}").json()["events"]
    assert served.http.delete(f"/api/tomes/novel/traces/{number}").json() == {"deleted": number}
    assert served.http.get(f"/api/tomes/novel/traces/{number}").status_code == 404


def test_the_evidence_of_a_trace_leads_into_the_documents(served: Served):
    number = served.post("/api/tomes/novel/ask", {"question": "Who forged the letter?"}).json()["trace"]
    pieces = served.http.get(f"/api/tomes/novel/traces/{number}").json()["events"][0]["detail"]["evidence"]
    evidence = served.http.get(f"/api/tomes/novel/traces/{number}/evidence").json()["evidence"]
    assert evidence.keys() == {piece["id"] for piece in pieces}
    for piece in evidence.values():
        span = {"document": piece["document"], "start": piece["start"], "end": piece["end"]}
        assert served.http.get("/api/tomes/novel/text", params=span).json()["text"] == piece["text"]
    assert served.http.get("/api/tomes/novel/traces/999/evidence").status_code == 404


def test_a_new_tome_takes_documents_and_answers(served: Served):
    assert served.post("/api/tomes", {"name": "fresh", "embedder": "hash"}).status_code == 201
    assert served.post("/api/tomes", {"name": "fresh"}).status_code == 400
    job = served.post("/api/tomes/fresh/documents", {"id": "d1", "text": "Tom Reed built the boat."}).json()
    assert served.wait_for_job(job["id"])["state"] == "done"
    answer = served.post("/api/tomes/fresh/ask", {"question": "Who built the boat?"}).json()
    assert answer["citations"][0]["document"] == "d1"


def test_files_are_added_under_their_names(served: Served):
    files = [
        ("files", ("notes/one.md", b"# One\n\nThe widow kept the coin.")),
        ("files", ("../x.txt", b"The smith sold the horse.")),
        ("files", ("/etc/x", b"The miller bought the horse.")),
        ("files", ("bad.pdf", b"no PDF at all")),
    ]
    reply = served.http.post("/api/tomes/novel/documents", files=files)
    assert reply.status_code == 202
    job = served.wait_for_job(reply.json()["id"])
    assert job["state"] == "done"
    assert sorted(job["report"]["added"]) == ["../x.txt", "notes/one.md", "x"]
    assert list(job["report"]["failed"]) == ["bad.pdf"]
    assert (
        served.http.get("/api/tomes/novel/text", params={"document": "../x.txt"}).json()["text"].startswith("The smith")
    )
    removed = served.http.delete("/api/tomes/novel/document", params={"document": "/etc/x"}).json()
    assert removed["document"] == "x"


def test_a_build_goes_on_only_if_its_costs_are_accepted(served: Served):
    refused = served.post("/api/tomes/novel/builds", {"system": "cogitorag", "accept": {"calls": 0, "cost": 0}})
    assert refused.status_code == 409
    calls = refused.json()["estimate"]["total"]["calls"]
    assert f'send "accept": {{"calls": {calls}, "cost": 0.0}}' in refused.json()["error"]["message"]
    accepted = served.post("/api/tomes/novel/builds", {"system": "cogitorag", "accept": {"calls": calls, "cost": 1.0}})
    assert accepted.status_code == 202
    followed = events_of(served.http.get(f"/api/jobs/{accepted.json()['id']}/events").text)
    assert [name for name, _ in followed][-1] == "job"
    assert followed[-1][1]["state"] == "done"
    assert followed[-1][1]["report"]["layers"][0]["added"] >= 1
    assert "cogitorag" in served.http.get("/api/tomes/novel").json()["ready"]
    assert served.http.get("/api/jobs").json()["jobs"][0]["id"] == accepted.json()["id"]


def test_a_build_of_a_free_model_goes_on_within_no_dollars(served: Served):
    accept = {"calls": 1000, "cost": 0}
    job = served.post("/api/tomes/novel/builds", {"system": "cogitorag", "accept": accept}).json()
    assert served.wait_for_job(job["id"])["state"] == "done"


def test_lists_come_in_pages(served: Served):
    url = "/api/tomes/novel"
    numbers = [served.post(f"{url}/ask", {"question": QUESTION, "session": f"p{n}"}).json()["trace"] for n in range(3)]
    page = served.http.get(f"{url}/traces", params={"limit": 2}).json()
    assert ([row["id"] for row in page["traces"]], page["next"]) == (numbers[:0:-1], numbers[1])
    following = served.http.get(f"{url}/traces", params={"limit": 1, "before": page["next"]}).json()
    assert [row["id"] for row in following["traces"]] == numbers[:1]
    names = served.http.get(f"{url}/sessions", params={"after": "p0", "limit": 1}).json()
    assert ([row["name"] for row in names["sessions"]], names["next"]) == (["p1"], "p1")
    assert served.http.get("/api/evaluations").json() == {"evaluations": [], "total": 0}
    assert served.http.head("/api/health").status_code == 200
