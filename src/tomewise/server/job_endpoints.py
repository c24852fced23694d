"""Endpoints that start jobs, and those that show and cancel them.

The files of a form are written as they arrive into the folder of their job. The name of a file is the id of its
document and never a path: on the disk the files have numbers.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from fastapi import Request
from pydantic import ValidationError
from pydantic_core import from_json
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from tomewise import types
from tomewise.errors import UsageError
from tomewise.reading.formats import list_suffixes
from tomewise.server.bodies import MOST_ID, MOST_TEXTS, PAGE, Build, Limit, NewDocument, NewDocuments, Start
from tomewise.server.error_replies import HttpError, explain_field, make_body, refuse_price
from tomewise.server.jobs import JobList
from tomewise.server.limits import FORM
from tomewise.server.operations import BUSY, Family, Tool
from tomewise.server.ownership import TEXTS, delete_job, find_uploads
from tomewise.server.replies import JobReplies, JobReply
from tomewise.server.service import Wanted
from tomewise.server.streaming import Emit, EventStream, Produce, refuse_stopping, run_while_connected, write_event
from tomewise.store.beside import FolderBeside

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

family = Family("/api", "jobs")
_PAUSE = 0.1  # seconds between two events of one job
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
    refuse_price(None if types.Limit.parse(body.accept).holds(costs.total) else costs)
    task = {"system": costs.system, "budget": body.accept, "model": body.model}  # the system with its settings
    async with _keep_if_done(service.jobs.make_folder(tome)) as folder:
        return service.jobs.add(tome, "build", task, folder).describe()


@family.get("/jobs")
async def list_jobs(service: Wanted, start: Start = 0, limit: Limit = PAGE) -> JobReplies:
    """All jobs, the newest first."""
    jobs = service.jobs.list_all()
    return JobReplies(jobs=[job.describe() for job in jobs[start : start + limit]], total=len(jobs))


@family.get("/jobs/{id}")
async def show_job(id: str, service: Wanted) -> JobReply:
    """One job."""
    return service.jobs.find(id).describe()


@family.post("/jobs/{id}/resume", status=202, changes=True)
async def resume_job(id: str, service: Wanted) -> JobReply:
    """Do an interrupted job again. No finished call of the model is repeated."""
    return service.jobs.resume(id).describe()


@family.delete("/jobs/{id}")
async def cancel_job(id: str, service: Wanted) -> JobReply:
    """Cancel a job. What it has finished stays."""
    return (await service.jobs.cancel(id)).describe()


@family.get("/jobs/{id}/events", streams="only")
async def follow_job(id: str, request: Request, service: Wanted) -> EventStream:
    """The job as events named `job`: its whole state first, then again whenever it changes, until it ends."""
    last_words = write_event("error", make_body(refuse_stopping()))
    return EventStream(_follow(service.jobs, id), request.app.state.stopping, last_words)


@asynccontextmanager
async def _follow(jobs: JobList, id: str) -> AsyncIterator[Produce]:
    job = jobs.find(id)

    async def produce(emit: Emit) -> None:
        while True:
            emit(write_event("job", job.describe().model_dump(mode="json")))
            if not job.is_open:
                return
            await jobs.wait_for_change(job)
            await asyncio.sleep(_PAUSE)

    yield produce


async def _receive(request: Request, files: FolderBeside) -> dict[str, Any]:
    """Write what a request sends into the folder of its job. Returns the task of the job."""
    files.make()
    if request.headers.get("content-type", "").lower().startswith(FORM):
        return {"files": await _receive_files(request, files)}
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
        _check_name(document.id)
        if not document.text.strip():
            raise UsageError(f"text: that of {document.id[:60]!a} is blank: send the text of the document")
    return documents


@asynccontextmanager
async def _keep_if_done(folder: Path) -> AsyncIterator[Path]:
    """Deletes the folder of a job that does not come about."""
    try:
        yield folder
    except BaseException:
        await asyncio.to_thread(delete_job, folder)
        raise


# ---------------------------------------------------------------- the files of a form

MOST_FILES = 1000
_MOST_HEADERS = 20_000  # bytes of the headers of one part
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


async def _receive_files(request: Request, folder: FolderBeside) -> list[tuple[str, str]]:
    """Write the files of a form into a folder. Returns for each its file there and the name that the client gave.

    Raises HttpError for a form that cannot be read, that ends too early, or has too many parts.
    """
    _, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if not boundary:
        raise _refuse("its content type names no boundary")
    form = _Form(folder, frozenset(await asyncio.to_thread(list_suffixes)))  # it looks for plugins
    try:
        parser = MultipartParser(boundary, form.callbacks)
        async for chunk in request.stream():
            await asyncio.to_thread(parser.write, chunk)
    except FormParserError:  # also where the boundary is too long
        raise _refuse("its parts cannot be separated") from None
    except ClientDisconnect:
        raise _refuse("it was cut off") from None
    finally:
        form.close()
    if not form.ended:
        raise _refuse("it has no end")
    if not form.files:
        raise _refuse("it holds no file: send one or more as the field `files`")
    return form.files


def _check_name(name: str) -> str:
    """The id of a document, unchanged. Raises HttpError for one that no document can have."""
    if not name.strip() or len(name) > MOST_ID or _CONTROL.search(name):
        raise HttpError(
            "usage",
            f"the name {name[:60]!a} cannot be an id: give 1 to {MOST_ID} characters, none of them control",
        )
    return name


class _Form:
    """Takes the calls of the parser of a form. `suffixes` are those of the formats that can be read."""

    def __init__(self, folder: FolderBeside, suffixes: Collection[str]) -> None:
        self.files: list[tuple[str, str]] = []
        self._suffixes = suffixes
        self._names: set[str] = set()
        self.ended = False
        self._folder = folder
        self._file: BinaryIO | None = None
        self._parts = 0
        self._header = (bytearray(), bytearray())
        self._header_bytes = 0
        self._disposition = b""
        self.callbacks: MultipartCallbacks = {
            "on_part_begin": self._begin_part,
            "on_header_field": lambda data, start, end: self._take_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._take_header(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._open_file,
            "on_part_data": self._write,
            "on_part_end": self.close,
            "on_end": self._end,
        }

    def close(self) -> None:
        """Close the file that is being written."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _begin_part(self) -> None:
        self._parts += 1
        self._header_bytes = 0
        self._disposition = b""
        if self._parts > MOST_FILES:
            raise _refuse(f"it has more than {MOST_FILES:,} parts: send several forms")

    def _take_header(self, which: int, data: bytes) -> None:
        self._header_bytes += len(data)
        if self._header_bytes > _MOST_HEADERS:
            raise _refuse("the headers of a part are too long")
        self._header[which].extend(data)

    def _end_header(self) -> None:
        name, value = (bytes(part) for part in self._header)
        self._header = (bytearray(), bytearray())
        if name.lower() == b"content-disposition":
            self._disposition = value

    def _open_file(self) -> None:
        _, options = parse_options_header(self._disposition)
        if options.get(b"name") != b"files" or b"filename" not in options:
            raise _refuse("a part is not a file of the field `files`: nothing else belongs there")
        try:
            name = _check_name(options[b"filename"].decode("utf-8"))
        except UnicodeDecodeError:
            raise _refuse("the name of a file is not UTF-8") from None
        if name in self._names:
            raise _refuse(f"two files are named {name[:60]!a}")
        self._names.add(name)
        file = self._name_file(name)
        self.files.append((file, name))
        self._file = self._folder.create(file)

    def _name_file(self, name: str) -> str:
        """The name on the disk: a number, and the suffix by which readers know the format."""
        suffix = PurePosixPath(name).suffix.lower()
        return f"{len(self.files) + 1:04}{suffix if suffix in self._suffixes else '.txt'}"

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])

    def _end(self) -> None:
        self.ended = True


def _refuse(reason: str) -> HttpError:
    return HttpError("usage", f"the form cannot be read: {reason}")
