"""Questions in a browser: how they are asked, grow, are stopped and asked again, and the sessions they belong to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.language.openai_server import OpenAIServer, stream_with
from tests.patience import SOON
from tests.server.served import Served
from tests.web.conftest import serve_library
from tests.web.pages import Visit, ask, expect, link, read_sent, wait_for_answers

if TYPE_CHECKING:
    from playwright.sync_api import Route

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
    assert again == {**kept, "force": True}, "the session has fixed the system"
    wait_for_answers(page, 2)


def test_a_session_on_a_later_page_of_the_list_is_continued(visitor: Callable[..., Visit], served: Served):
    served.post("/api/tomes/novel/ask", {"question": QUESTION, "session": "zz last", "system": "naive"})

    def give_pages(route: Route) -> None:
        first = {"sessions": [{"name": "first", "system": "hybrid", "count": 1}], "total": 2, "next": "first"}
        second = {"sessions": [{"name": "zz last", "system": "naive", "count": 1}], "total": 2, "next": None}
        route.fulfill(json=second if "after=first" in route.request.url else first)

    made = visitor()
    made.page.route(re.compile(r"/sessions\?"), give_pages)
    page = made.enter(link("novel", "ask"))
    expect(page.locator(".sessions li")).to_have_count(2)
    page.get_by_role("link", name="zz last").click()
    expect(page.locator(".system-fixed")).to_have_text("naive")
    assert "system" not in ask(page, "And who forged the letter?")
    wait_for_answers(page, 2)


def test_how_a_stored_turn_was_answered_keeps_the_focus(visitor: Callable[..., Visit], served: Served):
    served.post("/api/tomes/novel/ask", {"question": QUESTION, "session": "focus", "system": "naive"})
    page = visitor().enter(link("novel", "ask", session="focus"))
    page.locator(".trace > summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".trace .event").first).to_be_visible()
    expect(page.locator(".trace > summary")).to_be_focused()


def test_a_session_begins_without_the_questions_asked_alone(visitor: Callable[..., Visit]):
    page = visitor().enter(link("novel", "ask"))
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Each question alone").check()
    assert "session" not in ask(page, QUESTION)
    wait_for_answers(page, 1)
    page.get_by_role("button", name="Settings").click()  # the question has closed them
    page.get_by_label("Each question alone").uncheck()
    name = ask(page, "Where did Ada Marsh meet Tom Reed?")["session"]
    wait_for_answers(page, 1)
    names = page.locator(".sessions li a").all_inner_texts()
    assert all(text.strip() for text in names)
    expect(page.locator(".sessions [aria-current=page]")).to_contain_text(name)


def test_a_session_whose_first_question_failed_is_deleted(visitor: Callable[..., Visit]):
    made = visitor()
    made.page.route("**/ask", lambda route: route.fulfill(status=502, json={"error": {"message": "no model"}}))
    page = made.enter(link("novel", "ask"))
    name = ask(page, "What is lost at once?")["session"]
    expect(page.get_by_role("alert")).to_contain_text("no model")
    page.get_by_label(f"Actions for {name}").click()
    page.get_by_role("menuitem", name="Delete this session").click()
    expect(page.get_by_label(f"Actions for {name}")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    made.complaints[:] = [each for each in made.complaints if "502" not in each and "404" not in each]


def test_the_systems_of_an_address_come_before_those_compared_last(visitor: Callable[..., Visit]):
    page = visitor().enter(link("novel", "compare", question=QUESTION))
    page.get_by_role("button", name="Ask both").click()
    wait_for_answers(page, 2)
    page.evaluate("location.hash = '#/t/novel/history'")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    page.evaluate("location.hash = '#/t/novel/compare?first=naive&second=hybrid'")
    expect(page.get_by_label("System 1").locator("select.system")).to_have_value("naive")
    expect(page.get_by_label("System 2").locator("select.system")).to_have_value("hybrid")


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


def test_a_stored_question_is_asked_again_with_all_that_belonged_to_it(visitor: Callable[..., Visit], served: Served):
    body = {"question": "Where did Tom Reed stand?", "options": ["quay", "mill"], "instructions": "Be brief."}
    chosen = {"system": "comorag:without episodic", "settings": {"cycles": 1}}
    number = served.post("/api/tomes/novel/ask", {**body, **chosen}).json()["trace"]
    page = visitor().enter(link("novel", "history"))
    page.get_by_role("link", name=body["question"]).click()
    page.get_by_role("link", name="Ask again").click()
    expect(page.locator("#question")).to_have_value(body["question"])
    expect(page.get_by_role("button", name="Settings (5)")).to_be_visible()
    again = read_sent(page, lambda: page.keyboard.press("Enter"))
    same = {"system": "comorag", "settings": {"episodic": 0, "cycles": 1}}  # what the variant stands for
    assert again == {**body, **same, "session": "Where did Tom Reed stand"}
    wait_for_answers(page, 1)
    page.get_by_role("link", name="History", exact=True).click()
    expect(page.get_by_role("link", name=body["question"])).to_have_count(2)
    page.get_by_role("link", name=body["question"]).first.click()
    expect(page.locator(".lead")).to_contain_text(f"Question {number + 1}, answered by comorag")
    first, second = (served.http.get(f"/api/tomes/novel/traces/{each}").json() for each in (number, number + 1))
    for field in ("question", "options", "instructions", "system", "text", "choice"):
        assert first[field] == second[field], field


def test_options_are_written_without_asking(visitor: Callable[..., Visit]):
    page = visitor().enter(link("novel", "ask", question=QUESTION))
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Add option A").click()
    expect(page.get_by_role("textbox", name="Option A")).to_be_focused()
    page.keyboard.type("Ada Marsh")
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Option B")).to_be_focused()
    page.keyboard.type("Tom Reed")
    expect(page.locator(".turn")).to_have_count(0)
    page.locator("#question").focus()
    assert read_sent(page, lambda: page.keyboard.press("Enter"))["options"] == ["Ada Marsh", "Tom Reed"]
    expect(page.locator(".composer-more")).to_have_count(0)


@pytest.mark.parametrize(("view", "query"), [("build", "system"), ("ask", "system"), ("compare", "second")])
def test_a_misspelt_system_is_named_with_the_nearest(visitor: Callable[..., Visit], view: str, query: str):
    page = visitor().enter(link("novel", view, **{query: "comrag"}))
    expect(page.get_by_text("There is no system “comrag”.")).to_be_visible()
    expect(page.get_by_text("Everything is there.")).to_have_count(0)
    page.get_by_role("button", name="Use comorag").click()
    expect(page.get_by_text("There is no system")).to_have_count(0)
    if view == "build":
        expect(page.get_by_role("link", name="Ask with comorag")).to_be_visible()
    else:
        expect(page.locator("select.system").last).to_have_value("comorag")


def test_a_system_that_is_put_together_is_built_and_asked(visitor: Callable[..., Visit]):
    page = visitor().enter(link("novel", "build", system="raptor+evolve"))
    page.get_by_role("link", name="Ask with raptor+evolve").click()
    expect(page.locator("select.system")).to_have_value("raptor+evolve")
    expect(page.get_by_text("not built yet")).to_have_count(0)
    assert ask(page, QUESTION)["system"] == "raptor+evolve"
    wait_for_answers(page, 1)
