"""One script for every local server that speaks OpenAI's protocol. The answer is printed while it is written.

ollama serve                                          python examples/local_model.py qwen3 http://localhost:11434/v1
lms server start                                      python examples/local_model.py qwen3 http://localhost:1234/v1
vllm serve Qwen/Qwen3-8B --max-model-len 32768        python examples/local_model.py Qwen/Qwen3-8B http://localhost:8000/v1
llama-server -m qwen3.gguf -c 32768 --jinja           python examples/local_model.py qwen3 http://localhost:8080/v1
"""

from __future__ import annotations

import argparse
import asyncio

from tomewise import Answer, Event, Tome
from tomewise.sample import STORY


async def main() -> None:
    """Ask one question about the story, and print the answer as it comes."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", help="the name under which the server knows the model")
    options.add_argument("address", help="where the server is, with /v1")
    options.add_argument("--window", type=int, default=32_768, help="tokens that the server accepts")
    options.add_argument("--question", default="Why does Miss Thorle distrust the clock?")
    given = options.parse_args()

    async with Tome.open(
        "local.tome",
        model=f"openai:{given.model}",
        base_url=given.address,
        settings={
            "window": given.window,
            "timeout": 600,  # seconds a call: a small machine takes its time
            "limit": 1,  # calls at once
        },
    ) as tome:
        await tome.aadd(STORY)
        printed = ""
        async for item in tome.astream(given.question):
            if isinstance(item, Event) and item.name == "answer_part":
                text, is_new = item.detail["text"], item.detail["replace"]
                print("\n" + text if is_new else text, end="", flush=True)
                printed = text if is_new else printed + text
            elif isinstance(item, Answer):
                rest = item.text.removeprefix(printed) if item.text else f"not answered: {item.missing}"
                print(f"{rest}\n{len(item.quotes)} quotations stand in the text, support: {item.support}")
            else:
                print(f"[{item.summary}]")


if __name__ == "__main__":
    asyncio.run(main())
