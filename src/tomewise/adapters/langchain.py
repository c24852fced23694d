"""A tome as a retriever of LangChain. Needs the extra `tomewise[langchain]`, which is langchain-core alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.adapters.searching import Piece, Search
from tomewise.errors import MissingDependency
from tomewise.tome.tome import Tome

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

    `system` names the system that searches; without it, the default of the tome does. `limit` bounds the documents;
    `documents` and `where` narrow the search, all as in `Tome.search`. Each document has the text of a piece of
    evidence, its node as `id`, and the metadata that `adapters.searching.Search` describes. Raises what `Tome.search`
    raises.
    """

    tome: Tome
    system: str | None = None
    limit: int = 10
    documents: tuple[str, ...] = ()
    where: tuple[str, ...] = ()

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [_make_document(piece) for piece in self._search.run(query)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_make_document(piece) for piece in await self._search.arun(query)]

    @property
    def _search(self) -> Search:
        return Search(tome=self.tome, system=self.system, limit=self.limit, documents=self.documents, where=self.where)


def _make_document(piece: Piece) -> Document:
    return Document(page_content=piece["text"], metadata=piece["metadata"], id=piece["node"])
