"""Endpoints that start jobs, and those that show and cancel them."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import Request
from pydantic import ValidationError
from pydantic_core import from_json

from tomewise.beside import FolderBeside
from tomewise.errors import UsageError
from tomewise.outgoing.report_models import BuildCosts
from tomewise.server.bodies import MOST_TEXTS, PAGE, Accepted, Build, Limit, NewDocument, NewDocuments, Start
from tomewise.server.error_replies import HttpError, explain_field, make_body
from tomewise.server.jobs import JobList
from tomewise.server.limits import FORM
from tomewise.server.operations import BUSY, Family, Tool
from tomewise.server.ownership import TEXTS, delete_job, find_uploads
from tomewise.server.replies import JobReplies, JobReply
from tomewise.server.service import Wanted
from tomewise.server.streaming import Emit, EventStream, Produce, refuse_stopping, run_while_connected, write_event
from tomewise.server.uploads import check_name, receive_files

family = Family("/api", "jobs")
_PAUSE = 0.1  # seconds between two events of one job
_OVER = 1.1  # an estimate may be so much too low
_DOCUMENT = NewDocument.model_json_schema()
_DOCUMENTS = {
    "type": "object",
    "required": ["documents"],
    "additionalProperties": False,
    "properties": {"documents": {"type": "array", "minItems": 1, "maxItems": MOST_TEXTS, "items": _DOCUMENT}},
}
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"anyOf": [_DOCUMENT, _DOCUMENTS]}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {"files": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            },
        },
    }
}


@family.post(
    "/tomes/{tome}/documents",
    status=202,
    more=_FORM,
    errors=("busy", "disk_full"),
    changes=True,
    tool=Tool(name="add_text", title="Add a text", destroys=True),
)
async def add_documents(tome: str, request: Request, service: Wanted) -> JobReply:
    """Add documents in one job: files of a form, each under the relative path that comes with it, or texts as JSON."""
    await service.library.open(tome)
    with service.library.hold(tome):
        async with _keep_if_done(service.jobs.make_folder(tome)) as folder:
            task = await _receive(request, find_uploads(folder))
            return service.jobs.add(tome, "add", task, folder).describe()


@family.post(
    "/tomes/{tome}/builds",
    status=202,
    errors=(*BUSY, "estimate", "missing_dependency", "disk_full"),
    changes=True,
    tool=Tool(name="build", title="Build memory layers", asks_model=True),
)
async def build(tome: str, body: Build, request: Request, service: Wanted) -> JobReply:
    """Build the layers of a system, if its estimate is within what is accepted; else 409 with the estimate."""
    costs = await run_while_connected(request, service.estimate(tome, body))
    _check_costs(costs, body.accept)
    cost = None if body.accept.cost is None else body.accept.cost * _OVER
    bounds = service.options.bounds.narrow(math.ceil(body.accept.calls * _OVER), None, cost)
    task = {"system": costs.system, "bounds": asdict(bounds), "model": body.model}  # the system with its settings
    async with _keep_if_done(service.jobs.make_folder(tome)) as folder:
        return service.jobs.add(tome, "build", task, folder).describe()


@family.get("/jobs")
async def list_jobs(service: Wanted, start: Start = 0, limit: Limit = PAGE) -> JobReplies:
    """All jobs, the newest first."""
    jobs = service.jobs.list_all()
    return JobReplies(jobs=[job.describe() for job in jobs[start : start + limit]], total=len(jobs))


@family.get("/jobs/{id}", errors=("unknown_name",))
async def show_job(id: str, service: Wanted) -> JobReply:
    """One job."""
    return service.jobs.find(id).describe()


@family.post("/jobs/{id}/resume", status=202, errors=("unknown_name",), changes=True)
async def resume_job(id: str, service: Wanted) -> JobReply:
    """Do an interrupted job again. No finished call of the model is repeated."""
    return service.jobs.resume(id).describe()


@family.delete("/jobs/{id}", errors=("unknown_name",))
async def cancel_job(id: str, service: Wanted) -> JobReply:
    """Cancel a job. What it has finished stays."""
    return (await service.jobs.cancel(id)).describe()


@family.get("/jobs/{id}/events", errors=("unknown_name",), streams="only")
async def follow_job(id: str, request: Request, service: Wanted) -> EventStream:
    """The job as events named `job`: its whole state first, then again whenever it changes, until it ends."""
    last_words = write_event("error", make_body(refuse_stopping()))
    return EventStream(_follow(service.jobs, id), request.app.state.stopping, last_words)


@asynccontextmanager
async def _follow(jobs: JobList, id: str) -> AsyncIterator[Produce]:
    job = jobs.find(id)

    async def produce(emit: Emit) -> None:
        while True:
            emit(write_event("job", job.describe().write()))
            if job.state not in ("queued", "waiting", "running"):
                return
            await jobs.wait_for_change(job)
            await asyncio.sleep(_PAUSE)

    yield produce


async def _receive(request: Request, files: FolderBeside) -> dict[str, Any]:
    """Write what a request sends into the folder of its job. Returns the task of the job."""
    files.make()
    if request.headers.get("content-type", "").lower().startswith(FORM):
        return {"files": await receive_files(request, files)}
    return {"files": [], "texts": await asyncio.to_thread(_keep_documents, await request.body(), files)}


def _keep_documents(body: bytes, files: FolderBeside) -> int:
    """Write the documents of a body into the folder of their job. Returns how many there are. Raises UsageError."""
    documents = _read_documents(body)
    with files.write(TEXTS) as file:
        file.write(json.dumps([document.model_dump() for document in documents], ensure_ascii=False).encode())
    return len(documents)


def _read_documents(body: bytes) -> list[NewDocument]:
    try:
        sent = from_json(body)
        if isinstance(sent, dict) and "documents" in sent:
            documents = NewDocuments.model_validate_json(body).documents
        else:
            documents = [NewDocument.model_validate_json(body)]
    except ValidationError as error:
        raise UsageError(explain_field(error.errors(include_input=False, include_url=False)[0])) from None
    except ValueError:
        raise UsageError(explain_field({"type": "json_invalid"})) from None
    for document in documents:
        check_name(document.id)
        if not document.text.strip():
            raise UsageError(f"text: that of {document.id[:60]!a} is blank: send the text of the document")
    return documents


def _check_costs(costs: BuildCosts, accept: Accepted) -> None:
    total = costs.total
    too_many = total.calls > accept.calls
    too_dear = accept.cost is not None and (total.cost is None or total.cost > accept.cost)
    if too_many or too_dear:
        price = "an unknown price" if total.cost is None else f"${total.cost:.4f}"
        enough: dict[str, Any] = {"calls": total.calls}
        if accept.cost is not None and total.cost is not None:
            enough["cost"] = math.ceil(total.cost * 10_000) / 10_000
        message = (
            f"the build needs {total.calls:,} calls at {price}, more than `accept` allows: "
            f'to go on, send "accept": {json.dumps(enough)}'
        )
        raise HttpError("estimate", message, more={"estimate": costs.write()})


@asynccontextmanager
async def _keep_if_done(folder: Path) -> AsyncIterator[Path]:
    """Deletes the folder of a job that does not come about."""
    try:
        yield folder
    except BaseException:
        await asyncio.to_thread(delete_job, folder)
        raise
