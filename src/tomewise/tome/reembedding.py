"""Another embedder for a tome: all vectors are made anew, and all that a model wrote stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tomewise.memory.edge_rows import split_rows
from tomewise.memory.graph.graph_rows import find_synonyms, format_fact
from tomewise.memory.growing_tree.memtree_names import MEMTREE
from tomewise.memory.schemata.schemata_names import SCHEMATA, SchemataNames
from tomewise.memory.tree.tree_layer import NAME as TREE
from tomewise.store.lookups import read_setting, read_vectors
from tomewise.store.records import BUILDS, PASSAGES, SETTINGS
from tomewise.store.rights import work_alone
from tomewise.tome.fixed_settings import ADDRESS_KEY, find_address
from tomewise.types import Embedder, Progress, Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tomewise.store.contract import Store

_ENTITIES, _FACTS, _SYNONYMS = "entities:", "facts:", "synonyms:"  # how the spaces of a graph begin
_BATCH = 64  # texts to embed before each report of progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedding:
    """What another embedder takes: the texts to embed by space, their tokens, and the passages that it sees in part.

    `sizes` are the settings that passages to come get, where they change. `grouped` are layers whose clusters the
    vectors of before formed: they stay as they are until they are built again.
    """

    embedder: str
    texts: Mapping[str, int]
    tokens: int
    cut: int
    sizes: Mapping[str, int]
    grouped: tuple[str, ...]


def foresee_reembedding(store: Store, embedder: Embedder) -> Reembedding:
    """What `replace_embedder` will take. Embeds nothing."""
    counts: dict[str, int] = {}
    tokens = cut = 0
    for space in _list_spaces(store):
        texts = list(_load_texts(store, space).values())
        lengths = [len(found.ids) for found in embedder.tokenizer.encode_batch_fast(texts)]
        counts[space] = len(texts)
        tokens += sum(lengths)
        cut += sum(size > embedder.max_tokens for size in lengths) if space == PASSAGES else 0
    grouped = tuple(layer for layer in store.notes(BUILDS) if layer.partition(":")[0] in (TREE, SCHEMATA, MEMTREE))
    sizes = {
        name: size for name, size in _find_sizes(store, embedder).items() if str(size) != read_setting(store, name)
    }
    return Reembedding(embedder=embedder.name, texts=counts, tokens=tokens, cut=cut, sizes=sizes, grouped=grouped)


def replace_embedder(store: Store, embedder: Embedder, report: Report) -> None:
    """Give the tome this embedder: all vectors, and the synonyms of graphs. In one transaction, so all or nothing.

    Raises Locked.
    """
    with work_alone(store, "reembed"):
        texts = {space: _load_texts(store, space) for space in _list_spaces(store)}
        total = sum(map(len, texts.values()))
        rows: dict[str, NDArray[np.float32]] = {}
        done = 0
        for space, found in texts.items():
            parts = [np.empty((0, embedder.dimensions), np.float32)]
            words = list(found.values())
            for start in range(0, len(words), _BATCH):
                parts.append(embedder.embed(words[start : start + _BATCH]))
                done += len(parts[-1])
                report(Progress(label="texts embedded", done=done, total=total))
            rows[space] = np.concatenate(parts)
        synonyms = {
            _SYNONYMS + space.removeprefix(_ENTITIES): find_synonyms(store.nodes_at(found), rows[space])
            for space, found in texts.items()
            if space.startswith(_ENTITIES)
        }
        settings = {"embedder": embedder.name, "dimensions": str(embedder.dimensions)}
        settings |= {name: str(size) for name, size in _find_sizes(store, embedder).items()}
        if address := find_address(embedder):
            settings[ADDRESS_KEY] = address
        with store.write() as change:
            for name, value in settings.items():
                change.put_note(SETTINGS, name, value)
            for space, found in texts.items():
                change.put_vectors(space, list(found), rows[space], replace=True)
            for layer in change.note_names(BUILDS):
                if layer.partition(":")[0] == SCHEMATA:  # the next build makes all lists of the new vectors
                    change.remove_edges(SchemataNames(layer).lists)
            for space, pairs in synonyms.items():
                change.remove_edges(space)
                change.put_edges(space, *split_rows(pairs))


def _find_sizes(store: Store, embedder: Embedder) -> dict[str, int]:
    """The size and the overlap of passages to come, in tokens: as before, as far as the embedder sees them."""
    size = min(int(read_setting(store, "passage_tokens") or embedder.max_tokens), embedder.max_tokens)
    return {"passage_tokens": size, "overlap": min(int(read_setting(store, "overlap") or 0), size // 2)}


def _list_spaces(store: Store) -> list[str]:
    names = [name for name in store.versions() if name.startswith("vectors/")]
    return sorted(name.removeprefix("vectors/") for name, space in store.arrays(names).items() if len(space.keys))


def _load_texts(store: Store, space: str) -> dict[int, str]:
    """The texts behind the vectors of a space, by the keys of their nodes."""
    keys = read_vectors(store, space).keys.tolist()
    if space == PASSAGES:
        return {key: passage.content for key, passage in store.passages(keys).items()}
    nodes = store.nodes_at(keys)
    return {key: format_fact(node) if space.startswith(_FACTS) else node.text for key, node in nodes.items()}
