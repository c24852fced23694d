"""From the words of a model to a role's typed output.

Models wrap JSON in prose, code fences or one object too many, and leave commas behind: all that is forgiven. What is
not JSON is not taken for an answer, even where one text is wanted, since it may as well be an excuse.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from tomewise.errors import BadReply

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role

# No two ways to read a text in these, and none to give up on it half-way: replies may be long and broken.
_FENCE = re.compile(r"```[\w-]*+[^\S\n]*+\n(.*?)```", re.DOTALL)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_THOUGHT_BEGINS = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_LOOSE_COMMA = re.compile(r'("(?:\\.|[^"\\])*+"?)|,(?=\s*[}\]])', re.DOTALL)
_COMMA_AND_END = re.compile(r",\s*[}\]]")
THINKING_ROOM = 8192  # tokens added to the bound on a reply for models that think before they write
_OPENING = re.compile(r"""\{(?=\s*["}])|\[(?=\s*["{}\[\]\dtfnNI-])""")  # only where JSON may begin
_MOST_PIECES = 1000  # openings looked at in one text: more are an attack or a model gone astray
_MOST_PASSES = 8  # times the length of a text: how many of its characters are read in vain before the search ends
_LONG = 20_000  # characters from which a reply is read in a thread
_LONGEST = 1_000_000  # characters: no bound on tokens that is given to a model lets it write so much
_DECODER = json.JSONDecoder(strict=False)  # not strict: line breaks inside strings are common


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `cut` is True when it reached the bound on its length, `thought` when it was thinking aloud."""

    text: str
    cut: bool = False
    thought: bool = False


@lru_cache(maxsize=128)
def lean_schema(output: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of an output without titles and class docstrings, which tell a model nothing."""
    lean: dict[str, Any] = _lean(output.model_json_schema())
    return lean


@lru_cache(maxsize=128)
def schema_text(output: type[BaseModel]) -> str:
    """The schema on one line, for prompts and keys."""
    return json.dumps(lean_schema(output), ensure_ascii=False, separators=(",", ":"))


async def decode_reply(role: Role[In, Out], text: str) -> Out:
    """`decode`, in a thread where the text is so long that other calls would wait for it."""
    return await asyncio.to_thread(decode, role, text) if len(text) > _LONG else decode(role, text)


def decode(role: Role[In, Out], text: str) -> Out:
    """The role's output from the first piece of JSON in `text` that fits it. Raises `BadReply` with what is wrong."""
    if not text.strip():
        raise BadReply(f"the reply for {role.name!r} is empty")
    if len(text) > _LONGEST:
        raise BadReply(f"the reply for {role.name!r} is {len(text):,} characters long, more than {_LONGEST:,}")
    problem = "it holds no JSON object"
    for value in _values(text):
        if (fields := _fields(role.output, value)) is None:
            problem = f"it holds none of the fields {', '.join(role.output.model_fields)}"
            continue
        try:
            return role.output.model_validate(fields)
        except ValidationError as error:
            problem = _problems(error)
    raise BadReply(f"the reply for {role.name!r} does not fit: {problem}")


def _values(text: str) -> Iterator[Any]:
    """Everything in the text that reads as JSON, the most explicit first."""
    sound = "\\ud" not in text.lower()
    for value in _pieces(text):
        yield value if sound else _without_half_characters(value)


def _pieces(text: str) -> Iterator[Any]:
    whole, failed = _read(text)
    if not failed:  # tags of thinking stand inside a string, if anywhere
        yield whole
        return
    text = _after_thinking(text)
    fences = (found[1] for found in islice(_FENCE.finditer(text), _MOST_PIECES))
    for piece in (text, *fences):
        value, failed = _read(piece)
        if not failed:
            yield value
    yield from _embedded(_without_loose_commas(text))


def _read(piece: str) -> tuple[Any, bool]:
    """The value that the piece is as a whole, and whether it is none."""
    for mend in (str.strip, _without_loose_commas):
        try:
            return _DECODER.decode(mend(piece).strip()), False
        except (ValueError, RecursionError):
            continue
    return None, True


def _without_loose_commas(text: str) -> str:
    return _LOOSE_COMMA.sub(r"\1", text) if _COMMA_AND_END.search(text) else text


def _after_thinking(text: str) -> str:
    """What stands after the last tag that ends a thought; nothing where a thought begins the text and never ends."""
    ends = [found.end() for found in _THOUGHT_ENDS.finditer(text)]
    if ends:
        return text[ends[-1] :]
    return "" if _THOUGHT_BEGINS.match(text) else text


def _embedded(text: str) -> Iterator[Any]:
    """The JSON objects and lists that stand somewhere in prose, in order.

    The time is linear in the length of the text: the search ends after `_MOST_PIECES` openings, or when it has read
    `_MOST_PASSES` times as many characters in vain as there are.
    """
    position, left = 0, _MOST_PASSES * len(text)
    for _ in range(_MOST_PIECES):
        found = _OPENING.search(text, position)
        if found is None or left < 0:
            return
        try:
            value, position = _DECODER.raw_decode(text, found.start())
        except RecursionError:
            return  # nested beyond reason: nothing of ours
        except ValueError as error:
            position = found.start() + 1
            left -= _end_of_reading(error, text) - found.start()
        else:
            yield value


def _end_of_reading(error: ValueError, text: str) -> int:
    if isinstance(error, json.JSONDecodeError) and not error.msg.startswith("Unterminated string"):
        return error.pos
    return len(text)  # a string without an end is read to the end, and reported at its beginning


def _without_half_characters(value: Any) -> Any:
    """The value without lone surrogates, which no file and no database takes."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _fields(output: type[BaseModel], value: Any) -> dict[str, Any] | None:
    """The fields of the output in a value, also one level down, or a list in any dress for an output that is one."""
    known = output.model_fields
    if len(known) == 1 and (listed := _listed(next(iter(known)), value)) is not None:
        return dict.fromkeys(known, listed)
    if not isinstance(value, dict):
        return None
    if known.keys() & value.keys():
        return value
    inner = [each for each in value.values() if isinstance(each, dict) and known.keys() & each.keys()]
    return inner[0] if len(inner) == 1 else None


def _listed(field: str, value: Any) -> list[Any] | None:
    """The list that an output's only field holds: a bare one, or numbered as in {"probe1": ..., "probe2": ...}."""
    if isinstance(value, list):
        return None if any(isinstance(item, dict) for item in value) else value
    if not isinstance(value, dict) or not value:
        return None
    numbered = re.compile(rf"{field.removesuffix('s')}s?[\W_]*\d+", re.IGNORECASE)
    return list(value.values()) if all(numbered.fullmatch(key) for key in value) else None


def _problems(error: ValidationError) -> str:
    told = [f"{'.'.join(map(str, each['loc'])) or 'reply'}: {each['msg']}" for each in error.errors()[:5]]
    return "; ".join(told)


def _lean(node: Any) -> Any:
    if isinstance(node, list):
        return [_lean(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _lean(each) for name, each in value.items()}
        elif key != "title" and not (key == "description" and "properties" in node):
            kept[key] = _lean(value)
    return kept
