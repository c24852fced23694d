"""Endpoints for the page that a browser shows, and for the sample that a first visit offers."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from tomewise.errors import UnknownName
from tomewise.server.replies import Sample, SampleQuestion
from tomewise.web import PAGE, Asset, list_assets

router = APIRouter()
_GREETING = "Tomewise is serving. What it can do is described at /openapi.json\n"


@router.get("/", include_in_schema=False)
async def show_page(request: Request) -> Response:
    """The page for a browser, a line of text for everyone else."""
    if "text/html" in request.headers.get("accept", ""):
        return _reply(request, list_assets()[PAGE])
    return PlainTextResponse(_GREETING)


@router.get("/assets/{name:path}", include_in_schema=False)
async def show_asset(name: str, request: Request) -> Response:
    """A file of the page. A browser keeps it, and asks each time whether it changed."""
    if name not in list_assets():
        raise UnknownName(f"no file {name[:100]!a} belongs to the page: open / to see it")
    return _reply(request, list_assets()[name])


@router.get("/api/sample", tags=["server"])
async def show_sample() -> Sample:
    """The bundled story as a document to add, and questions about it."""
    from tomewise.sample import STORY, read_questions

    asked = [SampleQuestion.of(each) for each in read_questions()]
    return Sample(id=STORY.name, text=STORY.read_text(encoding="utf-8"), questions=asked)


def _reply(request: Request, asset: Asset) -> Response:
    headers = {"etag": asset.etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.body, headers=headers, media_type=asset.media_type)
