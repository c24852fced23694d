"""Read a robots.txt as RFC 9309 says."""

from __future__ import annotations

import re
import string
from urllib.parse import quote

_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


def is_allowed(robots: bytes, agent: str, path: str) -> bool:
    """Whether a robots.txt lets this agent fetch a path with its query.

    The groups that name the agent count, or those for all if there are none. The longest rule that fits wins, and of
    two that are as long, the one that allows.
    """
    groups = _read_groups(robots)
    path = _write_alike(path)
    fitting = [
        (len(pattern), allows)
        for rules in groups.get(agent.lower(), groups.get("*", []))
        for allows, pattern in rules
        if pattern and _fits(pattern, path)
    ]
    return max(fitting, default=(0, True))[1]


def _read_groups(robots: bytes) -> dict[str, list[list[tuple[bool, str]]]]:
    """The groups of rules by the agents that they are for: whether each rule allows, and its pattern.

    The agents of a group share its rules, since a stranger may write many of both.
    """
    groups: dict[str, list[list[tuple[bool, str]]]] = {}
    rules: list[tuple[bool, str]] = []
    is_in_rules = False
    for line in robots.decode("utf-8-sig", "replace").splitlines():
        name, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        name = name.lower()
        if name == "user-agent":
            if is_in_rules:
                rules, is_in_rules = [], False
            known = groups.setdefault(value.partition("/")[0].strip().lower(), [])
            if not known or known[-1] is not rules:
                known.append(rules)
        elif name in ("allow", "disallow"):
            is_in_rules = True
            rules.append((name == "allow", _write_alike(value)))
    return groups


def _write_alike(path: str) -> str:
    """A path with escapes only where they are needed, so that two spellings of one path are equal."""
    return _ESCAPE.sub(
        lambda found: octet if (octet := chr(int(found[1], 16))) in _UNRESERVED else found[0].upper(),
        quote(path, safe=string.punctuation),
    )


def _fits(pattern: str, path: str) -> bool:
    """Whether a path begins with a pattern, in which `*` is any text, and `$` at the end is the end of the path.

    The first place for each part is enough, so the time grows with the path alone: the pattern may be a stranger's.
    """
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    if not pattern.endswith("$"):
        last = ""
    elif parts:
        last = parts.pop()
    else:
        return path == first
    at = len(first)
    for part in parts:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return path.endswith(last) and len(path) - len(last) >= at
