"""What `tome serve` adds to asking in process: each figure of its table as a ratio or a difference in one run.

PYTHONPATH=. python bench/server.py [--embedder hash] [--questions 1000]. The model is a server on this machine that
replies after half a second, except where the extractive model is named. Runs in process and over HTTP alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import httpx2 as httpx
import openai
import uvicorn
from tests.building import play_role, role
from tests.language.openai_server import Behaviour, OpenAIServer, reply_with
from tests.server.served import TOKEN, Served, serve
from tests.texts import NOVEL

from tomewise.sample import STORY
from tomewise.server.app import make_app
from tomewise.server.library import Library
from tomewise.server.listening import Connection
from tomewise.server.serve_options import ServerOptions
from tomewise.settings import Settings
from tomewise.tome.tome import Tome
from tomewise.types import Answer, Cost, Event

REPLY = json.dumps({"reasoning": "It says so.", "answer": "The keeper", "quotes": []})
TEXT = NOVEL if NOVEL.exists() else STORY
PATH = "/api/tomes/novel/ask"
LATENCY = 0.5  # seconds of a call
REPEATS = 9
EVENTS = 3000
READ = """
from urllib.request import Request, urlopen
body = b'{{"question": "Who?"}}'
headers = {{"content-type": "application/json", "accept": "text/event-stream"}}
last = b""
for line in urlopen(Request("http://127.0.0.1:{port}{path}", body, headers)):
    last = line if line.startswith(b"event") else last
assert last == b"event: answer\\n"
"""
Result = TypeVar("Result")


async def ask_streamed(served: Served, questions: Sequence[str]) -> list[str]:
    """The answers to all questions at once, streamed by the official client, with the retries that it makes itself."""
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key=TOKEN) as client:

        async def ask(question: str) -> str:
            messages: Any = [{"role": "user", "content": question}]
            stream = await client.chat.completions.create(model="novel/naive", messages=messages, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        return await asyncio.gather(*map(ask, questions))


def reply(request: dict) -> Behaviour:
    """What the model replies to a build and to a question."""
    return play_role(request, delay=LATENCY) if role(request) else reply_with(REPLY, delay=LATENCY)


def show(name: str, measured: float, most: float, unit: str = "") -> None:
    """Print one row."""
    print(f"| {name} | {measured:.2f}{unit} | {most:g}{unit} |{'' if measured <= most else ' too much |'}", flush=True)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("--questions", type=int, default=1000)
    options = parser.parse_args()
    os.environ |= {"NO_PROXY": "127.0.0.1", "OPENAI_API_KEY": "k"}
    with tempfile.TemporaryDirectory() as name, OpenAIServer(reply) as model:
        folder = Path(name)
        with Tome.open(folder / "novel.tome", embedder=options.embedder) as tome:
            tome.add(TEXT)
        asking = ("--model", "openai:test", "--base-url", model.url)
        opened = measure_opened(folder / "novel.tome", model.url)
        with serve(folder, "novel.tome", *asking, "--questions", "16", TOMEWISE_LIMIT="16") as served:
            asyncio.run(compare(folder / "novel.tome", model.url, served, opened))
            asyncio.run(measure_during_build(served))
        with serve(folder, "novel.tome", "--questions", "8") as served:
            asyncio.run(measure_extractive(served))
            answers = asyncio.run(ask_streamed(served, [f"Who called? {number}" for number in range(60)]))
            show("of 60 streamed at once by the official client, without an answer", answers.count(""), 0)
            asyncio.run(measure_growth(served, options.questions))
        show("processor time an event", 1000 * asyncio.run(measure_event(folder)), 1, " ms")
        start, imported = measure_start(folder)
        show("start until listening ÷ import tomewise.tome", start / imported, 2)


async def compare(path: Path, url: str, served: Served, opened: int) -> None:
    """A question, sixteen at once and the first event, in process and over HTTP by turns; then the memory."""
    tome = Tome.open(path, model="openai:test", base_url=url)
    own: dict[str, list[float]] = {"one": [], "first": [], "many": []}
    over_http: dict[str, list[float]] = {"one": [], "first": [], "many": []}
    async with connect(served) as client:
        await tome.aask("Warm up?", system="naive")
        await ask(client, "Warm up once more?")
        memory = read_memory(served)
        for number in range(REPEATS):
            seconds, first = await ask_own(tome, f"Who? {number}")
            own["one"].append(seconds)
            own["first"].append(first)
            over_http["one"].append(await time_work(lambda n=number: ask(client, f"Who then? {n}")))
            over_http["first"].append(await time_first_event(client, f"Who now? {number}"))
        for number in range(REPEATS):
            words = [f"Whose {number}? {each}" for each in range(16)]
            own["many"].append(await time_work(lambda w=words: tome.aask_many(w, system="naive")))
            over_http["many"].append(await time_work(lambda w=words: ask_many(client, [f"{each}?" for each in w])))
        await ask_many(client, [f"Which? {number}" for number in range(8)])
        processor = [await measure_processor(client, served, number) for number in range(REPEATS)]
    await tome.aclose()
    show("a question over HTTP ÷ `aask`", median(over_http["one"]) / median(own["one"]), 1.05)
    show("16 questions at once ÷ `ask_many`", median(over_http["many"]) / median(own["many"]), 1.1)
    show("first event, later than in process", 1000 * (median(over_http["first"]) - median(own["first"])), 50, " ms")
    show("processor time a question, 16 at once", min(processor), 30, " ms")
    show("memory idle ÷ tome opened", memory / opened, 1.15)
    show("memory with 8 questions ÷ tome opened", read_memory(served) / opened, 1.3)


async def measure_during_build(served: Served) -> None:
    """Questions and `/api/health` while the graph of the novel is built, with sixteen calls at a time."""
    async with connect(served) as client:
        alone = [await time_work(lambda n=n: ask(client, f"Alone {n}?")) for n in range(REPEATS)]
        accept = {"system": "hipporag2", "accept": "100,000 calls"}
        job = (await client.post("/api/tomes/novel/builds", json=accept)).json()["id"]
        await asyncio.sleep(2)  # until its calls are under way

        async def work() -> list[float]:
            return [await time_work(lambda n=n: ask(client, f"Beside {n}?")) for n in range(REPEATS)]

        health, beside = await watch_health(client, work)
        ended = (await client.delete(f"/api/jobs/{job}")).json()
    assert ended["state"] == "cancelled", f"the build ended before the questions did: {ended}"
    show("`naive` during a build of the novel at limit 16 ÷ alone", median(beside) / median(alone), 2.3)
    show("`/api/health` during that, 95th percentile", 1000 * health, 50, " ms")


async def measure_extractive(served: Served) -> None:
    """`/api/health` while eight questions that the extractive model answers run at once."""
    async with connect(served) as client:
        await ask(client, "Warm up?")

        async def work() -> None:
            for turn in range(4):
                await ask_many(client, [f"Who came {turn} to {number}?" for number in range(8)], "hybrid+probe")

        health, _ = await watch_health(client, work)
    show("`/api/health` during 8 extractive questions, 95th percentile", 1000 * health, 250, " ms")


async def measure_growth(served: Served, questions: int) -> None:
    """The memory of the server after so many questions, divided by that after a tenth of them."""
    sizes = []
    async with connect(served) as client:
        for begin in range(0, questions, 8):
            await ask_many(client, [f"Who went {number}?" for number in range(begin, begin + 8)])
            sizes.append(read_memory(served))
    show(f"memory after {questions:,} questions ÷ after {questions // 10:,}", sizes[-1] / sizes[len(sizes) // 10], 1.05)


async def measure_event(folder: Path) -> float:
    """Seconds of processor time that one event of a stream takes this process, with a reader in another process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        library = Library(Settings(), [folder / "novel.tome"])
        app = make_app(library, ServerOptions(port=port))
        tome = await library.open("novel")
        events: list[Event] = []
        answer = await tome.aask("Who came?", system="naive", on_event=events.append)

        async def emit(name: str, body: object, on_event: Callable[[Event, Cost], None]) -> tuple[Tome, Answer]:
            for _ in range(EVENTS):
                on_event(events[0], Cost())
                await asyncio.sleep(0)
            return tome, answer

        app.state.service.ask = emit
        server = uvicorn.Server(uvicorn.Config(app, http=Connection, log_config=None, access_log=False))
        serving = asyncio.create_task(server.serve([listener]))
        began = time.process_time()
        read = await asyncio.create_subprocess_exec(sys.executable, "-c", READ.format(port=port, path=PATH))
        code = await read.wait()
        spent = time.process_time() - began
        assert code == 0, "the reader failed"
        server.should_exit = True
        await serving
    return spent / EVENTS


async def ask(client: httpx.AsyncClient, question: str, system: str = "naive") -> None:
    """One question over HTTP."""
    (await client.post(PATH, json={"question": question, "system": system})).raise_for_status()


async def ask_many(client: httpx.AsyncClient, questions: list[str], system: str = "naive") -> None:
    """Several questions at once."""
    await asyncio.gather(*(ask(client, question, system) for question in questions))


async def measure_processor(client: httpx.AsyncClient, served: Served, number: int) -> float:
    """Milliseconds of processor time of the server for each of 16 new questions at once."""
    began = read_processor(served)
    await ask_many(client, [f"Which {number}? {each}" for each in range(16)])
    return 1000 * (read_processor(served) - began) / 16


async def ask_own(tome: Tome, question: str) -> tuple[float, float]:
    """Seconds of one question in process, and seconds until its first event."""
    began = time.perf_counter()
    times: list[float] = []
    await tome.aask(question, system="naive", on_event=lambda _: times.append(time.perf_counter()))
    return time.perf_counter() - began, times[0] - began


async def time_first_event(client: httpx.AsyncClient, question: str) -> float:
    """Seconds until the first event of a question arrives."""
    began = time.perf_counter()
    body, headers = {"question": question, "system": "naive"}, {"accept": "text/event-stream"}
    async with client.stream("POST", PATH, json=body, headers=headers) as stream:
        lines = stream.aiter_lines()
        while not (await anext(lines)).startswith("event: retrieved"):
            pass
        return time.perf_counter() - began


async def time_work(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds of the work."""
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def watch_health(client: httpx.AsyncClient, work: Callable[[], Awaitable[Result]]) -> tuple[float, Result]:
    """The 95th percentile of the seconds of `/api/health` during some work, and what the work returns."""
    working = asyncio.ensure_future(work())
    seconds = []
    while not working.done():
        seconds.append(await time_work(lambda: client.get("/api/health")))
        await asyncio.sleep(0.01)
    return sorted(seconds)[int(0.95 * len(seconds))], await working


@asynccontextmanager
async def connect(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the token."""
    async with httpx.AsyncClient(base_url=served.url, headers=served.http.headers, timeout=120) as client:
        yield client


def measure_start(folder: Path) -> tuple[float, float]:
    """Seconds until the server listens, and seconds of `import tomewise.tome.tome` in a new process."""
    starts, imports = [], []
    for _ in range(5):
        began = time.perf_counter()
        with serve(folder, "novel.tome"):
            starts.append(time.perf_counter() - began)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import tomewise.tome.tome"], check=True)
        imports.append(time.perf_counter() - began)
    return min(starts), min(imports)


def measure_opened(path: Path, url: str) -> int:
    """Kilobytes of a process that has opened the tome and asked once."""
    code = (
        f"from tomewise.tome.tome import Tome; t = Tome.open({str(path)!r}, model='openai:test', "
        f"base_url={url!r}); t.ask('Who?', system='naive'); "
        "print(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1])"
    )
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def read_processor(served: Served) -> float:
    """Seconds of processor time that the server has used."""
    fields = Path(f"/proc/{served.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_memory(served: Served) -> int:
    """Kilobytes of the server."""
    lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


if __name__ == "__main__":
    main()
