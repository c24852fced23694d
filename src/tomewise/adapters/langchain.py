"""A tome as a retriever of LangChain. Needs the extra `tomewise[langchain]`, which is langchain-core alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tomewise.adapters.searching import Piece, afind_pieces, find_pieces
from tomewise.errors import MissingDependency, UsageError, suggest
from tomewise.tome.view import TomeView

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ModuleNotFoundError as error:
    raise MissingDependency(
        "a retriever for LangChain needs langchain-core: pip install 'tomewise[langchain]'"
    ) from error

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun


class TomeRetriever(BaseRetriever):
    """Finds evidence in an open tome: `TomeRetriever(tome=tome, limit=5).invoke("Who forged the letter?")`.

    `system` names the system that searches; without it, the default of the tome does. `limit` bounds the documents,
    as in `Tome.search`; `tome.within(...)` in place of the tome narrows the search. Each document has the text of a
    piece of evidence, its node as `id`, and the metadata that `adapters.searching.find_pieces` describes. Raises
    UsageError for an unknown argument or one of another type, and what `Tome.search` raises.
    """

    tome: TomeView
    system: str | None = None
    limit: int = 10

    def __init__(self, **given: Any) -> None:
        for name in given:
            if name not in type(self).model_fields:
                known = sorted(type(self).model_fields)
                raise UsageError(f"{name!r} is not an argument: {suggest(name, known)}known are {', '.join(known)}")
        try:
            super().__init__(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            raise UsageError(f"{name}: {first['msg']}, not {first['input']!r:.200}") from None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [_make_document(piece) for piece in find_pieces(self.tome, query, self.system, self.limit)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_make_document(piece) for piece in await afind_pieces(self.tome, query, self.system, self.limit)]


def _make_document(piece: Piece) -> Document:
    return Document(page_content=piece["text"], metadata=piece["metadata"], id=piece["id"])
