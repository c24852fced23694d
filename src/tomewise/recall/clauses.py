"""Whether a question asks for one thing, judged by its words."""

from __future__ import annotations

import re

_ASKING = re.compile(r"\b(?:who|whom|whose|what|which|when|where|why|how|did|does)\b", re.IGNORECASE)
# Words that join two things or compare them. Without any, a question has one part, however long.
_JOINING = re.compile(
    r"\b(?:and|or|nor|both|either|neither|versus|vs|than|between|same|different|differ\w*|compar\w*|besides|also|plus"
    r"|respectively|in common|as well as|other)\b|[&/;:]|\?.*\w",
    re.IGNORECASE | re.DOTALL,
)
_MOST_COMMAS = 1  # a list has more


def has_one_clause(question: str) -> bool:
    """Whether nothing in a question in English joins or compares two things, so that there is nothing to split.

    It looks at words and marks alone, so it errs towards False: that costs a call. It is False for a question that has
    none of the English question words, since the joining words of other languages are not known here. Relative clauses
    count as part of their clause: a question that leads from one thing to the next is not split either.
    """
    return bool(_ASKING.search(question)) and question.count(",") <= _MOST_COMMAS and not _JOINING.search(question)
