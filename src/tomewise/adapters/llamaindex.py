"""A tome as a retriever of LlamaIndex. Needs the extra `tomewise[llamaindex]`, which is llama-index-core alone."""

from __future__ import annotations

from collections.abc import Sequence
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

    from tomewise.tome.tome import Tome

_SHOWN = ("source",)  # metadata that a model reads beside the text


class TomeRetriever(BaseRetriever):
    """Finds evidence in an open tome: `TomeRetriever(tome, limit=5).retrieve("Who forged the letter?")`.

    `system` names the system that searches; without it, the default of the tome does. `limit` bounds the nodes;
    `documents` and `where` narrow the search, all as in `Tome.search`. Each node has the text of a piece of evidence,
    its own id, and the metadata that `adapters.searching.find_pieces` describes, of which models are shown `source`
    alone. Raises what `Tome.search` raises.
    """

    def __init__(
        self,
        tome: Tome,
        *,
        system: str | None = None,
        limit: int = 10,
        documents: Sequence[str] = (),
        where: Sequence[str] = (),
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._tome = tome
        self._narrowing = {"system": system, "limit": limit, "documents": documents, "where": where}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_make_node(piece) for piece in find_pieces(self._tome, query_bundle.query_str, **self._narrowing)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            _make_node(piece) for piece in await afind_pieces(self._tome, query_bundle.query_str, **self._narrowing)
        ]


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
