"""Tokens that reading the sample story takes, with one passage in a call and with several.

    python bench/together.py

The memory is that of `bench/loop.py`: 59 passages, and the gists and facts that a strong model wrote. Each layer
estimates what a chat model would be sent for all of it. Tokens are of four bytes; nothing is asked. Replies are not
counted, since they do not depend on `together`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from loop import MEMORY, build_memory
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.language.chat import ChatModel
from tomewise.memory.episodes import EpisodesLayer
from tomewise.memory.gists import GistsLayer
from tomewise.memory.graph.graph_layer import GraphLayer
from tomewise.memory.tree.tree_layer import TreeLayer
from tomewise.store.contract import Store
from tomewise.store.records import PASSAGES
from tomewise.tome.tome import Tome
from tomewise.types import Change, Embedder, Estimate, Layer

SIZES = (1, 2, 4, 8)
MakeLayer = Callable[[int], Layer]


def list_layers(store: Store, embedder: Embedder) -> Mapping[str, MakeLayer]:
    """The layers to measure by name, each made for a number of passages in a call."""
    model = ChatModel("openai:gpt-4o-mini", api_key="none")
    return {
        "gists": lambda size: GistsLayer(store, model, together=size),
        "facts of passages": lambda size: GraphLayer(store, model, embedder, together=size),
        "facts of gists": lambda size: GraphLayer(store, model, embedder, source="gists", together=size),
        "tree": lambda _: TreeLayer(store, model, embedder),
        "episodes": lambda _: EpisodesLayer(store, model, embedder),
    }


async def estimate(store: Store, layer: Layer) -> Estimate:
    """What making the layer would take."""
    (needed,) = layer.needs
    return await layer.estimate(Change(added=tuple(store.node_keys(needed))))


def main() -> None:
    if not MEMORY.is_file():
        print(f"skipped: {MEMORY} is absent, which holds the recorded replies of a strong model")
        return
    embedder = choose_embedder("bundled")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "story.tome"
        build_memory(path, embedder, ["cogitorag"])  # for its gists; layers that are built need no calls
        with Tome.open(path, embedder=embedder, read_only=True) as tome:
            passages = len(tome.store.node_keys(PASSAGES))
            print(
                f"{passages} passages\n\n| calls, tokens in | "
                + " | ".join(f"together={size}" for size in SIZES)
                + " |"
            )
            print("| --- |" + " ---: |" * len(SIZES))
            for name, make in list_layers(tome.store, embedder).items():
                found = [asyncio.run(estimate(tome.store, make(size))) for size in SIZES]
                costs = (f"{each.cost.calls}, {each.cost.input_tokens:,}" for each in found)
                print(f"| {name} | {' | '.join(costs)} |")


if __name__ == "__main__":
    main()
