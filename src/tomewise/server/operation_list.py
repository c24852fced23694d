"""The list of all operations."""

from __future__ import annotations

from tomewise.server import (
    ask_endpoints,
    evaluation_endpoints,
    job_endpoints,
    openai_api,
    server_endpoints,
    tome_endpoints,
    trace_endpoints,
)

OPERATIONS = tuple(
    operation
    for module in (
        server_endpoints,
        tome_endpoints,
        ask_endpoints,
        job_endpoints,
        trace_endpoints,
        evaluation_endpoints,
        openai_api,
    )
    for operation in module.family.operations
)
