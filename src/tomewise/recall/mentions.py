"""The entities of a graph that a question names."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from tomewise.memory.graph.entities import normalise_name
from tomewise.memory.graph.graph_names import GraphNames

if TYPE_CHECKING:
    from tomewise.store.contract import Texts

LONGEST = 10  # words of the longest entity names that are looked for
_Run = tuple[int, int]  # the first word, and the one after the last


def find_named_entities(store: Texts, names: GraphNames, question: str) -> dict[int, str]:
    """The keys of the entities that a question names, with their normalised names.

    A run of words counts if it is the name of an entity, if no longer such name contains it, and if one of its words,
    other than the question's first, is capitalised or has a digit. In a question without such a word, as people type
    them, runs of two words or more count.
    """
    words = _split_words(question)
    name_words = [place for place, word in enumerate(words) if place and _looks_like_name(word)]
    runs = {
        (start, end): normalise_name(" ".join(words[start:end]))
        for start in range(len(words))
        for end in range(start + 1, min(len(words), start + LONGEST) + 1)
        if any(start <= place < end for place in name_words) or (not name_words and end - start > 1)
    }
    ids = {run: names.entity(name) for run, name in runs.items()}
    keys = store.keys_of(set(ids.values()))
    found = [run for run, node in ids.items() if node in keys]
    longest = [run for run in found if not any(_is_inside(run, longer) for longer in found)]
    return {keys[ids[run]]: runs[run] for run in longest}


def _split_words(question: str) -> list[str]:
    """The question split where `normalise_name` puts a space, with its capitals kept: `Wesson's` is two words."""
    signs = (
        sign
        if sign.isalnum() or unicodedata.category(sign)[0] == "M"
        else ""
        if unicodedata.category(sign) == "Cf"
        else " "
        for sign in unicodedata.normalize("NFKC", question)
    )
    return "".join(signs).split()


def _looks_like_name(word: str) -> bool:
    return word[0].isupper() or any(sign.isdigit() for sign in word)


def _is_inside(run: _Run, longer: _Run) -> bool:
    return run != longer and longer[0] <= run[0] and run[1] <= longer[1]
