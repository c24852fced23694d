"""MCP resources: `tome://{tome}` and `tome://{tome}/documents/{id}`, with completion of both names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from tomewise.errors import TomewiseError, UsageError
from tomewise.language.fences import fence, neutralise
from tomewise.server.mcp_documents import cut_text, find_document, show_name
from tomewise.server.mcp_library import Library, find_tome, hide_addresses
from tomewise.server.mcp_replies import MOST_BYTES
from tomewise.server.mcp_shown import describe_tome, write_overview

if TYPE_CHECKING:
    from tomewise.tome.tome import Tome

TOME = "tome://{tome}"
DOCUMENT = "tome://{tome}/documents/{id}"
_MOST_VALUES = 100  # of a completion, by the protocol
_MOST_TEXT = MOST_BYTES - 4_000  # what is around the text takes the rest, with ids and titles of any length


class TomeResources:
    """Reads the resources of a library, and completes their names."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def read_tome(self, tome: str) -> str:
        """What a tome holds."""
        return await asyncio.to_thread(self._describe, tome)

    async def read_document(self, tome: str, id: str) -> str:
        """The text of a document between tags, from its beginning; the tool `read` returns the rest."""
        return await asyncio.to_thread(self._read, tome, id)

    async def complete(
        self,
        reference: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        """The tomes, or the documents of the tome that was chosen, whose names hold what was typed."""
        if argument.name == "tome":
            return _complete(argument.value, list(self._library.tomes))
        chosen = ((context.arguments if context else None) or {}).get("tome", "")
        if argument.name != "id" or not isinstance(reference, ResourceTemplateReference):
            return None
        book = self._find(chosen)[1]
        names = await asyncio.to_thread(book.document_names.read)
        records = await asyncio.to_thread(book.documents)
        return _complete(argument.value, [show_name(names.name(record.id)) for record in records])

    def _find(self, name: str) -> tuple[str, Tome]:
        try:
            return find_tome(name, self._library)
        except UsageError as error:
            raise ResourceNotFoundError(str(error)) from error

    def _describe(self, name: str) -> str:
        return write_overview(describe_tome(*self._find(name)))

    def _read(self, name: str, document: str) -> str:
        book = self._find(name)[1]
        try:
            record = find_document(document, book)
            text = book.store.text_between(record.id, 0, _MOST_TEXT)
        except UsageError as error:
            raise ResourceNotFoundError(hide_addresses(str(error), self._library)) from error
        except TomewiseError as error:
            raise ResourceError(hide_addresses(str(error), self._library)) from error
        own_name = book.document_names.read().name(record.id)
        names = {"document": show_name(own_name), "title": show_name(record.title)}
        fenced = fence(cut_text(text, _MOST_TEXT), "text", **names)
        if len(text) == record.characters and len(neutralise(text).encode()) <= _MOST_TEXT:
            return fenced
        return f"{fenced}\n\nThis is the beginning of {record.characters} characters: the tool read returns any part."


def _complete(typed: str, names: list[str]) -> Completion:
    matches = sorted(
        (name for name in names if typed.lower() in name.lower()),
        key=lambda name: (not name.lower().startswith(typed.lower()), name),
    )
    return Completion(values=matches[:_MOST_VALUES], total=len(matches), has_more=len(matches) > _MOST_VALUES)
