"""Choose an embedder by its name."""

from __future__ import annotations

import re

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.plugins import call_part, find_plugin
from tomewise.types import Embedder

INT8 = "all-MiniLM-L6-v2-int8"
BUNDLED = ("bundled", "all-MiniLM-L6-v2", INT8)
NAMES = (*BUNDLED, "hash", "fastembed:MODEL", "sentence-transformers:MODEL", "openai:MODEL")
_DIMENSIONS = re.compile(r"[0-9]{1,6}")


def choose_embedder(name: str, *, base_url: str | None = None, loopback_only: bool = False) -> Embedder:
    """The embedder of a name in `NAMES`; "hash:N" and "openai:MODEL@N" choose N dimensions.

    `base_url` and `loopback_only` are for the OpenAI embedder (see there). Nothing is loaded or fetched yet. The
    `name` of the returned embedder makes an equal embedder here. Raises UnknownName, which suggests the nearest names.
    """
    kind, _, model = name.partition(":")
    if name in BUNDLED:
        from tomewise.embedding.bundled import BundledMiniLM, Int8MiniLM

        return Int8MiniLM() if name == INT8 else BundledMiniLM()
    if kind == "hash" and (name == "hash" or _DIMENSIONS.fullmatch(model)):
        from tomewise.embedding.hash import HashEmbedder

        return HashEmbedder(int(model)) if model else HashEmbedder()
    if kind in ("fastembed", "sentence-transformers") and model:
        from tomewise.embedding.libraries import FastEmbed, SentenceTransformersEmbedder

        return FastEmbed(model) if kind == "fastembed" else SentenceTransformersEmbedder(model)
    if kind == "openai" and model:
        from tomewise.embedding.openai import OpenAIEmbedder

        model, dimensions = _split_dimensions(model)
        return OpenAIEmbedder(model, base_url=base_url, dimensions=dimensions, loopback_only=loopback_only)
    if (make := find_plugin("embedders", kind)) is not None:
        embedder = call_part("embedders", kind, make, model)
        if not isinstance(embedder, Embedder):
            raise UsageError(f"the plugin {kind!r} made {embedder!r}, which is not an Embedder")
        return embedder
    raise UnknownName(f"no embedder has the name {name!r}: {suggest(kind, NAMES)}known are {', '.join(NAMES)}")


def _split_dimensions(model: str) -> tuple[str, int | None]:
    stem, at, digits = model.rpartition("@")
    return (stem, int(digits)) if at and stem and _DIMENSIONS.fullmatch(digits) else (model, None)
