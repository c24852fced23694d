"""Our own CPU time a model call: ChatModel and bare HTTP, both against a local server that answers at once.

    .venv/bin/python bench/language.py [calls]

The server runs in its own process, so that only the client is measured. There are two prompts: a small one, and an
answer over twenty pieces of evidence (about 6,000 tokens).
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tomewise.language import roles
from tomewise.language.chat import RULES, ChatModel
from tomewise.language.prompts import Prompts
from tomewise.language.reply import describe_output
from tomewise.types import Role

ROOT = Path(__file__).parent.parent
SENTENCE = "Mara carried the letter through the rain and hid it in the clock of the harbour office. "
SMALL = roles.FuseIn(question="Who hid the letter?", cues=[SENTENCE] * 3)
LARGE = roles.AnswerIn(
    question="Who hid the letter?",
    evidence=[roles.Shown(label=f"E{number}", text=SENTENCE * 14) for number in range(1, 21)],
)
SERVER = """
import sys, time
sys.path.insert(0, "tests/language")
from openai_server import OpenAIServer, reply_with
import json
reply = reply_with(json.dumps({"cue": "Mara", "answer": "Mara", "quotes": [{"label": "E1", "quote": "Mara carried"}]}))
with OpenAIServer(lambda request: reply) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


async def time_calls(ask: Callable[[], Awaitable[object]], calls: int, together: int = 1) -> float:
    """Milliseconds of our CPU time a call: the median of five rounds."""
    rounds = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(calls // 5 // together):
            await asyncio.gather(*(ask() for _ in range(together)))
        rounds.append((time.process_time() - started) * 1000 / (calls // 5 // together * together))
    return statistics.median(rounds)


async def measure(name: str, role: Role[Any, Any], given: Any, url: str, calls: int) -> None:
    import httpx2

    model = ChatModel("openai:gpt-4o-mini", base_url=url)
    system, prompt = RULES + describe_output(role.output), Prompts().render(role, given)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
    await model.ask(role, given)  # imports and connects
    async with httpx2.AsyncClient() as client:

        async def post() -> None:
            body = {"model": "m", "stream": False, "messages": messages, "max_tokens": 500, "temperature": 0.0}
            (await client.post(f"{url}/chat/completions", json=body)).json()

        await post()
        http = await time_calls(post, calls)
    alone = await time_calls(lambda: model.ask(role, given), calls)
    together = await time_calls(lambda: model.ask(role, given), calls, together=16)
    await model.close()
    print(f"{name:<22} bare HTTP {http:5.2f}   ask {alone:5.2f}   ask, 16 together {together:5.2f}   ms CPU a call")


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 800
    os.environ["NO_PROXY"] = "127.0.0.1"
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        asyncio.run(measure("fuse, three cues", roles.FUSE, SMALL, url, calls))
        asyncio.run(measure("answer, 20 passages", roles.ANSWER, LARGE, url, calls))
        server.communicate()


if __name__ == "__main__":
    main()
