"""Endpoints for experiments: their tables with significance, and their rows."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tomewise.errors import UnknownName
from tomewise.server.paging import PAGE, Limit
from tomewise.server.service import Wanted

router = APIRouter(prefix="/api/evaluations", tags=["evaluations"])


@router.get("")
async def list_evaluations(
    service: Wanted, start: Annotated[int, Query(ge=0)] = 0, limit: Limit = PAGE
) -> dict[str, Any]:
    """The experiments in the folder that the server was given, the latest first."""
    folder = service.options.evaluations
    found = await asyncio.to_thread(_list, folder) if folder else []
    return {"evaluations": found[start : start + limit], "total": len(found)}


@router.get("/{name}")
async def show_evaluation(
    name: str,
    service: Wanted,
    start: Annotated[int, Query(ge=0)] = 0,
    limit: Limit = PAGE,
) -> dict[str, Any]:
    """The table of one experiment, as `tome eval report --json` prints it, and a page of its rows."""
    return await asyncio.to_thread(_show, service.options.evaluations, name, start, limit)


def _list(folder: Path) -> list[dict[str, Any]]:
    from tomewise.evaluate.results import experiments

    return [asdict(about) for about in experiments(folder)]


def _show(folder: Path | None, name: str, start: int, limit: int) -> dict[str, Any]:
    from tomewise.evaluate.report import as_json
    from tomewise.evaluate.results import experiments, folder_of, read_results
    from tomewise.evaluate.table import tabulate

    if folder is None or name not in [about.name for about in experiments(folder)]:
        raise UnknownName(f"no evaluation {name[:200]!a} here: GET /api/evaluations lists them")
    results = read_results(folder_of(folder, name))
    rows = [asdict(row) for row in results.rows[start : start + limit]]
    return {"table": as_json(tabulate(results)), "rows": rows, "total": len(results.rows)}
