"""Read messages: one in an .eml file, many in an .mbox file."""

from __future__ import annotations

import mailbox
from collections.abc import Iterator
from contextlib import closing
from email import message_from_bytes
from email.message import EmailMessage, MIMEPart
from email.policy import EmailPolicy
from email.utils import parseaddr, parsedate_to_datetime
from pathlib import Path
from typing import Any

from tomewise.errors import ReadingError
from tomewise.reading.decode import decode, join_words, unify_newlines
from tomewise.reading.metadata import add_losses, describe_origin
from tomewise.reading.web_pages import convert_html, find_charset
from tomewise.types import Document, Place

_FIELDS = ("From", "To", "Cc", "Date", "Subject")  # of a message, shown above its text
_ENCRYPTED = frozenset({"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"})
_TEXTS = frozenset({"text/plain", "text/html"})
_NOT_READ = "[not read: "
_DEEPEST = 20  # messages forwarded within messages
_LONGEST_FIELD = 50_000  # characters; a longer one is shown as it is written, as its parser takes quadratic time
_LONGEST_SENDER = 1_000
_LONGEST_TYPE = 2_000  # characters of a field such as Content-Type; the rest is cut off, for the same reason


class _Policy(EmailPolicy):
    """Shortens the fields that say what a part is, since they are parsed again at each access."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """The name and the value of a field."""
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_LONGEST_TYPE] if name.lower().startswith("content-") else value


_POLICY = _Policy()


def read_eml(path: Path) -> tuple[Document]:
    """The message in a file. Raises `ReadingError` if it is encrypted or is not a message."""
    message = _parse_message(path.read_bytes())
    if message.get_content_type() in _ENCRYPTED:
        raise ReadingError(f"{path} is an encrypted message: save its text to a file, or leave it out")
    if not any(_read_field(message, name) for name in _FIELDS):
        raise ReadingError(f"{path} is not a message, because it has no sender, date or subject: repair it")
    return (_make_document(message, path, str(path)),)


def read_mbox(path: Path) -> Iterator[Document]:
    """The messages in a mailbox, each a document with the id `PATH#NUMBER`. Raises `ReadingError` if it has none."""
    with closing(mailbox.mbox(path, create=False)) as box:
        if not len(box):
            raise ReadingError(f"{path} holds no messages: a mailbox begins with a line `From `")
        for number, key in enumerate(box.iterkeys(), start=1):
            yield _make_document(_parse_message(box.get_bytes(key)), path, f"{path}#{number}")


def _parse_message(raw: bytes) -> EmailMessage:
    message = message_from_bytes(raw, policy=_POLICY)
    assert isinstance(message, EmailMessage)
    return message


def _make_document(message: EmailMessage, path: Path, id: str) -> Document:
    fields = {name.lower(): words for name in _FIELDS if (words := _read_field(message, name))}
    title = fields.pop("subject", "")
    name, address = parseaddr(fields.get("from", "")[:_LONGEST_SENDER])
    date = _read_date(fields.get("date", ""))
    place = Place(time=date, speaker=name or address)
    origin: dict[str, Any] = {}
    text = unify_newlines("\n\n".join(_read_parts(message, 0, origin)))
    language = _read_field(message, "Content-Language")
    metadata = {**describe_origin(authors=[place.speaker], date=date, language=language), **fields, **origin}
    if date:
        metadata["date"] = date
    metadata = dict(add_losses(metadata, {"attachment": text.count(f"\n\n{_NOT_READ}")}))
    return Document(id=id, text=text, title=title, source=str(path), metadata=metadata, marks=((0, place),))


def _read_parts(message: EmailMessage, depth: int, origin: dict[str, Any]) -> Iterator[str]:
    """The fields of a message, its text, the messages in it, and the names of what is not read.

    `origin` gets the encoding of the text if that is a guess.
    """
    yield "\n".join(f"{name}: {words}" for name in _FIELDS if (words := _read_field(message, name)))
    if message.get_content_type() in _ENCRYPTED:
        yield f"{_NOT_READ}encrypted text]"
        return
    body = message.get_body(("plain", "html"))
    if body is not None and (text := _read_body(body, origin).strip()):
        yield text
    for part in [*message.iter_attachments(), *_list_alternatives(message)] if message.is_multipart() else [message]:
        inner = part.get_payload()
        if part.get_content_type() == "message/rfc822" and isinstance(inner, list) and depth < _DEEPEST:
            for forwarded in inner:
                if isinstance(forwarded, EmailMessage):
                    yield from _read_parts(forwarded, depth + 1, origin)
        elif part is not body:
            yield f"{_NOT_READ}{_read_name(part)}]"


def _list_alternatives(message: MIMEPart) -> Iterator[MIMEPart]:
    """The forms of the text of a message that are neither plain text nor a page, such as an invitation."""
    for part in message.iter_parts():
        if part.get_content_maintype() == "multipart":
            yield from _list_alternatives(part)
        elif message.get_content_subtype() == "alternative" and part.get_content_type() not in _TEXTS:
            yield part


def _read_body(part: MIMEPart, origin: dict[str, Any]) -> str:
    payload = part.get_payload(decode=True)
    raw = payload if isinstance(payload, bytes) else b""
    is_page = part.get_content_subtype() == "html"
    charset = part.get_content_charset() or (find_charset(raw) if is_page else None)
    try:
        text, encoding = decode(raw, "the message", charset)
        origin.update(encoding)
    except ReadingError:  # damaged, empty or in an unknown encoding: the other messages are read all the same
        text = raw.decode("utf-8", "replace")
    return convert_html(text, "the message").text if is_page else text


def _read_field(message: EmailMessage, name: str) -> str:
    raw = next((str(value) for field, value in message.raw_items() if field.lower() == name.lower()), "")
    try:
        words = str(message.get(name, "")) if len(raw) <= _LONGEST_FIELD else raw
    except Exception:  # noqa: BLE001 - the parser of fields fails in many ways on fields that are not well formed
        words = raw
    return join_words(words)


def _read_name(part: MIMEPart) -> str:
    """The name of an attachment, or else its type."""
    try:
        name = part.get_filename()
    except Exception:  # noqa: BLE001 - as in `_read_field`
        name = None
    return join_words(name or part.get_content_type())


def _read_date(words: str) -> str:
    """The date as `2024-05-01 12:04`; as it is written if that is not a date."""
    try:
        return f"{parsedate_to_datetime(words):%Y-%m-%d %H:%M}"
    except (ValueError, IndexError, TypeError, OverflowError):
        return words
