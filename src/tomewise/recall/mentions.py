"""The entities of a graph that a question names."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tomewise.memory.graph.entity_names import normalise_name
from tomewise.memory.graph.graph_names import GraphNames
from tomewise.store.lookups import find_keys

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
    runs = _list_runs(question)
    ids = {run: names.entity(name) for run, name in runs.items()}
    keys = find_keys(store, set(ids.values()))
    return {keys[ids[run]]: runs[run] for run in _select_longest([run for run, node in ids.items() if node in keys])}


def select_named(question: str, names: Collection[str]) -> list[str]:
    """Those of these normalised names that a question names, by the same rule."""
    wanted = set(names)
    runs = {run: name for run, name in _list_runs(question).items() if name in wanted}
    return [runs[run] for run in _select_longest(list(runs))]


def _list_runs(question: str) -> dict[_Run, str]:
    """The runs of words that may be names, normalised."""
    words = _split_words(question)
    normal = [normalise_name(word) for word in words]
    name_words = [place for place, word in enumerate(words) if place and _looks_like_name(word)]
    return {
        (start, end): " ".join(normal[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(len(words), start + LONGEST) + 1)
        if any(start <= place < end for place in name_words) or (not name_words and end - start > 1)
    }


def _select_longest(runs: Sequence[_Run]) -> list[_Run]:
    """The runs that no other contains."""
    return [run for run in runs if not any(_is_inside(run, longer) for longer in runs)]


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
