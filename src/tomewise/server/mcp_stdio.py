"""The MCP server over standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.server.mcp_app import load_server
from tomewise.server.mcp_library import FixedLibrary

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome


async def serve_stdio(name: str, book: Tome, *, write: bool = False) -> None:
    """Serve one tome until standard input ends, then close it; standard output carries the protocol alone.

    Meanwhile the package `mcp` points file 1 to standard error, so that whatever else prints goes there.
    Raises MissingDependency.
    """
    async with book:  # the connections of its model belong to this event loop
        await load_server(FixedLibrary({name: book}), write=write).run_stdio_async()
