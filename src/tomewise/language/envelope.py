"""Chat Completions as servers send them, made into what the protocol says, so that a quirk costs no reply.

What is needed of an envelope is the text of its first choice, why it ended, and the tokens. All else is left out or
given a harmless value; a count that is none is left out. A reply without a usable message becomes an empty one, which
is asked for once more as every unusable reply is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MOST_TOKENS = 10**9  # of one call: a larger count is none
_THOUGHTS = ("reasoning", "reasoning_content")


def repair_completion(body: bytes, model: str) -> bytes | None:
    """The envelope as the protocol has it, or None for what is no chat completion (a page, an error, another JSON)."""
    try:
        envelope = json.loads(body.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(envelope, dict) or "choices" not in envelope:
        return None
    choice = _first(envelope["choices"])
    message = _message(choice.get("message"))
    if envelope.get("error") and not (message["content"] or message.get("tool_calls")):
        return None
    repaired = {
        "id": _text(envelope.get("id")) or "none",
        "object": "chat.completion",
        "created": 0,
        "model": _text(envelope.get("model")) or model,
        "provider": _text(envelope.get("provider")) or "unknown",  # OpenRouter's client insists on it
        "choices": [{"index": 0, "finish_reason": _text(choice.get("finish_reason")) or "stop", "message": message}],
        "usage": _usage(envelope.get("usage")),
    }
    return json.dumps(repaired).encode()


def _first(choices: object) -> Mapping[str, Any]:
    """The first choice that is an object, else nothing."""
    listed = choices if isinstance(choices, list) else [choices]
    return next((choice for choice in listed if isinstance(choice, dict)), {})


def _message(given: object) -> dict[str, Any]:
    message = given if isinstance(given, dict) else {"content": given}
    kept: dict[str, Any] = {
        "role": "assistant",
        "content": _content(message.get("content")),
        "refusal": _text(message.get("refusal")) or None,
    }
    kept |= {name: _text(message[name]) for name in _THOUGHTS if isinstance(message.get(name), str)}
    if calls := _tool_calls(message):
        kept["tool_calls"] = calls
    return kept


def _content(given: object) -> str | None:
    """The text, joined where it came in parts; an object is the JSON that was asked for, already read."""
    if isinstance(given, dict):
        return json.dumps(given, ensure_ascii=False) if "type" not in given else _part(given)
    if isinstance(given, list):
        return "".join(map(_part, given)) or None
    return _text(given) or None


def _part(part: object) -> str:
    return _text(part.get("text")) if isinstance(part, dict) and part.get("type") == "text" else _text(part)


def _tool_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Calls of tools that nobody offered: what was written for them may be the reply."""
    given = message.get("tool_calls")
    listed = given if isinstance(given, list) else []
    written = [_arguments(call) for call in [*listed, {"function": message.get("function_call")}]]
    return [
        {"id": f"call-{number}", "type": "function", "function": {"name": "reply", "arguments": text}}
        for number, text in enumerate(written)
        if text
    ]


def _arguments(call: object) -> str:
    if not isinstance(call, dict):
        return ""
    for name, field in (("function", "arguments"), ("custom", "input")):
        made = call.get(name)
        if isinstance(made, dict) and (text := _content(made.get(field))):
            return text
    return ""


def _usage(given: object) -> dict[str, Any] | None:
    """The counts, of nested objects too; None where not even the tokens in or out are told."""
    if not isinstance(given, dict):
        return None
    usage: dict[str, Any] = {name: count for name in given if (count := _count(given[name])) is not None}
    usage |= {
        f"{name}_tokens_details": {key: count for key in details if (count := _count(details[key])) is not None}
        for name in ("prompt", "completion")
        if isinstance(details := given.get(f"{name}_tokens_details"), dict)
    }
    if not (usage.get("prompt_tokens") or usage.get("completion_tokens")):
        return None
    usage.setdefault("prompt_tokens", 0)
    usage.setdefault("completion_tokens", 0)
    return {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]}


def _count(given: object) -> int | None:
    """A number of tokens, also as a float; None for what cannot be one."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= _MOST_TOKENS:
        return None
    return int(given)


def _text(given: object) -> str:
    """The string without half characters (lone surrogates), which no client and no database takes; else nothing."""
    return given.encode("utf-8", "replace").decode() if isinstance(given, str) else ""
