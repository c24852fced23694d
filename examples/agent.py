"""What an agent does with a tome: it starts `tome mcp`, searches, asks, and opens the quotation in its document.

python examples/novel.py && python examples/agent.py     # needs the extra `server`
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

QUESTION = "Who kept the clock of the Tide House?"
SERVER = StdioServerParameters(command=sys.executable, args=["-m", "tomewise", "mcp", "-m", "novel.tome"])


async def main() -> None:
    """Print what the tools reply."""
    async with Client(stdio_client(SERVER)) as client:
        listed = await client.list_tools()
        print("tools:", ", ".join(tool.name for tool in listed.tools))

        found = await call(client, "search", query=QUESTION, limit=3)
        for piece in found["pieces"]:
            print(f"found: {piece['id']} {piece['text'][:50]!r}")

        answer = (await call(client, "ask", question=QUESTION))["answer"]
        print("answer:", answer["text"] or " ".join(answer["remarks"]))  # without a model only quotations
        for quote in (quote for statement in answer["statements"] for quote in statement["quotes"]):
            span = {name: quote[name] for name in ("document", "start", "end")}
            opened = (await call(client, "read", **span))["part"]
            print(f"opened: {opened['text']!r} is the quotation: {quote['text'] in opened['text']}")


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool replies. Raises RuntimeError with its message if it failed."""
    result = await client.call_tool(tool, arguments)
    if result.is_error or result.structured_content is None:
        raise RuntimeError(f"{tool}: {result.content}")
    return dict(result.structured_content)


if __name__ == "__main__":
    asyncio.run(main())
