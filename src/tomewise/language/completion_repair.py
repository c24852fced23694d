"""Write a chat completion again as the providers' clients expect it, whole or streamed in chunks.

Servers that are compatible with OpenAI's leave fields out of a completion, or fill them with other types than the
protocol says. What cannot be read is left out; the text that the model wrote stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST_TOKENS = 10**9  # of one call: a larger count is invalid
_DONE = b"[DONE]"  # the data of the last event of a stream
_THOUGHTS = ("reasoning", "reasoning_content")


def repair_completion(body: bytes, model: str, *, as_stream: bool = False) -> bytes | None:
    """The completion as the protocol defines it, with `model` where it names none; with `as_stream` as events.

    None for a page, an error, or JSON that is not a chat completion.
    """
    completion = _parse(body)
    if completion is None:
        return None
    choice = _find_first_choice(completion["choices"])
    message = _repair_message(choice.get("message"), between_calls="\n")
    if completion.get("error") and not message["content"]:
        return None
    finish, usage = _read_text(choice.get("finish_reason")) or "stop", _repair_usage(completion.get("usage"))
    repaired = {"index": 0, "finish_reason": finish, "delta" if as_stream else "message": message}
    if not as_stream:
        return _write_completion("chat.completion", completion, model, [repaired], usage)
    chunk = _write_completion("chat.completion.chunk", completion, model, [repaired], usage)
    return _write_event(chunk) + _write_event(_DONE)


def _parse(body: bytes) -> dict[str, Any] | None:
    """The completion; None for anything but a JSON object with choices."""
    try:
        completion = json.loads(body.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return completion if isinstance(completion, dict) and "choices" in completion else None


def _find_first_choice(choices: object) -> Mapping[str, Any]:
    """The first choice that is an object, or an empty one."""
    candidates = choices if isinstance(choices, list) else [choices]
    return next((choice for choice in candidates if isinstance(choice, dict)), {})


def _repair_message(value: object, between_calls: str = "") -> dict[str, Any]:
    """The message. Arguments of tools, although no tool was offered, are the text where it has no other."""
    message = value if isinstance(value, dict) else {"content": value}
    content = _find_text(message.get("content"))
    if not (content or "").strip():
        content = between_calls.join(_list_arguments(message)) or content
    thoughts = {name: _read_text(message[name]) for name in _THOUGHTS if isinstance(message.get(name), str)}
    return {"role": "assistant", "content": content, "refusal": _read_text(message.get("refusal")) or None, **thoughts}


def _find_text(value: object) -> str | None:
    """The text; a list of parts is joined. An object is the JSON of the reply that the server has already parsed."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if "type" not in value else _find_part_text(value)
    if isinstance(value, list):
        return "".join(map(_find_part_text, value)) or None
    return _read_text(value) or None


def _find_part_text(part: object) -> str:
    return _read_text(part.get("text")) if isinstance(part, dict) and part.get("type") == "text" else _read_text(part)


def _read_text(value: object) -> str:
    """The string without lone surrogates, which clients and databases reject; empty for any other value."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _list_arguments(message: Mapping[str, Any]) -> list[str]:
    """The arguments of each call of a tool."""
    value = message.get("tool_calls")
    calls = value if isinstance(value, list) else []
    return list(filter(None, map(_find_arguments, [*calls, {"function": message.get("function_call")}])))


def _find_arguments(call: object) -> str:
    if not isinstance(call, dict):
        return ""
    for name, field in (("function", "arguments"), ("custom", "input")):
        part = call.get(name)
        if isinstance(part, dict) and (text := _find_text(part.get(field))):
            return text
    return ""


def _repair_usage(value: object) -> dict[str, Any] | None:
    """The counts, also those of nested objects; None if neither input nor output tokens are counted."""
    if not isinstance(value, dict):
        return None
    usage: dict[str, Any] = _read_counts(value)
    usage |= {
        f"{name}_tokens_details": _read_counts(details)
        for name in ("prompt", "completion")
        if isinstance(details := value.get(f"{name}_tokens_details"), dict)
    }
    if not (usage.get("prompt_tokens") or usage.get("completion_tokens")):
        return None
    usage.setdefault("prompt_tokens", 0)
    usage.setdefault("completion_tokens", 0)
    return {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]}


def _read_counts(values: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of tokens, also those that are floats; any other value is left out."""
    numbers = {name: value for name, value in values.items() if type(value) in (int, float)}
    return {name: int(number) for name, number in numbers.items() if 0 <= number <= _MOST_TOKENS}


def _write_completion(
    kind: str, completion: Mapping[str, Any], model: str, choices: list[dict[str, Any]], usage: dict[str, Any] | None
) -> bytes:
    repaired = {
        "id": _read_text(completion.get("id")) or "none",
        "object": kind,
        "created": 0,
        "model": _read_text(completion.get("model")) or model,
        "provider": _read_text(completion.get("provider")) or "unknown",  # OpenRouter's client requires it
        "choices": choices,
        "usage": usage,
    }
    return json.dumps(repaired).encode()


def _write_event(data: bytes) -> bytes:
    """An event that holds this data."""
    return b"data: " + data + b"\n\n"


@dataclass(eq=False)
class ChunkRepair:
    """Repairs the chunks of one streamed reply.

    Some servers state the usage so far in every chunk: only the last statement is written, at the end.
    """

    model: str
    usage: dict[str, Any] | None = None
    half: str = ""  # the first half of a character that is written as two escapes, cut between two chunks
    has_begun: bool = False
    has_ended: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether chunks came, and neither a reason why the text ended nor the end of the stream."""
        return self.has_begun and not self.has_ended

    def repair(self, data: bytes) -> bytes | None:
        """The event for this data. None for an error, and for any other event than a chunk of a completion."""
        if data.strip() == _DONE:
            self.has_ended = True
            return self.write_end() + _write_event(_DONE)
        completion = _parse(data)
        if completion is None:
            return None
        choice = _find_first_choice(completion["choices"])
        delta = self._repair_delta(choice.get("delta"))
        if completion.get("error") and not delta["content"]:
            return None
        self.usage = _repair_usage(completion.get("usage")) or self.usage
        finish = _read_text(choice.get("finish_reason")) or None
        self.has_begun = True
        self.has_ended = self.has_ended or finish is not None
        choices = [{"index": 0, "finish_reason": finish, "delta": delta}] if choice else []
        return _write_event(_write_completion("chat.completion.chunk", completion, self.model, choices, None))

    def write_end(self) -> bytes:
        """The chunk with the usage, once."""
        usage, self.usage = self.usage, None
        if usage is None:
            return b""
        return _write_event(_write_completion("chat.completion.chunk", {}, self.model, [], usage))

    def _repair_delta(self, value: object) -> dict[str, Any]:
        """What a chunk adds."""
        delta = value if isinstance(value, dict) else {"content": value}
        content = delta.get("content")
        return _repair_message({**delta, "content": self._join_halves(content)} if isinstance(content, str) else delta)

    def _join_halves(self, content: str) -> str:
        whole = (self.half + content).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        self.half = whole[-1:] if "\ud800" <= whole[-1:] <= "\udbff" else ""
        return whole[:-1] if self.half else whole
