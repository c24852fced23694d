"""What a job does: add what was uploaded, or build the layers of a system."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tomewise.errors import ReadingError, UsageError
from tomewise.reading.read import NamedFile
from tomewise.server.choosing import choose_bounded
from tomewise.server.library import Library
from tomewise.server.options import Bounds
from tomewise.server.ownership import find_upload
from tomewise.tome.reports import build_json, usage_json
from tomewise.tome.tome import Tome
from tomewise.types import Document, Progress

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Report:
    """What a job did: what the command line prints as JSON, and the usage."""

    report: dict[str, Any]
    usage: dict[str, Any] | None = None


async def work_on(
    library: Library, name: str, kind: str, task: dict[str, Any], folder: Path, on_progress: OnProgress
) -> Report:
    """Do the job. Raises Locked while another program writes the tome, and the errors of `Tome.add` and `build`."""
    tome = await library.open(name)
    if kind == "add":
        return await _add(tome, task, folder, on_progress)
    return await _build(library, tome, task, on_progress)


async def _add(tome: Tome, task: dict[str, Any], folder: Path, on_progress: OnProgress) -> Report:
    sources: list[NamedFile | Document] = [NamedFile(find_upload(folder, file), name) for file, name in task["files"]]
    if text_file := task.get("document"):
        fields = await asyncio.to_thread(_read_json, find_upload(folder, text_file))
        sources.append(Document(**fields))
    report = await tome.aadd(*sources, keep_going=len(sources) > 1, on_progress=on_progress)
    if report.skipped and len(report.skipped) == len(sources):
        raise ReadingError(next(iter(report.skipped.values())))
    return Report(asdict(report))


async def _build(library: Library, tome: Tome, task: dict[str, Any], on_progress: OnProgress) -> Report:
    bounds = Bounds(**task["bounds"])
    await library.import_client()
    with library.budget(bounds):
        built = await tome.abuild(choose_bounded(task["system"], task["settings"]), on_progress=on_progress)
    return Report(await asyncio.to_thread(build_json, built, tome.store), usage_json(built.usage))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the text of this job is gone ({type(error).__name__}): send it again") from error
    return fields
