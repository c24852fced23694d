"""Questions in a browser: how they are asked, grow, are stopped and asked again, and the sessions they belong to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.language.openai_server import OpenAIServer, stream_with
from tests.patience import SOON
from tests.server.served import Served
from tests.web.conftest import serve_library
from tests.web.pages import Visit, ask, expect, link, read_sent, wait_for_answers

QUESTION = "Who put out the light?"
UNKNOWN = "Why did Zebulon Quill sail to Lisbon?"
# Gives each byte of a stream in a chunk of its own, and returns what the turn showed after each of its changes.
ASK_BYTE_BY_BYTE = """async (text) => {
  const {startTurn} = await import("./assets/question.js");
  const bytes = new TextEncoder().encode(text);
  const real = globalThis.fetch;
  globalThis.fetch = async () => new Response(new ReadableStream({
    start(control) { for (const byte of bytes) control.enqueue(Uint8Array.of(byte)); control.close(); },
  }));
  const turn = {body: {question: "q"}};
  const drafts = [];
  await startTurn({redraw: () => { if (turn.draft !== drafts.at(-1)) drafts.push(turn.draft); }}, "novel", turn);
  globalThis.fetch = real;
  return [drafts, turn.state, turn.answer.text];
}"""
ODD_EVENTS = """async () => {
  const {html, render} = await import("./assets/parts.js");
  const {TraceView} = await import("./assets/trace.js");
  const details = [
    {notes: null, word: "first"}, {evidence: "none", word: "second"},
    {pool: [null, "text", 3, {name: "a"}], word: "third"}, {mixed: [{name: "a"}, null], word: "fourth"},
    {evidence: [null, {text: 4, place: {chapter: 9}}], word: "fifth"}, null,
    {evidence: [null, 3, {}, {text: 4}, {text: "asked", name: {}, source: []}].map(
      (rewrite, place) => ({text: `rewritten ${place}`, rewrite}))},
  ];
  const events = details.map((detail, place) => ({name: `event${place}`, step: 0, summary: "odd", detail}));
  render(html`<${TraceView} events=${events} open />`, document.body.appendChild(document.createElement("div")));
}"""


def write_stream(*events: tuple[str, Any]) -> str:
    return "".join(f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n" for name, data in events)


def test_an_answer_grows_and_is_replaced_however_its_bytes_arrive(visitor: Callable[..., Visit]):
    parts = [("Tōm", False), (" Reed", False), ("Ada", True), (" Marsh ✓", False)]
    text = write_stream(
        *(("answer_part", {"text": part, "replace": replace}) for part, replace in parts),
        ("answer", {"text": "Ada Marsh"}),
    )
    drafts, state, answer = visitor().enter().evaluate(ASK_BYTE_BY_BYTE, text)
    assert drafts == ["", "Tōm", "Tōm Reed", "Ada", "Ada Marsh ✓", ""]
    assert (state, answer) == ("done", "Ada Marsh")


def test_a_question_that_is_stopped_ends_the_call_of_the_model(visitor: Callable[..., Visit], tmp_path: Path):
    hold = stream_with('{"reasoning": "r', finish=None, done=False, hold=True)
    with OpenAIServer(lambda _: hold) as model, serve_library(tmp_path, model=model) as served:
        page = visitor(served.url).enter(link("novel", "ask"))
        ask(page, QUESTION)
        assert model.arrived.wait(SOON)
        page.locator(".composer").get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Stopped.")).to_be_visible()
        assert model.left.wait(SOON)


def test_a_price_is_shown_before_it_is_paid(visitor: Callable[..., Visit], tmp_path: Path):
    reply = json.dumps({"answer": "Ada Marsh", "supported": "full", "quotes": [], "reach": "part"})
    with (
        OpenAIServer(lambda _: stream_with(reply)) as model,
        serve_library(tmp_path, model=model, TOMEWISE_ASK_ABOVE="0 calls") as served,
    ):
        guest = visitor(served.url)
        page = guest.enter(link("novel", "ask"))
        assert ask(page, QUESTION)["accept"] == "0 calls"
        expect(page.get_by_text("This takes 1 call")).to_be_visible()
        assert not model.requests
        page.get_by_role("button", name="Ask for this price").click()
        wait_for_answers(page, 1)
        assert len(model.requests) == 1
        page = guest.go(link("novel", "compare", question=UNKNOWN, first="naive", second="hybrid"))
        page.get_by_role("button", name="Ask both").click()
        for place in range(2):
            page.get_by_role("button", name="Ask for this price").first.click()
            wait_for_answers(page, place + 1)
        assert len([each for each in guest.complaints if "409 (Conflict)" in each]) == len(guest.complaints) == 3
        guest.complaints.clear()


def test_an_address_fills_in_the_form_and_a_guess_keeps_all_of_it(visitor: Callable[..., Visit]):
    form = {"options": json.dumps(["gold", "tea"]), "instructions": "Be brief.", "settings": json.dumps({"limit": 3})}
    page = visitor().enter(link("novel", "ask", question=UNKNOWN, system="naive", **form))
    expect(page.locator("#question")).to_have_value(UNKNOWN)
    expect(page.locator("#question")).to_be_focused()
    expect(page).to_have_url(re.compile(r"#/t/novel/ask$"))
    first = ask(page, UNKNOWN)
    assert (first["system"], first["options"], first["instructions"]) == ("naive", ["gold", "tea"], "Be brief.")
    assert first["settings"] == {"limit": 3}
    wait_for_answers(page, 1)
    again = read_sent(page, page.get_by_role("button", name="Ask for a guess").click)
    kept = {name: first[name] for name in ("question", "options", "instructions", "session")}
    assert again == {**kept, "force": True, "accept": "2 minutes"}, "the session has fixed the system"
    wait_for_answers(page, 2)


def test_events_of_any_shape_are_drawn(visitor: Callable[..., Visit]):
    page = visitor().enter()
    page.evaluate(ODD_EVENTS)
    for summary in page.locator(".event > details > summary").all():
        summary.click()
    closed = page.locator(".event-detail .fold:not([open]) > summary")
    while closed.count():
        closed.first.click()
    for word in ("first", "second", "third", "fourth"):
        expect(page.get_by_text(word, exact=True)).to_be_visible()
    expect(page.get_by_text('"fifth"')).to_be_visible()
    for place in range(5):
        expect(page.get_by_text(f"rewritten {place}").first).to_be_attached()


def test_a_stored_question_is_asked_again_with_all_that_belonged_to_it(visitor: Callable[..., Visit], served: Served):
    scope = {"documents": ["keeper.txt"]}
    body = {"question": "Where did Tom Reed stand?", "options": ["quay", "mill"], "instructions": "Be brief.", **scope}
    chosen = {"system": "comorag:without episodic", "settings": {"cycles": 1}}
    number = served.post("/api/tomes/novel/ask", {**body, **chosen}).json()["trace"]
    page = visitor().enter(link("novel", "history"))
    page.get_by_role("link", name=body["question"]).click()
    expect(page.get_by_text("Looked only into:")).to_contain_text("keeper.txt")
    page.get_by_role("link", name="Ask again").click()
    expect(page.locator("#question")).to_have_value(str(body["question"]))
    expect(page.locator("#question")).to_be_focused()
    again = read_sent(page, lambda: page.keyboard.press("Enter"))
    same = {"system": "comorag", "settings": {"episodic": 0, "cycles": 1}}  # what the variant stands for
    assert again == {**body, **same, "session": "Where did Tom Reed stand", "accept": "2 minutes"}
    wait_for_answers(page, 1)
    first, second = (served.http.get(f"/api/tomes/novel/traces/{each}").json() for each in (number, number + 1))
    assert first["question"] == second["question"]
    for field in ("system", "text", "choice"):
        assert first["answer"][field] == second["answer"][field], field
