"""Whether a question asks for the whole of a text, as its form shows."""

from __future__ import annotations

import re

_READ = 4_000  # characters of a question that are read
_WORK = (
    r"(?:book|novel|story|tale|text|document|report|meeting|transcript|conversation|discussion|play|film|case|plot"
    r"|article|paper)s?"
)
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"\A\W*(?:please\s+|(?:can|could|would)\s+you\s+(?:please\s+)?)?(?:summari[sz]e|recap|outline|retell)\b",
        r"\b(?:give|write|provide|make|prepare)\b[^.?!]{0,40}\b(?:summary|overview|outline|synopsis|recap)\b",
        r"\A\W*(?:a\s+|the\s+)?(?:summary|overview|synopsis)\s+of\b",
        r"\bhow\s+(?:often|frequently|many\s+times)\b",
        r"\b(?:list|name|enumerate|find|count|collect|mention)\s+(?:me\s+)?(?:all|every|each)\b",
        r"\b(?:what|which|who)\s+(?:are|were)\s+all\b",
        rf"\b(?:throughout|over\s+the\s+course\s+of|across|in\s+the\s+(?:whole|entire))\s+(?:of\s+)?(?:the\s+|this\s+)?"
        rf"(?:whole\s+|entire\s+)?{_WORK}\b",
        rf"\b(?:whole|entire)\s+{_WORK}\b",
        r"\b(?:main|central|overall|recurring)\s+(?:themes?|plot|topics?|motifs?)\b",
        rf"\bwhat\s+(?:is|was|are|were)\s+(?:the|this|these)\s+{_WORK}\s+about\b",
    )
)


def find_whole_form(question: str) -> str:
    """The words that show that a question asks for the whole text ("how often", "list all"); empty if none do.

    Only English forms are known. No model is asked.
    """
    found = [match[0] for form in _FORMS if (match := form.search(question[:_READ]))]
    return " ".join(found[0].split()) if found else ""
