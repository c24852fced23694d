"""The models that a chat client may choose: a tome and a system that can answer now."""

from __future__ import annotations

import asyncio

from tomewise.errors import TomewiseError
from tomewise.server.library import Library


async def list_models(library: Library) -> list[str]:
    """`TOME/SYSTEM`, sorted by tome, the systems in their own order. Tomes that cannot be opened are left out."""
    models = []
    for name in await asyncio.to_thread(library.names):
        try:
            known = await library.find(name)
            ready = await asyncio.to_thread(known.readiness.list_ready)
        except TomewiseError:
            continue
        models += [f"{name}/{system}" for system in ready]
    return models
