"""Which option sentences support best, and the sentence on which it rests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.language.extractive.question_words import ParsedQuestion
from tomewise.language.extractive.quotable import Candidate
from tomewise.language.extractive.salience import coverage, rarity, weigh
from tomewise.language.extractive.words import list_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

_READ = 2000  # characters of an option
_UNSEEN = 3.0  # the weight of a word of an option that is in no sentence
_EXCEPT = re.compile(r"\b(?:except|NOT|least likely|incorrect|untrue|false)\b")


def choose_option(
    question: ParsedQuestion, options: Sequence[str], candidates: Sequence[Candidate], cosines: NDArray[np.float32]
) -> tuple[int, int]:
    """The number of the option with the most support, and that of the sentence on which it rests.

    `cosines` (sentences, options) are those of each sentence with the question and the option.
    """
    words = _measure_words(question, options, candidates)
    support = words + cosines
    best = np.sort(support, axis=0)[-2:].mean(axis=0)
    option = int(np.argmin(best) if _EXCEPT.search(question.text) else np.argmax(best))
    return option, int(np.argmax(support[:, option]))


def _measure_words(
    question: ParsedQuestion, options: Sequence[str], candidates: Sequence[Candidate]
) -> NDArray[np.float64]:
    """The share of each option's own words that each sentence has (sentences, options); around it they count less."""
    bags = [set(list_terms(option[:_READ])) for option in options]
    bags = [bag - set(question.terms) or bag for bag in bags]
    common = set.intersection(*bags) if len(bags) > 1 else set()
    idf = rarity([each.bag for each in candidates])
    weights = [weigh(sorted(bag - common or bag), idf, _UNSEEN) for bag in bags]
    return np.array(
        [
            [
                0.6 * coverage(each, candidate.bag) + 0.4 * coverage(each, candidate.bag | candidate.around)
                for each in weights
            ]
            for candidate in candidates
        ]
    )
