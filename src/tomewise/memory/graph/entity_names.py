"""Normalise the names of entities: two names are the same entity when their normalised forms are equal."""

from __future__ import annotations

import re
import unicodedata

_ASCII_GAP = re.compile(r"[^a-z0-9]+")


def normalise_name(name: str) -> str:
    """Put a name in lower case and replace everything but letters, digits and their marks with single spaces.

    All scripts are kept (NFKC, full case folding), so a name is empty only when it has no letter and no digit.
    HippoRAG 2 keeps only `A-Za-z0-9`, so that names in other scripts become empty and equal. On ASCII text this
    function differs from HippoRAG 2 only by runs of spaces.
    """
    if name.isascii():
        return _ASCII_GAP.sub(" ", name.lower()).strip()
    return " ".join(split_words(unicodedata.normalize("NFKC", name).casefold()))


def split_words(text: str) -> list[str]:
    """Split a text where `normalise_name` puts a space, with its capitals kept: `Wesson's` is two words."""
    return "".join(map(_keep_sign, unicodedata.normalize("NFKC", text))).split()


def _keep_sign(sign: str) -> str:
    if sign.isalnum():
        return sign
    kind = unicodedata.category(sign)
    if kind == "Cf":  # soft hyphens and joiners are invisible and do not separate words
        return ""
    return sign if kind.startswith("M") else " "
