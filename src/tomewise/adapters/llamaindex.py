"""A tome as a retriever of LlamaIndex. Needs the extra `tomewise[llamaindex]`, which is llama-index-core alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tomewise.adapters.searching import Piece, afind_pieces, find_pieces
from tomewise.errors import MissingDependency

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    raise MissingDependency(
        "a retriever for LlamaIndex needs llama-index-core: pip install 'tomewise[llamaindex]'"
    ) from error

if TYPE_CHECKING:
    from llama_index.core.callbacks import CallbackManager

    from tomewise.tome.view import TomeView

_SHOWN = ("source",)  # metadata that a model reads beside the text


class TomeRetriever(BaseRetriever):
    """Finds evidence in an open tome: `TomeRetriever(tome, limit=5).retrieve("Who forged the letter?")`.

    `system` names the system that searches; without it, the default of the tome does. `limit` bounds the nodes, as in
    `Tome.search`; `tome.within(...)` in place of the tome narrows the search. Each node has the text of a piece
    of evidence, its own id, and the metadata that `adapters.searching.find_pieces` describes, of which models are shown
    `source` alone. Raises what `Tome.search` raises.
    """

    def __init__(
        self,
        tome: TomeView,
        *,
        system: str | None = None,
        limit: int = 10,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._tome = tome
        self._system = system
        self._limit = limit

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = find_pieces(self._tome, query_bundle.query_str, self._system, self._limit)
        return [_make_node(piece) for piece in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await afind_pieces(self._tome, query_bundle.query_str, self._system, self._limit)
        return [_make_node(piece) for piece in found]


def _make_node(piece: Piece) -> NodeWithScore:
    hidden = [name for name in piece["metadata"] if name not in _SHOWN]
    node = TextNode(
        id_=piece["id"],
        text=piece["text"],
        metadata=piece["metadata"],
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=piece["score"])
