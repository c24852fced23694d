"""Which option sentences support best, and the sentence on which it rests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tomewise.language.extractive.candidates import Candidate
from tomewise.language.extractive.question_words import ParsedQuestion
from tomewise.language.extractive.relevance import Line
from tomewise.language.extractive.salience import coverage, rarity, weigh
from tomewise.text.words import list_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_OPTIONS = 60  # that are compared
_READ = 2000  # characters of an option
_UNSEEN = 3.0  # the weight of a word of an option that is in no sentence
_CARRIED = 0.5  # the share of an option's own words that the sentence beside it has at least


def choose_option(
    question: ParsedQuestion, options: Sequence[str], candidates: Sequence[Candidate], cosines: NDArray[np.float32]
) -> tuple[int, int] | None:
    """The number of the option with the most support, and that of the sentence on which it rests.

    None where no sentence has enough words of this option. `cosines` (sentences, options) are those of each sentence
    with the question and the option.
    """
    idf = rarity([each.bag for each in candidates])
    inside, near = measure_words(question, options, candidates, idf)
    support = 0.6 * inside + 0.4 * near + cosines
    option = int(np.argmax(np.sort(support, axis=0)[-2:].mean(axis=0)))
    is_carrier = inside[:, option] >= _CARRIED
    return (option, int(np.argmax(np.where(is_carrier, support[:, option], -np.inf)))) if is_carrier.any() else None


def measure_words(
    question: ParsedQuestion, options: Sequence[str], sentences: Sequence[Candidate | Line], idf: Mapping[str, float]
) -> NDArray[np.float64]:
    """The share of each option's own words that each sentence has, and that it has together with what is around it.

    The two are stacked: (2, sentences, options).
    """
    bags = [set(list_terms(option[:_READ])) for option in options]
    bags = [bag - set(question.terms) or bag for bag in bags]
    common = set.intersection(*bags) if len(bags) > 1 else set()
    weights = [weigh(sorted(bag - common or bag), idf, _UNSEEN) for bag in bags]
    return np.array(
        [
            [[coverage(each, bag) for each in weights] for bag in bags_of_sentences]
            for bags_of_sentences in zip(*((each.bag, each.bag | each.around) for each in sentences), strict=True)
        ]
    )
