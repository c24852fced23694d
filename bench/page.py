"""What the page weighs, how fast it shows (first view, drawings, a long text, a long trace), and what it keeps.

PYTHONPATH=. python bench/page.py    # needs an installed Chromium, or TOMEWISE_BROWSER
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from tests.drawing.pictures import make_graph
from tests.server.served import serve
from tests.web.pages import launch, link, visit

from tomewise.tome.tome import Tome
from tomewise.types import Document
from tomewise.web import list_assets

REPEATS = 5
CHARACTERS = 20_000_000
DRAW = """async (picture) => {
  await import("./assets/d3.js");
  const {drawPicture} = await import("./assets/drawing.js");
  const host = document.querySelector("main").appendChild(document.createElement("div"));
  drawPicture(host, picture);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  host.remove();
}"""
SHOW = """async () => {
  const {html, render} = await import("./assets/parts.js");
  const {TraceView} = await import("./assets/trace.js");
  const piece = {layer: "passages", score: 0.5, title: "A", text: "word ".repeat(200)};
  const detail = {evidence: Array(20).fill(piece)};
  const events = [...Array(500).keys()].map((step) => ({name: "recalled", step, summary: "search " + step, detail}));
  const host = document.querySelector("main").appendChild(document.createElement("div"));
  render(html`<${TraceView} events=${events} open />`, host);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}"""
SCROLL = """async (frames) => {
  const list = document.querySelector(".events");
  for (let frame = 0; frame < frames; frame += 1) {
    list.scrollTop += 200;
    await new Promise(requestAnimationFrame);
  }
}"""
FRAMES = 60
ASKED = (500, 5000)
# Answers each question itself, and asks so many as a visitor would: words, the key, and the answer that is shown.
ASK_MANY = """async (times) => {
  const real = globalThis.realFetch ??= globalThis.fetch;
  const text = "word ".repeat(200);
  const evidence = [...Array(20).keys()].map((at) => ({id: `p${at}`, layer: "passages", score: 0.5, title: "A", text}));
  const quote = {document: "long.txt", passage: "p1", position: 0, start: 0, end: 9, text: "The keeper"};
  const cost = {calls: 1, input_tokens: 1, output_tokens: 1, dollars: 0, model_seconds: 0, own_seconds: 0};
  globalThis.fetch = async (url, options) => {
    if (!String(url).endsWith("/ask")) return real(url, options);
    globalThis.asked = (globalThis.asked ?? 0) + 1;
    const proof = {resolved: true, claimed: "full", support: "quoted", statements: [{quotes: [quote]}], nearest: []};
    const answer = {text: `**Answer** ${globalThis.asked}`, system: "naive", trace: globalThis.asked, cost, ...proof};
    const found = {step: 0, summary: "found", detail: {evidence, found: 20, cut: 0}};
    const events = [["retrieved", found], ["answer", answer]];
    return new Response(events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(""));
  };
  const box = document.querySelector("#question");
  for (let turn = 0; turn < times; turn += 1) {
    box.value = `Who went home, asked ${turn} times?`;
    box.dispatchEvent(new Event("input", {bubbles: true}));
    await new Promise((done) => setTimeout(done));
    const before = globalThis.asked ?? 0;
    box.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
    for (;;) {
      await new Promise((done) => setTimeout(done));
      const isShown = document.body.textContent.includes(`Answer ${globalThis.asked}`);
      if (globalThis.asked > before && isShown && !document.querySelector("[aria-busy=true]")) break;
    }
  }
}"""


def main() -> None:
    """Measure and print."""
    assets = list_assets().values()
    print(f"page: {sum(len(asset.body) for asset in assets) / 1000:.0f} KB in {len(assets)} files (at most 500 in 32)")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        place = make_tome(folder / "long.tome")
        browser = launch(playwright)
        with serve(folder, "--root", ".") as served:
            print(f"first view: {measure_first_view(browser, served.url):.2f} s (at most 1)")
            with visit(browser, served.url) as made:
                page = made.enter()
                for nodes, limit in ((300, 1), (2000, 5)):
                    picture = make_graph(nodes).to_dict()
                    seconds = min(measure_work(page, DRAW, picture) for _ in range(REPEATS))
                    print(f"{nodes} nodes laid out and drawn: {seconds:.2f} s of processor time (at most {limit})")
                print(f"trace of 500 events: shown in {1000 * measure_work(page, SHOW):.0f} ms of processor time")
                frame = min(measure_work(page, SCROLL, FRAMES) for _ in range(REPEATS)) / FRAMES
                print(f"a frame while it scrolls: {1000 * frame:.1f} ms of processor time (at most 16)")
            with visit(browser, served.url) as made:
                print(f"heap after questions: {measure_heaps(made.enter(link('long', 'ask')))}")
            with visit(browser, served.url) as made:
                began = time.perf_counter()
                page = made.enter(link("long", "doc", id="long.txt", start=place, end=place + 20))
                page.wait_for_selector("mark.current")
                seconds = time.perf_counter() - began
                moved = sum(size for url, size in made.moved if "/assets/" not in url)
                print(f"citation in 20 MB: {moved / 1000:.0f} KB moved beside the page (at most 256), {seconds:.2f} s")


def make_tome(path: Path) -> int:
    """A tome with a text of 20 million characters. Returns where a sentence in its middle begins."""
    sentence = "The keeper of light number {:09} went home. "
    text = "".join(sentence.format(number) for number in range(CHARACTERS // len(sentence.format(0)) + 1))
    with Tome.open(path, embedder="hash") as tome:
        tome.add(Document(id="long.txt", text=text))
    return text.index("The keeper", len(text) // 2)


def measure_first_view(browser: Browser, site: str) -> float:
    """Seconds from the request for the page until the library stands there, in a browser without a cache."""
    found = []
    for _ in range(REPEATS):
        with visit(browser, site) as made:
            made.enter("#/nowhere")
            began = time.perf_counter()
            made.page.goto("about:blank")
            made.page.goto(f"{site}/#/")
            made.page.wait_for_selector(".tome")
            found.append(time.perf_counter() - began)
    return min(found)


def measure_heaps(page: Page) -> str:
    """What the page holds after so many questions, each alone, once what nobody needs was collected."""
    page.wait_for_selector(".composer")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Each question alone").check()
    page.get_by_role("button", name="Settings").click()
    session = page.context.new_cdp_session(page)
    heaps, done = [], 0
    for number in ASKED:
        while done < number:
            page.evaluate(ASK_MANY, 100)
            done += 100
        session.send("HeapProfiler.collectGarbage")
        heaps.append(f"{session.send('Runtime.getHeapUsage')['usedSize'] / 1e6:.1f} MB after {number}")
    return ", ".join(heaps)


def measure_work(page: Page, script: str, given: Any = None) -> float:
    """Seconds of processor time that the thread of the page works for a script; other programs do not count."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    began = read()
    page.evaluate(script, given)
    worked = read() - began
    session.detach()
    return worked


if __name__ == "__main__":
    main()
