"""Read JSON by records, chats in JSON by messages, and YAML as it is written with its escapes read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from tomewise.reading.decode import decode, join_words, unify_newlines
from tomewise.reading.metadata import write_date
from tomewise.reading.places import join_marked, make_document
from tomewise.types import Document, Place

Messages: TypeAlias = list[tuple[Place, str]]

_LINE = 300  # characters of a record in one line
_ROLES = frozenset("user assistant system tool human model developer ai bot".split())
_KINDS = frozenset("message service Default Reply".split())  # of messages, as Slack, Telegram and Discord call them
_SPEAKERS = "user_profile from sender_name sender author username user role actor".split()
_NAMES = "real_name display_name nickname name fileName file_name title username role".split()  # of people and files
_TIMES = "date create_time created_at timestamp timestamp_ms ts".split()
_TEXTS = "text content parts action".split()
_FILES = "file photo files attachments".split()
_YEAR = 10_000  # a smaller number is one
_MILLISECONDS = 10**11  # a larger number is a time in milliseconds
_MENTION = re.compile(r"<@([A-Z0-9]{1,20})(?:\|[^<>]{0,80})?>")
_ESCAPE = re.compile(r"(?<!\\)((?:\\\\){0,8})\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))")
_ITEM = re.compile(r"\n(?= {0,20}- [^\s:]{1,60}:(?: |\n))")


def read_json(path: Path) -> Iterator[Document]:
    """The records of a JSON file, each a paragraph; or its chats, each a document with speakers and times.

    Chats are the exports of Slack, Telegram, Messenger and Discord, and of chat assistants. What is not JSON is text.
    """
    text, origin = decode(path.read_bytes(), str(path))
    try:
        # A number stays as it is written, and a name that comes twice is kept twice.
        root = json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=_keep_pairs)
        chats = list(_list_chats(root, path))
        if not chats:
            text, marks = join_marked(_list_records(root))
            yield from make_document(path, text, metadata=origin, marks=marks)
    except (ValueError, RecursionError):
        yield from make_document(path, text, metadata=origin, marks=())
        return
    for number, (title, messages, dropped) in enumerate(chats, start=1):
        text, marks = join_marked((_write_message(place, words), place) for place, words in messages if words)
        losses = {"message without text": sum(not words for _, words in messages), "alternative message": dropped}
        (document,) = make_document(path, text, title, origin, marks, losses)
        yield document if len(chats) == 1 else replace(document, id=f"{path}#{number}")


def read_yaml(path: Path) -> tuple[Document]:
    """A YAML file as it is written, with its comments; each item of a list is a paragraph, and escapes are read."""
    text, origin = decode(path.read_bytes(), str(path))
    lines = (_ESCAPE.sub(_unescape, line) if '"' in line else line for line in text.split("\n"))
    text = "\n".join(lines).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return make_document(path, _ITEM.sub("\n\n", text), metadata=origin, marks=())


def _unescape(found: re.Match[str]) -> str:
    number = int(found[2] or found[3] or found[4], 16)
    return found[1] + chr(number) if 31 < number < 0x110000 else found[0]


# ---------------------------------------------------------------- records


def _keep_pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields[name if name not in fields else f"{name} ({len(fields) + 1})"] = value
    return fields


def _list_records(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Place]]:
    """Each item of a list of records; of an object its plain fields, and below their name the records in it."""
    if isinstance(value, list) and _holds_records(value):
        for number, item in enumerate(value, start=1):
            yield _write_record(item), Place(row=number, chapter=path)
    elif isinstance(value, dict):
        inner = {name: each for name, each in value.items() if _has_list(each)}
        if plain := {name: each for name, each in value.items() if name not in inner}:
            is_table = len(plain) > 1 and all(isinstance(each, dict) for each in plain.values())
            for part in [{name: each} for name, each in plain.items()] if is_table else [plain]:
                yield _write_record(part), Place(chapter=path)
        for name, each in inner.items():
            yield f"# {join_words(name)}", Place(chapter=(*path, name))
            yield from _list_records(each, (*path, name))
    else:
        yield _write_record(value), Place(chapter=path)


def _holds_records(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict | list) for item in value)


def _has_list(value: Any) -> bool:
    """Whether records are in a value, or in an object in it."""
    return _holds_records(value) or (isinstance(value, dict) and any(map(_has_list, value.values())))


def _write_record(value: Any) -> str:
    """The fields in one line, if that is short, or else a line for each."""
    fields = [f"{name}: {words}" if name else words for name, words in _list_fields(value)]
    line = "; ".join(fields)
    return line if len(line) <= _LINE and "\n" not in line else "\n".join(fields)


def _list_fields(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The fields of a record, those of an object in it by their path: `address.city`."""
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _list_fields(each, f"{name}.{inner}" if name else inner)
    elif _holds_records(value):
        for item in value:
            yield name, _write_record(item)
    elif isinstance(value, list):
        yield name, ", ".join(map(_write_scalar, value))
    else:
        yield name, _write_scalar(value)


def _write_scalar(value: object) -> str:
    return unify_newlines(value) if isinstance(value, str) else json.dumps(value)


# ---------------------------------------------------------------- chats


def _list_chats(root: Any, path: Path) -> Iterator[tuple[str, Messages, int]]:
    """The title, the messages and how many others each chat has; none if the file holds anything else."""
    if isinstance(root, dict) and isinstance(root.get("chats"), dict):  # all that Telegram has
        root = root["chats"].get("list")
    if messages := _read_messages(root, path):
        is_export = isinstance(root, list) and (path.parent.parent / "users.json").exists()
        title = path.parent.name if is_export else _find_title(root) or path.stem
        yield title, messages, max(0, _count_nodes(root) - len(messages))
    elif isinstance(root, list):
        chats = [(item, _read_messages(item, path)) for item in root if isinstance(item, dict)]
        if chats and all(messages for _, messages in chats):
            yield from ((_find_title(item), found, max(0, _count_nodes(item) - len(found))) for item, found in chats)


def _count_nodes(chat: Any) -> int:
    """The messages in all branches of a chat of ChatGPT; 0 for others."""
    nodes = chat.get("mapping") if isinstance(chat, dict) else None
    return (
        sum(bool(node.get("message")) for node in nodes.values() if isinstance(node, dict))
        if isinstance(nodes, dict)
        else 0
    )


def _find_title(root: Any) -> str:
    return str(root.get("title") or root.get("name") or "") if isinstance(root, dict) else ""


def _read_messages(value: Any, path: Path) -> Messages:
    items = _find_items(value)
    if not items or not all(isinstance(item, dict) and _is_message(item) for item in items):
        return []
    users = _read_users(path) if any("ts" in item for item in items) else {}
    return [_read_message(item, users) for item in items]


def _find_items(value: Any) -> list[Any]:
    """The messages of a chat. ChatGPT keeps a tree of them, of which the last shown branch counts."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return []
    nodes = value.get("mapping")
    if not isinstance(nodes, dict):
        lists = (value.get(name) for name in ("messages", "chat_messages"))
        return next((each for each in lists if isinstance(each, list)), [])
    branch: list[Any] = []
    node, left = nodes.get(value.get("current_node")), len(nodes)
    while isinstance(node, dict) and (left := left - 1) >= 0:
        branch.append(node.get("message"))
        node = nodes.get(node.get("parent"))
    found = branch[::-1] or [node.get("message") for node in nodes.values() if isinstance(node, dict)]
    return [message for message in found if message]


def _is_message(item: Mapping[str, Any]) -> bool:
    author = item.get("author")
    role = author.get("role") if isinstance(author, dict) else item.get("role", item.get("sender"))
    has_time = any(name in item for name in _TIMES)
    if str(role) in _ROLES:  # which a list of people has too
        return any(name in item for name in _TEXTS)
    return has_time and ("sender_name" in item or str(item.get("type")) in _KINDS)


def _write_message(place: Place, words: str) -> str:
    return f"[{place.time}] {place.speaker}: {words}" if place.time else f"{place.speaker}: {words}"


def _read_message(item: Mapping[str, Any], users: Mapping[str, str]) -> tuple[Place, str]:
    speaker = next((name for field in _SPEAKERS if (name := _find_name(item.get(field)))), "")
    words = next((words for field in _TEXTS if (words := _join_text(item.get(field)).strip())), "")
    names = [name for field in _FILES for name in _list_files(item.get(field))]
    words = "\n".join(filter(None, [words, *(f"[not read: {name}]" for name in names)]))
    if "sender_name" in item:  # Messenger writes each byte of UTF-8 as a character
        with suppress(UnicodeError):
            speaker, words = (each.encode("latin-1").decode() for each in (speaker, words))
    words = _MENTION.sub(lambda found: f"@{users.get(found[1], found[1])}", words)
    time = next((_write_time(item[field]) for field in _TIMES if item.get(field)), "")
    return Place(time=time, speaker=join_words(users.get(speaker, speaker))), unify_newlines(words)


def _find_name(value: Any) -> str:
    if isinstance(value, dict):
        return next((str(value[name]) for name in _NAMES if value.get(name)), "")
    return value if isinstance(value, str) else ""


def _join_text(value: Any) -> str:
    """The text of a message, which may come in pieces; those without text are named."""
    if isinstance(value, list):
        return "".join(_join_text(each) or _name_piece(each) for each in value)
    if isinstance(value, dict):
        return next((_join_text(value[name]) for name in ("text", "parts", "content") if value.get(name)), "")
    return value if isinstance(value, str) else ""


def _name_piece(value: Any) -> str:
    kind = value.get("type") or value.get("content_type") if isinstance(value, dict) else None
    return f"\n[not read: {kind}]\n" if kind and kind != "text" else ""


def _list_files(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if name := _find_name(each):
            yield join_words(name)


def _write_time(value: Any) -> str:
    """A time as `2024-05-01 12:04`, in UTC if it is a number of seconds or milliseconds."""
    try:
        seconds = float(value)
        if seconds < _YEAR:
            return str(value)
        moment = datetime.fromtimestamp(seconds / 1_000 if seconds > _MILLISECONDS else seconds, UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return write_date(str(value))
    return f"{moment:%Y-%m-%d %H:%M}"


def _read_users(path: Path) -> dict[str, str]:
    """The names of the users of an export of Slack, which lie in a file beside the folders of its channels."""
    for folder in (path.parent.parent, path.parent):
        with suppress(OSError, ValueError, AttributeError):
            users = json.loads((folder / "users.json").read_bytes())
            return {str(user.get("id")): _find_name(user.get("profile")) or _find_name(user) for user in users}
    return {}
