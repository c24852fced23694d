"""What `tome serve` adds to a question: the ratios to asking in process, with a model that takes half a second.

PYTHONPATH=. python bench/server.py
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import httpx2 as httpx
from tests.language.openai_server import OpenAIServer, reply_with
from tests.server.served import Served, serve

from tomewise.sample import STORY
from tomewise.tome.tome import Tome

REPLY = json.dumps({"reasoning": "It says so.", "answer": "The keeper", "quotes": []})
PATH = "/api/tomes/novel/ask"
REPEATS = 9


def main() -> None:
    """Measure and print the table."""
    os.environ |= {"NO_PROXY": "127.0.0.1", "OPENAI_API_KEY": "k"}
    with tempfile.TemporaryDirectory() as name, OpenAIServer(lambda _: reply_with(REPLY, delay=0.5)) as model:
        folder = Path(name)
        with Tome.open(folder / "novel.tome", embedder="hash") as tome:
            tome.add(STORY)
        own = asyncio.run(measure_own(folder / "novel.tome", model.url))
        opened = measure_opened(folder / "novel.tome", model.url)
        words = ("novel.tome", "--model", "openai:test", "--base-url", model.url, "--questions", "16")
        with serve(folder, *words, OPENAI_API_KEY="k") as served:
            over_http = asyncio.run(measure_http(served))
            memory = read_memory(served)
            asyncio.run(ask_many(served, range(2000, 2008)))
            busy = read_memory(served)
        print(f"a question over HTTP / aask: {over_http['one'] / own['one']:.3f} (at most 1.05)")
        print(f"16 questions at once / ask_many: {over_http['many'] / own['many']:.3f} (at most 1.1)")
        late = over_http["first"] - own["first"]
        print(f"first event later than in process: {1000 * late:.0f} ms (at most 50)")
        print(f"/api/health, 95th percentile during 8 questions: {1000 * over_http['health']:.0f} ms (at most 50)")
        print(f"memory after 8 questions / before: {busy / memory:.2f}; served / tome opened: {memory / opened:.2f}")
        start, imported = measure_start(folder)
        print(
            f"start until listening / import tomewise.tome: {start:.2f} s / {imported:.2f} s = {start / imported:.2f}"
        )


async def measure_own(path: Path, url: str) -> dict[str, float]:
    """Seconds in this process: one question, sixteen at once, the first event."""
    tome = Tome.open(path, model="openai:test", base_url=url)
    await tome.aask("Warm up?", system="naive")
    whole, first = [], []
    for number in range(REPEATS):
        began = time.perf_counter()
        events: list[float] = []
        await tome.aask(f"Who? {number}", system="naive", on_event=lambda _, to=events: to.append(time.perf_counter()))
        whole.append(time.perf_counter() - began)
        first.append(events[0] - began)
    began = time.perf_counter()
    await tome.aask_many([f"Whose? {number}" for number in range(16)], system="naive")
    many = time.perf_counter() - began
    await tome.aclose()
    return {"one": median(whole), "many": many, "first": median(first)}


async def measure_http(served: Served) -> dict[str, float]:
    """The same over HTTP."""
    async with httpx.AsyncClient(base_url=served.url, headers=served.http.headers, timeout=60) as client:
        await client.post(PATH, json={"question": "Warm up once more?", "system": "naive"})
        whole, first = [], []
        for number in range(REPEATS):
            began = time.perf_counter()
            await client.post(PATH, json={"question": f"Who then? {number}", "system": "naive"})
            whole.append(time.perf_counter() - began)
        for number in range(REPEATS):
            began = time.perf_counter()
            body = {"question": f"Who now? {number}", "system": "naive"}
            async with client.stream("POST", PATH, json=body, headers={"accept": "text/event-stream"}) as stream:
                lines = stream.aiter_lines()
                while not (await anext(lines)).startswith("event: retrieved"):
                    pass
                first.append(time.perf_counter() - began)
    began = time.perf_counter()
    await ask_many(served, range(16))
    many = time.perf_counter() - began
    health = await measure_health(served)
    return {"one": median(whole), "many": many, "first": median(first), "health": health}


async def ask_many(served: Served, numbers: range) -> None:
    """Several questions at once."""
    async with httpx.AsyncClient(base_url=served.url, headers=served.http.headers, timeout=60) as client:
        bodies = [{"question": f"Whose then? {number}", "system": "naive"} for number in numbers]
        await asyncio.gather(*(client.post(PATH, json=body) for body in bodies))


async def measure_health(served: Served) -> float:
    """The 95th percentile of the seconds of `/api/health` during eight questions."""
    asking = asyncio.create_task(ask_many(served, range(1000, 1008)))
    seconds = []
    async with httpx.AsyncClient(base_url=served.url) as client:
        while not asking.done():
            began = time.perf_counter()
            await client.get("/api/health")
            seconds.append(time.perf_counter() - began)
            await asyncio.sleep(0.01)
    await asking
    return sorted(seconds)[int(0.95 * len(seconds))]


def measure_start(folder: Path) -> tuple[float, float]:
    """Seconds until the server listens, and seconds of `import tomewise.tome.tome` in a new process."""
    starts, imports = [], []
    for _ in range(3):
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
        f"base_url={url!r}); t.ask('Who?'); "
        "print(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1])"
    )
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def read_memory(served: Served) -> int:
    """Kilobytes of the server."""
    lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


if __name__ == "__main__":
    main()
