"""Replies of MCP tools: the same result as structured content and as text, bounded in size.

A client shows its model one of the two or both, so the bound counts both.
"""

from __future__ import annotations

from collections.abc import Callable

from mcp.types import CallToolResult, TextContent

from tomewise.server.mcp_results import Result
from tomewise.server.named_documents import cut_text

TOKENS = 8_000
_ENVELOPE = 500  # bytes that the protocol puts around a reply
# Tokenizers make about one token of four bytes of English, of three bytes of Chinese or of JSON.
MOST_BYTES = 3 * TOKENS - _ENVELOPE


def make_reply(result: Result, text: str) -> CallToolResult:
    """The reply with this structured content and this text."""
    whole = f"{text}\n\n{result.rest}" if result.rest else text
    return CallToolResult(
        content=[TextContent(type="text", text=whole)], structured_content=result.model_dump(mode="json")
    )


def make_failure(message: str) -> CallToolResult:
    """The reply that says why a call failed."""
    return CallToolResult(content=[TextContent(type="text", text=cut_text(message, 4_000))], is_error=True)


def fit_reply(make: Callable[[int], CallToolResult], most: int) -> CallToolResult:
    """The reply of the greatest count from 0 to `most` that is small enough; `make` grows with its count."""
    if is_small(whole := make(most)):
        return whole
    fits, too_many = 0, most
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if is_small(make(middle)):
            fits = middle
        else:
            too_many = middle
    return make(fits)


def is_small(reply: CallToolResult) -> bool:
    """Whether a reply, as it is sent, keeps within the bound."""
    return len(reply.model_dump_json(by_alias=True, exclude_none=True).encode()) <= MOST_BYTES
