"""Repair the Chat Completions that servers send, so that an odd field does not cost the whole reply.

Three things of an envelope matter: the text of its first choice, why the text ended, and the token counts. All other
fields are dropped or get a harmless value; an invalid count is dropped. A reply without a usable message becomes an
empty reply, and the model is asked again, as after every unusable reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MOST_TOKENS = 10**9  # of one call: a larger count is invalid
_THOUGHTS = ("reasoning", "reasoning_content")


def repair_completion(body: bytes, model: str) -> bytes | None:
    """The envelope as the protocol defines it. None for a page, an error, or JSON that is not a chat completion."""
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
        "provider": _text(envelope.get("provider")) or "unknown",  # OpenRouter's client requires it
        "choices": [{"index": 0, "finish_reason": _text(choice.get("finish_reason")) or "stop", "message": message}],
        "usage": _usage(envelope.get("usage")),
    }
    return json.dumps(repaired).encode()


def _first(choices: object) -> Mapping[str, Any]:
    """The first choice that is an object, or an empty one."""
    candidates = choices if isinstance(choices, list) else [choices]
    return next((choice for choice in candidates if isinstance(choice, dict)), {})


def _message(value: object) -> dict[str, Any]:
    message = value if isinstance(value, dict) else {"content": value}
    repaired: dict[str, Any] = {
        "role": "assistant",
        "content": _content(message.get("content")),
        "refusal": _text(message.get("refusal")) or None,
    }
    repaired |= {name: _text(message[name]) for name in _THOUGHTS if isinstance(message.get(name), str)}
    if calls := _tool_calls(message):
        repaired["tool_calls"] = calls
    return repaired


def _content(value: object) -> str | None:
    """The text; a list of parts is joined. An object is the JSON of the reply that the server has already parsed."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if "type" not in value else _part(value)
    if isinstance(value, list):
        return "".join(map(_part, value)) or None
    return _text(value) or None


def _part(part: object) -> str:
    return _text(part.get("text")) if isinstance(part, dict) and part.get("type") == "text" else _text(part)


def _tool_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Calls of tools, although no tool was offered: their arguments may be the reply."""
    value = message.get("tool_calls")
    calls = value if isinstance(value, list) else []
    arguments = [_arguments(call) for call in [*calls, {"function": message.get("function_call")}]]
    return [
        {"id": f"call-{number}", "type": "function", "function": {"name": "reply", "arguments": text}}
        for number, text in enumerate(arguments)
        if text
    ]


def _arguments(call: object) -> str:
    if not isinstance(call, dict):
        return ""
    for name, field in (("function", "arguments"), ("custom", "input")):
        part = call.get(name)
        if isinstance(part, dict) and (text := _content(part.get(field))):
            return text
    return ""


def _usage(value: object) -> dict[str, Any] | None:
    """The counts, also those of nested objects; None if neither input nor output tokens are counted."""
    if not isinstance(value, dict):
        return None
    usage: dict[str, Any] = {name: count for name in value if (count := _count(value[name])) is not None}
    usage |= {
        f"{name}_tokens_details": {key: count for key in details if (count := _count(details[key])) is not None}
        for name in ("prompt", "completion")
        if isinstance(details := value.get(f"{name}_tokens_details"), dict)
    }
    if not (usage.get("prompt_tokens") or usage.get("completion_tokens")):
        return None
    usage.setdefault("prompt_tokens", 0)
    usage.setdefault("completion_tokens", 0)
    return {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]}


def _count(value: object) -> int | None:
    """A number of tokens, also if it is a float; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value)


def _text(value: object) -> str:
    """The string without lone surrogates, which clients and databases reject; empty for any other value."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
