"""Turn the text of a model into a role's typed output.

Models wrap JSON in prose, in code fences or in one more object, write null for a field with nothing to say, and break
its rules: all that is accepted. Where strict JSON does not fit, `json_repair` reads what comes near to it. Text without
JSON is accepted last, and only for a role that says how it is read (`Role.read_prose`), since it may be an excuse.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from tomewise.errors import BadReply
from tomewise.run import PROSE_READ, record_fallback

if TYPE_CHECKING:
    from tomewise.types import In, Out, Role

# These patterns never backtrack: replies may be long and broken.
_FENCE = re.compile(r"```[\w-]*+[^\S\n]*+\n(.*?)```", re.DOTALL)
_THOUGHT_ENDS = re.compile(r"([}`]\s?)?</think(?:ing)?>", re.IGNORECASE)
_AT_END = re.compile(r"[^\S\n]*+(?:[\n{\[`]|\Z)")  # of a line, or before JSON
_THOUGHT_BEGINS = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_THOUGHTS = re.compile(
    r"\s*(?:<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|[^{\s].*?</think(?:ing)?>)", re.DOTALL | re.IGNORECASE
)
THINKING_ROOM = 8192  # tokens added to the bound on a reply for models that think before they write
_OPENING = re.compile(r"""\{(?=\s*["}])|\[(?=\s*["{}\[\]\dtfnNI-])""")  # only where JSON may begin
_LOOSE_COMMA = re.compile(r'("(?:\\.|[^"\\])*+"?)|,(?=\s*[}\]])', re.DOTALL)
_COMMA_AND_END = re.compile(r",\s*[}\]]")
_MOST_PIECES = 1000  # openings that are tried in one text: more come from an attack or a confused model
_MOST_LOOKS = 100_000  # at places where a value may stand
_MOST_PASSES = 8  # the search for JSON ends when it has read so many times the length of the text without success
_LONG = 20_000  # characters; longer replies are read in a thread
_LONGEST = 1_000_000  # characters; no bound on tokens that we set lets a model write so much
_LONGEST_REPAIRED = 60_000  # characters: near misses of JSON are read in seconds up to here
_DEEPEST = 8  # values inside one another: no output of a role is so deep
_TYPES = {"string": "text", "integer": "number", "number": "number", "boolean": "true or false", "null": "null"}
# Not strict, since line breaks inside strings are common. A decimal stays as it is written: 1.50 is an answer.
_DECODER = json.JSONDecoder(
    strict=False, parse_float=lambda text: float(text) if str(float(text)) == text else text, parse_constant=str
)
_CURLY = str.maketrans("“”", '""')
# What stands before a value of JSON, and behind it; and a value that is empty, or begins where the text ends.
_MARKS = " \t\r\n\"'“”‘’`*\\"
_CLOSES = re.compile(r"[\s\"'“”‘’`*\\]*?(?:[,}\])\n]|//|#|/\*)")
_NOTHING = re.compile(r"[:=]\s*+(?:(?:\"\"|''|“”|null|None)\s*+(?:[,}\]\n]|\Z)|[\"'“]?\s*+\Z)")
_BARE_NONE = re.compile(r"""(["']\s*:\s*)none(?=\s*[,}\n])""")  # a repair makes null of it
_NO_WORD = re.compile(r"[\W_]+")
_CONTROLS = {code: json.dumps(chr(code))[1:-1] for code in range(32)}  # models leave line breaks inside of strings
_STRING = re.compile(r'"(?:\\.|[^"\\])*+"?', re.DOTALL)
SEAM = 400  # characters in which the rest of a reply shows how it goes on
_SAME = 100  # characters with which it is another try
# What may be half at the end, and is written again; the quotation mark that opens a text stays.
_LAST_WORD = re.compile(r'(?<=\s)(?!(?<=: )")\S{1,40}\Z|(?<=: ")[^\s"]{1,40}\Z')
# What models write before the rest, a line such as "Sure! Here is the rest:", and a fence round it.
_LEAD = re.compile(
    r"(?is)\A(?:\s*(?:sure|certainly|of course|ok|here|continu|understood|sorry)[^\n\"{\\]{0,100}?"
    r"(?:rest|remain|continu|left off|cut off|json)[^\n\"{\\]{0,100}:\s*(?:\n|\\n))?"
    r"(?:\s*```\w*\s*\n((?:(?!```).)*)(?:\s{0,9}```\s{0,9})?\Z)?"
)
_OPEN_FIELD = re.compile(r'"(\w+)"\s*:\s*"((?:\\.|[^"\\])*+)\Z', re.DOTALL)
_END = r'(?<!\\)"\s*(?:[}\]]|\Z|,\s*(?:"\w+"\s*:|"?\w*"?\s*\Z))|\Z'  # of the text of a field, or of what came of it
_TEXT = re.compile(rf'(?s)\A(?:\\.|[^"\\]|"(?:\\.|[^"\\])*+"|.)*?(?={_END})')
_NO_BLANKS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff"  # scripts without them
_IN_WORD = re.compile(rf"[^\W{_NO_BLANKS}]{{2}}")
_TELLING = re.compile(rf"(?s)\w\W+\w|(?=.{{0,11}}\w).{{12}}|[{_NO_BLANKS}]{{4}}")
_LINE_BEGINS = re.compile(r"[-*+•#>]+(?:\s|\Z)|\||\w{1,3}[.)](?:\s|\Z)")


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a reply. `cut` is True if it reached the bound on its length, `thought` if it contains thoughts.

    `refused` gives the reason if the model declined to reply. `ended` says why one that was continued is still cut, and
    is empty if it is whole; None for one that was not continued.
    """

    text: str
    cut: bool = False
    thought: bool = False
    refused: str | None = None
    ended: str | None = None


@lru_cache(maxsize=128)
def make_lean_schema(output: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of an output without titles, class docstrings and defaults, which do not help a model.

    All fields are required: servers that enforce a schema have those written first, and the order counts.
    """
    lean: dict[str, Any] = _drop_titles(output.model_json_schema())
    return lean


def _drop_titles(node: Any) -> Any:
    if isinstance(node, list):
        return [_drop_titles(each) for each in node]
    if not isinstance(node, dict):
        return node
    lean: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            lean[key] = {name: _drop_titles(each) for name, each in value.items()}
        elif key not in ("title", "default") and not (key == "description" and "properties" in node):
            lean[key] = _drop_titles(value)
    return lean | ({"required": [*lean["properties"]]} if "properties" in lean else {})


@lru_cache(maxsize=128)
def describe_output(output: type[BaseModel]) -> str:
    """What an output consists of, for rules and keys: a line for each field, with its type and what it means.

    It holds no value that a model could copy.
    """
    schema = make_lean_schema(output)
    return "\n".join(_describe_fields(schema, schema.get("$defs", {}), indent=""))


def _describe_fields(node: Mapping[str, Any], records: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, field in node.get("properties", {}).items():
        meaning = f"; {field['description']}" if "description" in field else ""
        yield f"{indent}- `{name}`: {_name_type(field, records)}{meaning}"
        yield from _describe_fields(_find_record(field, records), records, f"{indent}  ")


def _find_record(field: Mapping[str, Any], records: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object that a field holds one or many of; the field itself if it holds something else."""
    inner: Mapping[str, Any] = field.get("items", field)
    found: Mapping[str, Any] = records.get(inner.get("$ref", "").rpartition("/")[2], inner)
    return found


def _name_type(field: Mapping[str, Any], records: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(map(json.dumps, field["enum"]))
    if "anyOf" in field:
        return " or ".join(_name_type(each, records) for each in field["anyOf"])
    if field.get("type") == "array":
        inner = _name_type(_find_record(field, records), records)
        return f"list of lists{inner[4:]}" if inner.startswith("list") else f"list of {inner}s"
    return _TYPES.get(field.get("type", ""), "object")


async def decode_reply(role: Role[In, Out], reply: Reply, *, last: bool = False) -> Out:
    """As `decode`. A long text is read in a thread, so that other calls need not wait for it.

    A reply that was cut off is read only if it is the `last` one, or was continued: another one may be whole.
    """
    last = last or reply.ended is not None
    read = partial(decode, role, reply.text, near=last or not reply.cut, prose=last, is_cut=reply.ended is not None)
    return await asyncio.to_thread(read) if len(reply.text) > _LONG else read()


def decode(role: Role[In, Out], text: str, *, near: bool = True, prose: bool = False, is_cut: bool = False) -> Out:
    """The role's output from the first piece of JSON in `text` that fits, or with `near` from what comes near to it.

    Its validators get the text as context, since a reply may be cut; not of one of which we know that it `is_cut`.

    With `prose` a role that can read prose gets the text where nothing else fits. Raises `BadReply` that says what is
    wrong.
    """
    if not text.strip():
        raise BadReply(f"the reply for {role.name!r} is empty")
    if len(text) > _LONGEST:
        raise BadReply(f"the reply for {role.name!r} is {len(text):,} characters long, more than {_LONGEST:,}")
    problem = "it has no JSON object"
    for value in chain([read_beginning(role.output, text)] if is_cut else (), _list_values(text, near=near)):
        if (fields := _find_fields(role.output, _name_fields(role.output, value))) is None:
            problem = f"it has none of the fields {', '.join(role.output.model_fields)}"
            continue
        try:
            return role.output.model_validate(_drop_nulls(role.output, fields), context="" if is_cut else text.rstrip())
        except ValidationError as error:
            problem = describe_problems(error)
    if (
        prose
        and role.read_prose
        and (output := role.read_prose(_drop_thoughts(text).encode("utf-8", "replace").decode()))
    ):
        record_fallback(PROSE_READ)
        return output
    raise BadReply(f"the reply for {role.name!r} does not fit: {problem}")


def _list_values(text: str, *, near: bool) -> Iterator[Any]:
    """All JSON values in the text: objects, all of them as one list, what an object comes near to, and at last lists.

    A list may be a remark: without a fence it is read only if the text has no other one.
    """
    may_hold_surrogates = "\\ud" in text.lower()
    strict = list(_find_values(text))
    lists = [value for value in strict if isinstance(value, list)]
    objects = [value for value in strict if not isinstance(value, list)]
    repaired = _repair(_drop_thoughts(text)) if near and ("{" in text or not lists) else ()
    if "```" not in text and any(each != lists[0] for each in lists):
        lists = []
    for value in chain(objects, [objects] if objects[1:] else [], repaired, lists):
        yield _drop_surrogates(value) if may_hold_surrogates else value


def _find_values(text: str) -> Iterator[Any]:
    """The strict JSON values. First the whole text, then code fences, then JSON inside of prose."""
    whole, is_json = _read(text)
    if is_json:  # then a thinking tag can only be inside a string
        yield _read(whole)[0] if isinstance(whole, str) else whole  # an object may be written as a string
        return
    text = _drop_thoughts(text)
    fences = (match[1] for match in islice(_FENCE.finditer(text), _MOST_PIECES))
    for piece in (text, *fences):
        value, is_json = _read(piece)
        if is_json:
            yield value
    yield from _find_in_prose(_drop_loose_commas(text))


def _read(piece: str) -> tuple[Any, bool]:
    """The value of the whole piece, and whether the piece is JSON."""
    for repair in (str.strip, _drop_loose_commas):
        with suppress(ValueError, RecursionError):
            return _DECODER.decode(repair(piece).strip()), True
    return None, False


def _drop_loose_commas(text: str) -> str:
    return _LOOSE_COMMA.sub(r"\1", text) if _COMMA_AND_END.search(text) else text


def _repair(text: str) -> Iterator[Any]:
    """The value that the text comes near to: with other quotation marks, remarks, bare words, or cut at its end."""
    if '"' not in text:
        text = text.translate(_CURLY)
    if len(text) > _LONGEST_REPAIRED or not 0 < text.count("{") + text.count("[") <= _MOST_PIECES:
        return
    from json_repair import repair_json

    text = _BARE_NONE.sub(r'\1"none"', text)
    with suppress(ValueError, RecursionError):
        value = repair_json(text, return_objects=True, skip_json_loads=True)
        if _has_whole(text, list(_list_leaves(value))):
            yield value


def _list_leaves(value: Any) -> Iterator[str]:
    """The texts and numbers in a value. Raises RecursionError for a deep one."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _list_leaves(each)
    elif isinstance(value, str) or type(value) in (int, float):
        yield str(value)


def _may_open(gap: str) -> bool:
    """Whether a value of JSON may follow these signs; a colon between two words, as in 3:30, opens none."""
    bare = gap.rstrip(_MARKS)
    marks = gap[len(bare) :]
    is_apart = bool(marks) or (len(bare) > 1 and bare[-2] in _MARKS)
    return bare.endswith(tuple("[{(,=")) or "\n" in marks or (bare.endswith(":") and is_apart)


def _has_whole(text: str, leaves: Sequence[str]) -> bool:
    """Whether a text has these values, and each as a whole: of `3:30`, `10%` or `"not" nine` a repair keeps a part."""
    places = [place for place, sign in enumerate(text) if sign.isalnum()]
    letters = "".join(text[place] for place in places)
    looks = count()

    def stands(leaf: str) -> bool:
        wanted = "".join(filter(str.isalnum, leaf))
        if not wanted:
            return leaf in text if leaf else bool(_NOTHING.search(text))
        head, tail = leaf[: leaf.index(wanted[0])], leaf[leaf.rindex(wanted[-1]) + 1 :]
        at = letters.find(wanted)
        while at >= 0 and next(looks) < _MOST_LOOKS:
            after = at + len(wanted)
            before_it = (text[places[at - 1] + 1 : places[at]] if at else "[").removesuffix(head)
            behind = text[places[after - 1] + 1 : places[after] if after < len(places) else None]
            behind += "\n" if after == len(places) else ""
            if _may_open(before_it) and _CLOSES.match(behind.removeprefix(tail)):
                return True
            at = letters.find(wanted, at + 1)
        return False

    return all(map(stands, dict.fromkeys(leaves)))


def find_thoughts(text: str) -> str:
    """The thoughts that a text begins with, up to the first tag that ends one. A tag within JSON ends none."""
    if (tags := _THOUGHTS.match(text)) is None:
        return ""
    with suppress(ValueError, RecursionError):
        _, end = _DECODER.raw_decode(text, text.index("{", 0, tags.end()))
        return "" if end > tags.end() else tags[0]
    return tags[0]


def _drop_thoughts(text: str) -> str:
    """The text after the last tag that ends a thought. Empty if the text begins with a thought that never ends.

    A tag inside of a line of prose ends none, unless the text begins with one.
    """
    begins = _THOUGHT_BEGINS.match(text)
    ends = [tag.end() for tag in _THOUGHT_ENDS.finditer(text) if begins or tag[1] or _AT_END.match(text, tag.end())]
    return text[ends[-1] :] if ends else "" if begins else text


def _find_in_prose(text: str) -> Iterator[Any]:
    """The JSON objects and lists inside of prose, in order.

    The time is linear in the length of the text: the search ends after `_MOST_PIECES` openings, or when it has read
    `_MOST_PASSES` times the length of the text without success.
    """
    position, budget = 0, _MOST_PASSES * len(text)
    for _ in range(_MOST_PIECES):
        opening = _OPENING.search(text, position)
        if opening is None or budget < 0:
            return
        try:
            value, position = _DECODER.raw_decode(text, opening.start())
        except RecursionError:
            return  # too deep to be an output of a role
        except ValueError as error:
            # The decoder reads an open string to the end of the text, but reports where the string begins.
            at = error.pos if isinstance(error, json.JSONDecodeError) and "Unterminated" not in error.msg else len(text)
            position = opening.start() + 1
            budget -= at - position
        else:
            yield value


def _drop_surrogates(value: Any) -> Any:
    """The value without lone surrogates, which files and databases reject."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


@lru_cache(maxsize=128)
def _list_names(output: type[BaseModel]) -> dict[str, str]:
    """The names of all fields, also of those inside, by what is left of each without case and signs."""
    schema = make_lean_schema(output)
    objects = [schema, *schema.get("$defs", {}).values()]
    return {_NO_WORD.sub("", name).casefold(): name for each in objects for name in each.get("properties", ())}


def _name_fields(output: type[BaseModel], value: Any, depth: int = _DEEPEST) -> Any:
    """The value with the names of its fields as the output has them, such as "Answer" or "sub-question"."""
    if depth and isinstance(value, list):
        return [_name_fields(output, each, depth - 1) for each in value]
    if not depth or not isinstance(value, dict):
        return value
    names = _list_names(output)
    found: dict[Any, Any] = {}
    for key, each in value.items():
        name = names.get(_NO_WORD.sub("", str(key)).casefold(), key)
        found[key if name in value else name] = _name_fields(output, each, depth - 1)
    return found


def _find_fields(output: type[BaseModel], value: Any) -> dict[str, Any] | None:
    """The fields of the output in a value, also one level down, and `quote` for `quotes`.

    A list is the output's only list without its name.
    """
    known = output.model_fields
    if isinstance(value, list):
        return _find_in_list(output, value)
    if not isinstance(value, dict):
        return None
    fields: dict[str, Any] = {f"{key}s": each for key, each in value.items() if f"{key}s" in known} | value
    if known.keys() & fields.keys():
        return fields
    if len(known) == 1 and _is_numbered(next(iter(known)), value):
        return {name: list(value.values()) for name in known}
    inner = [each for each in value.values() if isinstance(each, dict) and known.keys() & each.keys()]
    return inner[0] if len(inner) == 1 else None


def _find_in_list(output: type[BaseModel], items: list[Any]) -> dict[str, Any] | None:
    """A plain list as the only list among the fields, if its objects may be the records of that; else its first output.

    An object is an output of its own if it has more fields of the output than of a record.
    """
    schema = make_lean_schema(output)
    lists = [name for name, field in schema.get("properties", {}).items() if field.get("type") == "array"]
    of_items = schema["properties"][lists[0]].get("items", {}) if len(lists) == 1 else {}
    record = schema.get("$defs", {}).get(of_items.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
    objects = [item for item in items if isinstance(item, dict)]
    for item in objects:
        if len(output.model_fields.keys() & item.keys()) > len(record.keys() & item.keys()):
            return item
    return {lists[0]: items} if len(lists) == 1 and (record or not objects) else None


def _is_numbered(field: str, value: dict[str, Any]) -> bool:
    """Whether these are numbered fields in place of a list, as in {"probe1": ..., "probe2": ...}."""
    numbered = re.compile(rf"{field.removesuffix('s')}s?[\W_]*\d+", re.IGNORECASE)
    return bool(value) and all(numbered.fullmatch(key) for key in value)


def _drop_nulls(output: type[BaseModel], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields without null where a field has a default, since null means the default."""
    known = output.model_fields
    return {
        name: value
        for name, value in fields.items()
        if value is not None or name not in known or known[name].is_required()
    }


def describe_problems(error: ValidationError) -> str:
    """What does not fit, at most five problems in a line."""
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'reply'}: {each['msg']}" for each in error.errors()[:5])


# ---------------------------------------------------------------- replies that have not ended


def read_beginning(output: type[BaseModel], text: str) -> dict[str, Any]:
    """The fields of an output in the first JSON that begins in a text, as far as it goes. Thoughts are left out."""
    if opening := _OPENING.search(text, len(text) - len(_drop_thoughts(text))):
        text = _STRING.sub(lambda string: string[0].translate(_CONTROLS), text[opening.start() :])
        with suppress(ValueError, RecursionError):
            try:
                value, _ = _DECODER.raw_decode(text)  # other text may follow
            except ValueError:
                value = from_json(text, allow_partial="trailing-strings")
            return _find_fields(output, _name_fields(output, value)) or {}
    return {}


def leave_last_word(text: str) -> str:
    """A reply that was cut without its last word, which may be half. Thoughts that were cut leave nothing."""
    return _LAST_WORD.sub("", _drop_thoughts(text))


def join_reply(begun: str, rest: str) -> str:
    """A reply that was cut, and how it goes on, which may be plain text. What the rest repeats at the seam stands once.

    Of an object in place of the rest, the text of the field that is open counts.
    """
    rest, at = _LEAD.sub(r"\1", _drop_thoughts(rest)), 0
    if field := _OPEN_FIELD.search(begun):
        at = field.start(2)
        rest = re.sub(rf'(?s)\A\s*\{{\s*(?=").*?(?:"{field[1]}"\s*:\s*"|\Z)', "", rest)
        rest = _TEXT.sub(lambda text: re.sub(r'(?<!\\)"', r"\\\g<0>", text[0].translate(_CONTROLS)), rest)
    return begun[:at] + _join_texts(begun[at:], rest)


def _join_texts(begun: str, rest: str) -> str:
    """Both, with what the rest repeats once: some words, or how the last line begins. Equal cells and words stay.

    A rest that begins as the other does is another try, and the longer one counts.
    """
    if len(begun) > _SAME and rest.startswith(begun[:_SAME]):
        return max(begun, rest, key=len)
    before = begun.rstrip()
    gap = begun[len(before) :]
    rest = rest.lstrip() if gap else rest
    for size in range(SEAM // 2, 0, -1):
        again = rest[:size]
        if not before.endswith(again) or _IN_WORD.fullmatch(rest[size - 1 : size + 1]):
            continue
        kept = before.removesuffix(again)
        begins_line = f"\n{kept}".endswith(("\n", "\\n"))
        is_marked = begins_line and "\n" not in gap and _LINE_BEGINS.match(again)
        tells = _TELLING.search(again) and "|" not in again and again not in before[-3 * size : -1]
        if is_marked or (tells and (begins_line or not _IN_WORD.fullmatch(kept[-1:] + again[0]))):
            return before + rest[size:]
    line = re.split(r"\n|\\n", before)[-1]
    # An item beside one that stays unfinished; the next cell of a row begins no line.
    is_item = rest[:1] != "|" and rest[:2] == line[:2] and _LINE_BEGINS.match(rest)
    return f"{before}\n{rest}" if is_item else begun + rest
