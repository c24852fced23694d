"""A question of two steps: it names Signmark, whose passage names Finland, whose passage has the answer."""

from __future__ import annotations

from typing import Any

from tomewise.types import Document

QUESTION = "Which currency was used before the euro in the country Signmark is from?"
REWRITE = "which currency was used before the euro in the country finland is from"
TEXTS = {
    "Signmark": "Signmark is a rapper who signs his songs. He grew up in Finland.",
    "Finland": "Finland is a Nordic land. Its money was the markka before the euro.",
    "Portugal": "Portugal is a land by the sea. Its currency before the euro was the escudo.",
    "Spain": "Spain is a country whose currency before the euro was the peseta.",
}
DOCUMENTS = tuple(Document(id=title.lower(), title=title, text=text) for title, text in TEXTS.items())


def find_rewrite(pieces: list[dict[str, Any]]) -> Any:
    """The `rewrite` of the piece on Finland; no other piece has one. The giver of the name is called Signmark."""
    titles = {piece["id"]: piece["title"] for piece in pieces}
    rewrites = {piece["title"]: piece["rewrite"] for piece in pieces if piece.get("rewrite")}
    assert list(rewrites) == ["Finland"], rewrites
    rewrite = rewrites["Finland"]
    return {**rewrite, "source": titles[rewrite["source"]]} if isinstance(rewrite, dict) else rewrite
