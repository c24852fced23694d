"""How long a text may be that MCP adds, and so how large a request may be."""

from __future__ import annotations

_ESCAPED = 12  # bytes of one character in JSON where it is written as two escapes of \uXXXX
_AROUND = 1_000_000  # bytes for the other fields

MOST_ADDED = 2_000_000  # characters of a text to add
MCP_BYTES = _ESCAPED * MOST_ADDED + _AROUND  # of a request
