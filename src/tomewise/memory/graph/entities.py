"""What counts as the same name: entities of a graph are told apart by their normalised form alone."""

from __future__ import annotations

import re
import unicodedata

_ASCII_GAP = re.compile(r"[^a-z0-9]+")


def normalise_name(name: str) -> str:
    """The name in lower case, with everything but letters, digits and their marks folded to single spaces.

    All scripts are kept (NFKC, full case folding), so a name is empty only when it has no letter and no digit.
    HippoRAG 2 keeps `A-Za-z0-9` alone, which makes names of other scripts empty and equal; on such text this is the
    same but for runs of spaces.
    """
    if name.isascii():
        return _ASCII_GAP.sub(" ", name.lower()).strip()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join("".join(_keep_sign(sign) for sign in folded).split())


def count_alphanumerics(name: str) -> int:
    """How many letters and digits a normalised name has."""
    return sum(sign.isalnum() for sign in name)


def _keep_sign(sign: str) -> str:
    if sign.isalnum():
        return sign
    kind = unicodedata.category(sign)
    if kind == "Cf":  # soft hyphens and joiners are invisible: they part nothing
        return ""
    return sign if kind.startswith("M") else " "
