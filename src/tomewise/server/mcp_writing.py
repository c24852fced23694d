"""The MCP tools that change a tome: add_text, remove_document, build. A server offers them only if it may write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from tomewise.errors import UsageError
from tomewise.server.choosing import choose_bounded, choose_naming
from tomewise.server.mcp_documents import find_document, show_name
from tomewise.server.mcp_library import Library, find_tome
from tomewise.server.mcp_progress import send_progress
from tomewise.server.mcp_replies import make_reply
from tomewise.server.mcp_results import (
    AddResult,
    BuildResult,
    CountedLayer,
    CountedReport,
    RemoveResult,
    neutralise_result,
)
from tomewise.server.mcp_sizes import MOST_ADDED
from tomewise.server.mcp_tools import Name, TomeName, report_errors
from tomewise.tome.foresight import foresee_removal
from tomewise.tome.reports import describe_build, describe_costs
from tomewise.types import Document

if TYPE_CHECKING:
    from tomewise.types import Progress

_MOST_FAILURES = 5  # failed nodes that a report names for each layer


class WritingTools:
    """Each public method is a tool; its signature and docstring are what a client sees."""

    def __init__(self, library: Library) -> None:
        self.library = library

    @report_errors
    async def add_text(
        self,
        id: Annotated[Name, Field(min_length=1, description="The id of the document.")],
        text: Annotated[str, Field(max_length=MOST_ADDED)],
        context: Context[Any, Any],
        title: Name = "",
        tome: TomeName = "",
    ) -> Annotated[CallToolResult, AddResult]:
        """Remember a text as a document. A document that was added so under the same id is replaced."""
        _, book = find_tome(tome, self.library)
        async with send_progress(context) as notify:
            document = Document(id=id, text=text, title=title)
            report = await book.aadd(document, on_progress=partial(_notify_progress, notify))
        outcome = "added" if report.added else "replaced" if report.replaced else "unchanged"
        values = {"document": id, "outcome": outcome, "passages": report.passages}
        result = neutralise_result(AddResult.of(values, choose_naming(book)))
        return make_reply(result, f"{outcome}: {result.document}, {report.passages} new passages")

    @report_errors
    async def remove_document(
        self,
        document: Annotated[Name, Field(description="The whole id or title.")],
        accept_paid: Annotated[
            int, Field(ge=0, description="Remove if at most so many memories go that a model was paid for.")
        ] = 0,
        tome: TomeName = "",
    ) -> Annotated[CallToolResult, RemoveResult]:
        """Forget a document and everything that was derived from it alone. This cannot be undone.

        Where memory would go that a model was paid for, nothing is removed until that is accepted; the result says
        what.
        """
        _, book = find_tome(tome, self.library)
        found = await asyncio.to_thread(find_document, document, book)
        own_name = (await asyncio.to_thread(book.document_names.read)).name(found.id)
        names = (own_name, found.id, found.title)
        if document not in (*names, *map(show_name, names)):
            raise UsageError(f"{show_name(document)!r} is not a whole id: did you mean {show_name(own_name)!r}?")
        foresight = await asyncio.to_thread(foresee_removal, [found.id], book.store)
        paid = sum(foresight.paid.values())
        more = {"document": found.id, "removed": paid <= accept_paid, "derived": foresight.derived}
        result = neutralise_result(RemoveResult.of(foresight, choose_naming(book), **more))
        what = f"{result.document}, {result.passages} passages, {result.derived} derived"
        if not result.removed:
            result.rest = f"Nothing was removed. To remove, call remove_document again with accept_paid={paid}."
            return make_reply(result, f"This would remove {what}, {paid} of them made by {', '.join(result.paid)}")
        await book.aremove(found)
        return make_reply(result, f"removed: {what}")

    @report_errors
    async def build(
        self,
        system: Annotated[Name, Field(description="The system whose memory layers to build.")],
        context: Context[Any, Any],
        accept_calls: Annotated[int, Field(ge=0, description="Build if it takes at most so many model calls.")] = 0,
        tome: TomeName = "",
    ) -> Annotated[CallToolResult, BuildResult]:
        """Build the memory layers that a system needs; without accepted calls return what that would cost."""
        _, book = find_tome(tome, self.library)
        variant = choose_bounded(system, {})
        estimates = await book.aestimate(variant)
        estimate = await asyncio.to_thread(describe_costs, estimates, variant, book.kit.model.name)
        calls = estimate.total.calls
        if calls > accept_calls:
            rest = f"Nothing was built. To build, call build again with accept_calls={calls}."
            result = BuildResult(built=False, estimate=estimate, rest=rest)
            return make_reply(
                result, f"This build takes about {calls} model calls, repairs on top: {estimate.total.write()}"
            )
        async with send_progress(context) as notify:
            report = await book.abuild(variant, on_progress=partial(_notify_progress, notify))
        whole = await asyncio.to_thread(describe_build, report, book.store, choose_naming(book))
        layers = [
            CountedLayer.of(layer, failures=len(layer.failed), failed=layer.failed[:_MOST_FAILURES])
            for layer in whole.layers
        ]
        shown = neutralise_result(CountedReport(layers=layers, usage=whole.usage))
        text = "\n".join(f"{layer.layer}: {layer.added} added, {layer.failures} failed" for layer in shown.layers)
        return make_reply(
            BuildResult(built=True, estimate=estimate, report=shown, rest=""), text or "Nothing to build."
        )


def _notify_progress(notify: Callable[[str], None], progress: Progress) -> None:
    counted = f"{progress.label}: {progress.done} of {progress.total}" if progress.total else progress.label
    notify(progress.note or counted)
