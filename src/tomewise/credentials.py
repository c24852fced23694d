"""Keep keys and passwords out of messages: a message may be printed, stored in a tome, and passed on with it."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

HIDDEN = "[hidden]"
_SHORTEST = 8  # characters; a shorter string occurs in ordinary text, so it is not hidden
_VALUE = r"[^\s\"'`,;&<>{}\[\]()]+"
# Every repetition has a bound: what a server words as an error may be long, and made to be slow.
_PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"([a-z][a-z0-9+.-]{0,20}://)[^/?#\s\"']{0,300}@", rf"\g<1>{HIDDEN}@"),
        (r"(?<![\w/])[\w.+-]{1,64}:[^\s/\"']{1,300}@(?=[\w.-]+)", f"{HIDDEN}@"),
        (rf"\b(bearer|basic)(\s+)(?=\S*[\d=_-]|\S{{16}}){_VALUE}", rf"\1\2{HIDDEN}"),
        (rf"(authorization[\"']?\s*[:=]\s*[\"']?)(?!bearer|basic|{re.escape(HIDDEN)}){_VALUE}", rf"\1{HIDDEN}"),
        (
            r"(?!(?<=/)\w+[\"'])"  # the end of a path in quotation marks, such as that of /etc/passwd
            r"((?:\b|[?&_-])(?:(?:api|access|auth|secret|client|x-api|x-goog-api)[ _-]?(?:key|token|secret)|password"
            rf"|passwd|secret)(?: provided)?[\"']?\s*[:=]\s*[\"']?)(?!{re.escape(HIDDEN)}){_VALUE}",
            rf"\1{HIDDEN}",
        ),
        (rf"([?&](?:key|token|auth|sig|signature|code|pass|pwd)=){_VALUE}", rf"\1{HIDDEN}"),
        (
            r"\b(?:sk|pk|rk|gsk|xai|hf|r8|pplx|fw|nvapi|tgp|csk|ghp|gho|ghs|glpat|github_pat)[-_](?=[\w*-]{0,300}\d|[\w-]{0,300}\*)"
            r"[\w*-]{10,}",
            HIDDEN,
        ),
        (r"\bAIza[\w-]{20,}", HIDDEN),
        (r"\bAKIA[A-Z0-9]{12,}", HIDDEN),
        (r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*", HIDDEN),
    )
)
_known: set[str] = set()


def remember_credentials(*values: str | None) -> None:
    """Hide these keys, and the passwords in these addresses, in all messages from now on."""
    for value in values:
        if not value:
            continue
        if "://" not in value:
            _remember(value)
        elif "@" in value:
            user, _, password = value.split("://", 1)[1].split("/", 1)[0].rpartition("@")[0].partition(":")
            _remember(password or user)


def hide_credentials(text: str) -> str:
    """The text without known keys and without strings that look like keys.

    This hides user names and passwords in addresses, values after `Authorization`, `Bearer`, `api_key=` and similar
    words, and strings that have the form of a known provider's key.
    """
    for value in sorted(_known, key=len, reverse=True):
        for form in {value, value.strip(), quote(value, safe="")}:
            if len(form) >= _SHORTEST:
                text = text.replace(form, HIDDEN)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def _remember(value: str) -> None:
    _known.update(form for form in (value, value.strip(), unquote(value)) if len(form) >= _SHORTEST)
