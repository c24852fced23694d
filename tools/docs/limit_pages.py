"""The page of limits. Each number is read from the code that holds it; the test of the page checks the messages."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic import BaseModel
from tools.docs.markdown import escape_html, write_table

from tomewise.settings import SETTINGS

_OF_SCHEMAS = ("maximum", "maxItems", "maxLength")
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound that a user can meet.

    `source` is `MODULE:NAME` below `tomewise`, or empty where `unit` has the words. `unit` follows the number. `beyond`
    says what happens; `says` are words of the message, with "…" for what varies. `setting` or `option` sets it.
    """

    what: str
    source: str
    unit: str
    beyond: str
    says: str = ""
    setting: str = ""
    option: str = ""


def _of_setting(name: str, what: str, unit: str, beyond: str, says: str = "", source: str = "") -> Limit:
    return Limit(what, source or f"settings:Settings.{name}", unit, beyond, says, setting=name)


SECTIONS: Mapping[str, tuple[Limit, ...]] = {
    "Money, calls and models": (
        _of_setting(
            "budget",
            "model calls, tokens, dollars and minutes of a command, a question or a build",
            "",
            "the next call is not made; replies so far are kept. With dollars and a model whose price is unknown, one "
            "call is made and no more",
            "the limit of … of … is used up: raise it, or stop here",
        ),
        _of_setting(
            "ask_above",
            "what a build or a question costs",
            "",
            "its price is shown, and asked for on a terminal and the page",
            "this takes …",
        ),
        _of_setting(
            "max_failures",
            "failed calls with no reply between them",
            "",
            "the command stops; replies so far are kept",
            "… calls of … failed with no reply between them, so this was stopped",
        ),
        _of_setting("limit", "model calls in flight", "", "the others wait"),
        _of_setting("timeout", "one call", "seconds", "it is tried again, then it fails", "… did not reply within … s"),
        _of_setting(
            "window",
            "prompt and reply together",
            "tokens",
            "evidence that does not fit is left out, as `cut` of an event says",
        ),
        Limit(
            "one response of a server",
            "language.wire:LONGEST_BODY",
            "bytes",
            "the call fails",
            "sent more than … bytes for one reply: it was given up",
        ),
        Limit(
            "a reply as text",
            "language.reply:_LONGEST",
            "characters",
            "the call fails",
            "the reply for … is … characters long, more than …",
        ),
        Limit(
            "passages that one call of a build reads",
            "language.together:MOST_TOGETHER",
            "",
            "refused; the default is 1",
            option="`together` of a system",
        ),
    ),
    "Prompts of your own": (
        Limit(
            "a template", "language.templates:LONGEST", "characters", "refused", "it has … characters and may have …"
        ),
        Limit(
            "what it writes",
            "language.templates:MOST",
            "characters",
            "the call fails",
            "it writes more than … characters",
        ),
        Limit(
            "computing it",
            "language.templates:SECONDS",
            "seconds",
            "the call fails",
            "it takes too long: simplify its loops",
        ),
    ),
    "Reading": (
        _of_setting(
            "read_characters",
            "the text of one file",
            "characters",
            "the file is refused; others of its folder are read",
            "holds more than … characters of text: raise the setting …, or leave it out",
            source="reading.process:Bounds.characters",
        ),
        Limit(
            "the text of a document in the file of a tome",
            "store.sql.sqlite_rows:_LONGEST_TEXT",
            "bytes",
            "refused",
            "… has … bytes of text, and a tome takes … at most: split it",
        ),
        _of_setting(
            "read_seconds",
            "reading one file, or fetching one page",
            "seconds",
            "the same",
            "took longer than … seconds",
            source="reading.process:Bounds.seconds",
        ),
        _of_setting(
            "read_memory",
            "the memory that its reader takes",
            "MB",
            "the same",
            "takes more than … MB of memory to read",
            source="reading.process:Bounds.memory",
        ),
        _of_setting(
            "read_documents",
            "documents of one file: messages of a mailbox, rows of JSON Lines",
            "",
            "the same",
            "holds more than … documents",
            source="reading.process:Bounds.documents",
        ),
        Limit(
            "a row of JSON Lines",
            "reading.json_lines:_LONGEST_LINE",
            "bytes",
            "refused",
            "the line has more than … bytes",
        ),
        Limit(
            "the id of a document",
            "reading.metadata:ID",
            "characters",
            "refused",
            "the … of the document … has … characters: give it at most …",
        ),
        Limit(
            "the path of a file",
            "reading.metadata:PATH",
            "characters",
            "refused",
            "the … of the document … has … characters: give it at most …",
        ),
        Limit("a title", "reading.metadata:TITLE", "characters", "cut"),
        Limit("a heading", "reading.metadata:HEADING", "characters", "cut"),
        Limit("headings above one another", "reading.metadata:DEEPEST", "", "deeper ones are left out"),
        Limit("the name of a speaker", "reading.metadata:SPEAKER", "characters", "cut"),
        Limit("a time in a recording, a date", "reading.metadata:TIME", "characters", "cut"),
        Limit("a value of metadata", "reading.metadata:VALUE", "characters", "cut"),
        Limit(
            "all metadata of a document", "reading.metadata:METADATA", "characters of JSON", "later fields are left out"
        ),
        Limit("front matter", "reading.metadata:_LONGEST", "characters", "it is read as text"),
        Limit("levels of front matter", "reading.metadata:_DEEPEST", "", "the same"),
        Limit("messages forwarded within a mail", "reading.mail:_DEEPEST", "", "deeper ones are left out"),
        Limit(
            "one part of a DOCX, PPTX or XLSX, unpacked",
            "reading.office_package:_MOST_XML",
            "bytes",
            "refused",
            "… unpacks to … MB of XML: split it, or leave it out",
        ),
        Limit("rows of a sheet", "reading.workbooks:_MOST_ROWS", "", "refused", "a sheet has rows behind row …"),
        Limit(
            "rows of a table in ODT or ODS",
            "reading.open_documents:_MOST_ROWS",
            "",
            "refused",
            "a table has rows behind row …",
        ),
        Limit("headings of the outline of a PDF", "reading.pdf:_MOST_HEADINGS", "", "the others are left out"),
        Limit("their levels", "reading.pdf:_DEEPEST_OUTLINE", "", "deeper ones are left out"),
        Limit(
            "redirects of an address",
            "reading.fetching:_MOST_REDIRECTS",
            "",
            "refused",
            "… redirects more than … times: name the page itself",
        ),
        Limit("a wait for the next bytes of an address", "reading.fetching:_STEP_SECONDS", "seconds", "refused"),
        Limit("a `.gitignore`", "reading.folder:_LONGEST_IGNORE", "bytes", "it does not count"),
        Limit("its lines", "reading.folder:_MOST_PATTERNS", "", "the rest does not count"),
        _of_setting(
            "passage_tokens",
            "a passage",
            "tokens, or what the embedder sees if that is less",
            "a size above what the embedder sees is refused",
            "passages of … tokens are too long: … sees … tokens at most",
            source="tome.fixed_settings:_DEFAULT_TOKENS",
        ),
    ),
    "Names and settings": (
        Limit(
            "a file of settings",
            "settings:_MAX_BYTES",
            "bytes",
            "refused",
            "… cannot be read: it has more than … bytes",
        ),
        Limit(
            "the name of a session",
            "tome.session_record:_LONGEST_NAME",
            "characters",
            "refused",
            "a session cannot be named …: use up to … printable characters",
        ),
        Limit(
            "the name of an entity",
            "memory.graph.extraction:LONGEST_NAME",
            "characters",
            "not remembered; the build says so",
            "names over … characters",
        ),
        Limit("the description of an entity or relation", "memory.graph.extraction:LONGEST_TEXT", "characters", "cut"),
    ),
    "Questions": (
        Limit(
            "options",
            "tome.arguments:_MOST_OPTIONS",
            "",
            "refused",
            "… options are more than there are letters: give at most …",
        ),
        Limit(
            "a question from standard input",
            "terminal.commands:_LONGEST",
            "bytes",
            "refused",
            "standard input has more than … bytes: a question is shorter",
        ),
        Limit(
            "the earlier questions that a follow-up is understood by",
            "tome.questions:_TURNS",
            "",
            "older ones are not shown",
        ),
    ),
    "Traces and sessions": (
        _of_setting(
            "trace_bytes",
            "the trace that is kept of one answer",
            "bytes",
            "texts, then details, then events are cut; `cut` says which",
        ),
        _of_setting(
            "session_limit",
            "entries and turns that a session keeps",
            "",
            "the others are dropped; the answer says which",
        ),
    ),
    "Pictures": (
        Limit("nodes of the picture of a layer", "pictures:LIMIT", "", "the others are left out; the picture says so"),
        Limit("one text in a picture", "tome.drawings:_TEXT", "characters", "cut"),
        Limit("all texts in a picture", "tome.drawings:_TEXTS", "characters", "left out; the picture says how many"),
    ),
    "Writing and evaluating": (
        _of_setting(
            "start_seconds",
            "the start of Ray on this machine, and then of a worker",
            "seconds",
            "the command stops; no process stays",
            "it takes more than … s, which the setting start_seconds raises",
        ),
        Limit(
            "a wait for another program that writes the tome",
            "store.sql.database:BUSY_SECONDS",
            "seconds",
            "`Locked`: wait, then try again",
        ),
        Limit(
            "first questions of an experiment that all fail",
            "evaluate.running:_MOST_EARLY_FAILURES",
            "",
            "the run stops",
            "the first … questions all failed, so the run stopped",
        ),
        Limit("pairs of scores, at least, for a significance test", "evaluate.results:_FEWEST", "", "fewer have no p"),
    ),
    "A server: questions and jobs": (
        Limit(
            "questions answered at once",
            "server.serve_options:ServerOptions.questions",
            "",
            "the others wait",
            option="`--questions`",
        ),
        Limit(
            "questions that wait",
            "server.serve_options:ServerOptions.waiting",
            "",
            "429 `busy`",
            "too many questions wait already: ask again in a few seconds",
        ),
        Limit(
            "one question",
            "server.serve_options:ServerOptions.seconds",
            "seconds",
            "504 `timeout`",
            "the question took longer than the server allows: ask for less, or again",
        ),
        Limit(
            "calls, tokens, dollars and minutes of a question or a job",
            "",
            "none",
            "402 `budget`; a request may lower them, and not raise them",
            option="`--budget`",
        ),
        Limit(
            "what a build or a question may cost",
            "",
            "none",
            "what needs more than the request accepts is 409 `estimate`",
            "this needs …, more than `accept` allows",
            option="`accept` of the request",
        ),
        Limit(
            "passages of a tome for which a refused question gets an estimate too",
            "server.ask_endpoints:_MOST_ESTIMATED",
            "",
            "ask for the estimate itself",
        ),
        Limit(
            "jobs of one tome that wait",
            "server.jobs:_MOST_OPEN",
            "",
            "429 `busy`",
            "… jobs of … wait already: wait for one",
        ),
        Limit("ended jobs that a tome keeps", "server.jobs:_MOST_ENDED", "", "the oldest are forgotten"),
        Limit("imports at once", "server.library:_IMPORTS", "", "the others wait"),
    ),
    "A server: requests": (
        Limit(
            "an upload",
            "server.serve_options:MAX_UPLOAD",
            "bytes",
            "413 `too_large`",
            "the body has more than … bytes",
            option="`--max-upload`, in MB",
        ),
        Limit("another body", "server.limits:JSON_BYTES", "bytes", "413 `too_large`"),
        Limit("a body of MCP", "server.limits:MCP_BYTES", "bytes", "413 `too_large`"),
        Limit(
            "files of one upload",
            "server.job_endpoints:MOST_FILES",
            "",
            "400 `usage`",
            "it has more than … parts: send several forms",
        ),
        Limit("texts of one request", "server.bodies:MOST_TEXTS", "", "400 `usage`"),
        Limit(
            "the id of a new document",
            "server.bodies:MOST_ID",
            "characters",
            "400 `usage`",
            "the name … cannot be an id: give 1 to … characters, none of them control",
        ),
        Limit(
            "a question, an option, a query, a text to verify or to find",
            "server.bodies:MOST_QUESTION",
            "characters",
            "400 `usage`",
        ),
        Limit("results of one search", "server.bodies:Search.limit", "", "400 `usage`"),
        Limit("texts to find at once", "server.bodies:Find.wanted", "", "400 `usage`"),
        Limit("places that one reply to `find` lists", "server.bodies:Find.limit", "", "400 `usage`"),
        Limit(
            "characters of a text to find",
            "text.finding:LONGEST",
            "",
            "400 `usage`",
            "… characters are too many to look for: give … or fewer",
        ),
        Limit("places that are counted", "recall.hits:MOST", "", "400 `usage`", "more than … places have this"),
        Limit("columns of a table", "server.bodies:Collect.columns", "", "400 `usage`"),
        Limit("documents to which a question is narrowed", "server.bodies:Ask.documents", "", "400 `usage`"),
        Limit("tests of metadata", "server.bodies:Ask.where", "", "400 `usage`"),
        Limit(
            "one value of a system's setting",
            "server.choosing:_LONGEST",
            "characters",
            "400 `usage`",
            "settings.… is too long: this server allows … characters",
        ),
        Limit(
            "a number of a system's setting",
            "",
            "as `tome systems NAME` says; else 100, or ten times its default",
            "400 `usage`",
            "settings.… is …: this server allows … at most",
        ),
        Limit(
            "a wait for the next bytes of a body",
            "server.limits:IDLE_SECONDS",
            "seconds",
            "408 `slow`",
            "nothing arrived for … seconds: send again",
        ),
        Limit(
            "a wait for the head of a request", "server.listening:HEAD_SECONDS", "seconds", "the connection is closed"
        ),
        Limit("the head of a request", "server.listening:_HEADER_BYTES", "bytes", "400"),
        Limit(
            "connections of one peer that wait for a head",
            "server.listening:MOST_WAITING",
            "",
            "the oldest are closed",
        ),
        Limit("connections", "server.listening:_CONNECTIONS", "", "503"),
        Limit(
            "letters of the name of a tome",
            "",
            "64",
            "400 `usage`",
            "… cannot name a tome: give up to 64 letters, digits, - and _",
        ),
        Limit(
            "characters of a token, at least",
            "",
            "16",
            "the server does not start",
            "TOMEWISE_TOKEN must have 16 or more characters, all ASCII, no blanks: make a longer one",
            option="`TOMEWISE_TOKEN`",
        ),
    ),
    "A server: replies": (
        Limit(
            "items of a list",
            "server.bodies:PAGE",
            "",
            "`next` is where the following page begins",
            option="`limit` of the request, up to 1,000",
        ),
        Limit(
            "folders, and fields of metadata, in a list of documents",
            "server.tome_endpoints:_MOST_NAMES",
            "",
            "the others are left out",
        ),
        Limit("slices of one evaluation", "server.evaluation_endpoints:_MOST_SLICES", "", "400 `usage`"),
        Limit("steps around a node in a picture", "server.trace_endpoints:_MOST_HOPS", "", "400 `usage`"),
        Limit(
            "the text of a document in one reply",
            "server.tome_endpoints:_MOST_CHARACTERS",
            "characters",
            "ask for the rest",
        ),
        Limit(
            "texts of evidence behind a trace",
            "server.trace_endpoints:_MOST_CHARACTERS",
            "characters",
            "the others are left out",
        ),
        Limit("the message of an error", "server.error_replies:_LONGEST", "characters", "cut"),
        Limit("silence in a stream", "server.streaming:PING_SECONDS", "seconds", "a line `: ping` is sent"),
    ),
    "Agents (MCP)": (
        Limit(
            "the result of a tool",
            "server.mcp_results:TOKENS",
            "tokens",
            "what comes later in it is left out, or `next` says how to go on",
        ),
        Limit("one text among several", "server.mcp_results:ITEM_BYTES", "bytes", "cut"),
        Limit("neighbours of an entity", "server.mcp_tools:_MOST_NEIGHBOURS", "", "the others are left out"),
        Limit(
            "passages named for a piece of evidence", "server.mcp_tools:_MOST_SOURCES", "", "the others are left out"
        ),
        Limit(
            "failures of a layer in the report of a build",
            "server.mcp_tools:_MOST_FAILURES",
            "",
            "the others are counted",
        ),
        Limit("fields of metadata in an overview", "server.mcp_results:_MOST_FIELDS", "", "the others are left out"),
        Limit("layers in an overview", "server.mcp_results:_MOST_LAYERS", "", "the others are left out"),
        Limit("a text to add", "server.limits:MOST_ADDED", "characters", "refused"),
        Limit("sessions of MCP at `/mcp`", "server.mcp_app:_MOST_SESSIONS", "", "503 until one ends"),
    ),
}


def write_limit_page() -> str:
    """The page, as Markdown."""
    lines = [
        "# Limits",
        "",
        "Every bound that you can meet, with its default. What has a setting is set by "
        "[`tome config`](commands/config.md), a variable, `tomewise.toml` or an argument of `Tome.open`; an option "
        "belongs to the command or the system that is named; what has neither is fixed. A number of a reply such as "
        "413 is the status of HTTP, the word behind it the `code` of the error. "
        "[HTTP](http.md) and [MCP](mcp.md) say the bounds of every field of a request, the pages of "
        "[systems](../systems/index.md) those of their settings.",
        "",
    ]
    for section, limits in SECTIONS.items():
        lines += [f"## {section}", ""]
        rows = [(each.what, _write_number(each), _write_place(each), _write_beyond(each)) for each in limits]
        lines += write_table(["what", "at most", "set by", "beyond it"], rows)
    return "\n".join(lines)


def read_number(source: str) -> Any:
    """The number that the code has at `MODULE:NAME` below `tomewise`; of a field of a class its default or maximum."""
    module, _, path = source.partition(":")
    found: Any = import_module(f"tomewise.{module}")
    for name in path.split("."):
        if inspect.isclass(found) and issubclass(found, BaseModel):
            schema = found.model_json_schema()["properties"][name]
            found = next(schema[key] for key in _OF_SCHEMAS if key in schema)
        else:
            found = getattr(found() if inspect.isclass(found) else found, name)
    return found


def _write_number(limit: Limit) -> str:
    number = read_number(limit.source) if limit.source else None
    if number is None:
        return limit.unit if not limit.source else SETTINGS[limit.setting].unset
    if isinstance(number, str):
        return number
    if limit.unit == "bytes" and number >= _MIB and number % _MIB == 0:
        return f"{number // _MIB} MiB"
    return f"{number:,g} {limit.unit}".strip() if isinstance(number, float) else f"{number:,} {limit.unit}".strip()


def _write_place(limit: Limit) -> str:
    return f"[`{limit.setting}`](settings.md#{limit.setting})" if limit.setting else limit.option


def _write_beyond(limit: Limit) -> str:
    return escape_html(f"{limit.beyond}: “{limit.says}”" if limit.says else limit.beyond)
