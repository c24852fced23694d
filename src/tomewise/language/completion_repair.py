"""Write a chat completion again as the providers' clients expect it, whole or streamed in chunks.

Servers that are compatible with OpenAI's leave fields out of a completion, or fill them with other types than the
protocol says. What cannot be read is left out; the text that the model wrote stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LARGEST = 10**12  # tokens or bytes: a larger count is invalid
_DONE = b"[DONE]"  # the data of the last event of a stream
_TEXTS = ("content", "refusal", "reasoning", "reasoning_content")  # of a message; the last two are thoughts
_COUNTS = {"prompt": "cached_tokens", "completion": "reasoning_tokens"}  # what is counted, and what of it apart


class ErrorInReply(Exception):
    """A reply with the status of success holds an error: its `words`, and the status that it names, or 400."""

    def __init__(self, words: object) -> None:
        self.words = words
        code = str(words.get("code") or words.get("status")) if isinstance(words, dict) else ""
        self.status = int(code) if code.isascii() and code.isdigit() and 400 <= int(code) < 600 else 400


def repair_completion(body: bytes, model: str, *, as_stream: bool = False) -> bytes | None:
    """The completion as the protocol defines it, with `model` where it names none; with `as_stream` as events.

    None for a page, or JSON that is not a chat completion. Raises `ErrorInReply`.
    """
    completion = parse_object(body)
    if (error := completion.get("error")) and not _repair_message(_find_choice(completion).get("message"))["content"]:
        raise ErrorInReply(error)
    if "choices" not in completion:
        return None
    kind = "chat.completion.chunk" if as_stream else "chat.completion"
    whole = _write(completion, model, "message", kind, _repair_usage(completion.get("usage")))
    return _write_event(whole) + _write_event(_DONE) if as_stream else whole


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; empty for anything else."""
    try:
        completion = json.loads(body.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return {}
    return completion if isinstance(completion, dict) else {}


def _find_choice(completion: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice that is an object, or an empty one."""
    choices = completion.get("choices")
    return next((each for each in choices if isinstance(each, dict)), {}) if isinstance(choices, list) else {}


def _repair_message(value: object) -> dict[str, Any]:
    message = value if isinstance(value, dict) else {"content": value}
    return {"role": "assistant", "content": None} | {
        name: text for name in _TEXTS if (text := _find_text(message.get(name)))
    }


def _find_text(value: object) -> str:
    """The text; a list of parts is joined. An object is the JSON of the reply that the server has already parsed.

    Lone surrogates, which clients and databases reject, are replaced.
    """
    if isinstance(value, list):
        return "".join(_find_text(part.get("text") if isinstance(part, dict) else part) for part in value)
    text = json.dumps(value, ensure_ascii=False) if value and isinstance(value, dict) else value
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""


def _repair_usage(value: object) -> dict[str, Any] | None:
    """The counts; None if neither input nor output tokens are counted."""
    usage: dict[str, Any] = {f"{name}_tokens": read_count(value, f"{name}_tokens") for name in _COUNTS}
    if not any(usage.values()) or not isinstance(value, dict):
        return None
    for name, part in _COUNTS.items():
        usage[f"{name}_tokens_details"] = {part: read_count(value.get(f"{name}_tokens_details"), part)}
    return {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]}


def read_count(values: object, name: str) -> int:
    """A number, as of tokens or bytes, also one that is a float; 0 for any other value."""
    number: Any = values.get(name) if isinstance(values, dict) else 0
    return int(number) if type(number) in (int, float) and 0 <= number <= _LARGEST else 0


def _write(
    completion: Mapping[str, Any], model: str, name: str, kind: str, usage: Mapping[str, Any] | None = None
) -> bytes:
    """The completion of this kind, whose first choice has the message under this name."""
    choice, is_whole = _find_choice(completion), name == "message"
    finish = _find_text(choice.get("finish_reason")) or ("stop" if is_whole else None)
    message = {"delta" if kind.endswith("chunk") else "message": _repair_message(choice.get(name))}
    repaired = {
        "id": _find_text(completion.get("id")) or "none",
        "object": kind,
        "created": 0,
        "model": _find_text(completion.get("model")) or model,
        "provider": _find_text(completion.get("provider")) or "unknown",  # OpenRouter's client requires it
        "choices": [{"index": 0, "finish_reason": finish, **message}] if choice or is_whole else [],
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
        completion = parse_object(data)
        choice = _find_choice(completion)
        if "choices" not in completion or (
            completion.get("error") and not _repair_message(choice.get("delta"))["content"]
        ):
            return None
        self.usage = _repair_usage(completion.get("usage")) or self.usage
        self.has_begun = True
        self.has_ended = self.has_ended or bool(_find_text(choice.get("finish_reason")))
        return _write_event(_write(completion, self.model, "delta", "chat.completion.chunk"))

    def write_end(self) -> bytes:
        """The chunk with the usage, once."""
        usage, self.usage = self.usage, None
        return _write_event(_write({}, self.model, "delta", "chat.completion.chunk", usage)) if usage else b""
