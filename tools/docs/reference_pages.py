"""The pages of settings, formats and errors, and of what a server offers, from the code that has them."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools.docs.markdown import describe_schema, escape_html, write_code, write_table

from tomewise import errors
from tomewise.language.price_list import list_providers
from tomewise.language.spec import OPENAI_PROTOCOL
from tomewise.reading.formats import FORMATS
from tomewise.server.app import make_app
from tomewise.server.library import Library
from tomewise.server.mcp_app import load_server
from tomewise.server.serve_options import ServerOptions
from tomewise.settings import SETTINGS, Setting, Settings

_OTHER_VARIABLES = {
    "TOMEWISE_TOKEN": "The token that `tome serve` asks for, 16 or more characters without blanks. Without it each "
    "start makes a new one.",
    "TOMEWISE_CACHE": "The folder in which the bundled embedder keeps its files, else `~/.cache/tomewise`.",
    "XDG_CONFIG_HOME": "Your file of settings is `tomewise/tomewise.toml` in it, else in `~/.config`.",
    "XDG_CACHE_HOME": "The cache is `tomewise` in it, where `TOMEWISE_CACHE` is not set.",
    "HF_HUB_OFFLINE": "Embedders of `fastembed:` load no model from a hub.",
}


def write_reference_pages() -> dict[str, str]:
    """The pages by their paths below `reference/`."""
    with TemporaryDirectory() as folder:
        library = Library(Settings(), root=Path(folder))
        described = make_app(library, ServerOptions()).openapi()
        mcp_page = asyncio.run(_write_mcp())
    return {
        "settings.md": _write_settings(),
        "formats.md": _write_formats(),
        "errors.md": _write_errors(),
        "http.md": _write_http(described),
        "mcp.md": mcp_page,
    }


def _write_settings() -> str:
    lines = [
        "# Settings and environment",
        "",
        "A value comes from the first of these that has one: the command line, the environment, `tomewise.toml` in the "
        "current folder, `tomewise.toml` in your own folder of settings (`~/.config/tomewise`). "
        "[`tome config`](commands/config.md) lists all settings with their values and where these come from, and "
        "changes them. *Folder* says whether the file of the current folder may set it: such a file may be anybody's. "
        "It may lower a bound (`budget` and so on), not raise it.",
        "",
    ]
    for name, each in SETTINGS.items():
        lines += [f"## `{name}`", "", escape_html(each.help), ""]
        folder = "yes" if each.free else "no"
        lines += [f"Default: {_describe_default(each)}. Variable: `{each.variable}`. Folder: {folder}.", ""]
    lines += ["## Keys and addresses of providers", ""]
    lines += [
        "Keys stand in the environment alone, under the name that the provider gives them. They are sent to the "
        "address in use, the provider's own or the one that `base_url` or a variable of the table names, and messages "
        "hide them.",
        "",
    ]
    keys = {each.name: each.variables for each in list_providers()}
    names = sorted({*keys, *OPENAI_PROTOCOL})
    rows = [(f"`{name}:`", _list_keys(keys.get(name, "")), _name_address(name)) for name in names]
    lines += write_table(["provider", "key", "address"], rows)
    for name, what in _OTHER_VARIABLES.items():
        lines += [f"## `{name}`", "", what, ""]
    return "\n".join(lines)


def _describe_default(setting: Setting) -> str:
    if setting.default in (None, {}):
        return setting.unset
    return f"`{setting.default:g}`" if isinstance(setting.default, float) else f"`{setting.default}`"


def _list_keys(variables: str) -> str:
    return " or ".join(f"`{name}`" for name in variables.split(" or ")) if variables else "none"


def _name_address(provider: str) -> str:
    return f"`{provider.upper()}_BASE_URL`, or `base_url`" if provider in OPENAI_PROTOCOL else "the provider's own"


def _write_formats() -> str:
    lines = [
        "# File formats",
        "",
        "`tome add --list-formats` prints this table, with the formats of installed plug-ins. *Places* are what a "
        'citation from such a file names, as in "ch. 3, p. 37". Formats with an extra need '
        '`pip install "tomewise[EXTRA]"`. A file with another suffix is read as text if you name it yourself, and '
        "passed over in a folder.",
        "",
    ]
    rows = [
        (f"`{each.name}`", " ".join(f"`{suffix}`" for suffix in each.suffixes), each.places, _name_extra(each.extra))
        for each in FORMATS
    ]
    return "\n".join([*lines, *write_table(["format", "files", "places", "extra"], rows)])


def _name_extra(extra: str) -> str:
    return f"`{extra}`" if extra else ""


def _write_errors() -> str:
    lines = [
        "# Errors",
        "",
        "Every error that you can cause or mend is a `TomewiseError`. Its message says what went wrong, with which "
        "value, and what to do. The command prints it as one line on standard error and ends with the exit code; "
        "`--debug` shows the traceback. What was finished by then is kept. After Ctrl-C the exit code is 130.",
        "",
    ]
    for depth, error in _walk(errors.TomewiseError):
        lines += [f"{'#' * min(depth + 2, 4)} {error.__name__}", ""]
        parent = f", a [{error.__bases__[0].__name__}](#{error.__bases__[0].__name__.lower()})" if depth else ""
        lines += [f"Exit code {error.exit_code}{parent}. {inspect.getdoc(error)}", ""]
    return "\n".join(lines)


def _walk(error: type[errors.TomewiseError], depth: int = 0) -> Iterator[tuple[int, type[errors.TomewiseError]]]:
    yield depth, error
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _walk(child, depth + 1)


def _write_http(described: Mapping[str, Any]) -> str:
    lines = [
        "# HTTP",
        "",
        "What [`tome serve`](commands/serve.md) answers. `/openapi.json` of a running server says the same in full. "
        "Requests carry `Authorization: Bearer TOKEN`, or the cookie that a browser got for the printed address. "
        "`/api/health` needs neither, and with `--no-token` no request does.",
        "",
    ]
    tags: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            tags.setdefault(operation["tags"][0], []).extend(_write_operation(method, path, operation))
    for tag, parts in tags.items():
        lines += [f"## {tag.capitalize()}", "", *parts]
    lines += ["## Objects", "", "A field with * is always there in a request, or is needed.", ""]
    for name, schema in sorted(described["components"]["schemas"].items()):
        lines += [f"### {name}", "", escape_html(schema.get("description", "")), "", *_write_fields(schema)]
    return "\n".join(lines)


def _write_operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### `{method.upper()} {path}`", "", escape_html(operation.get("description", "")), "")
    parameters = operation.get("parameters", [])
    yield from write_table(
        ["parameter", "in", "type", "what"],
        [
            (
                f"`{each['name']}`{'*' if each.get('required') else ''}",
                each["in"],
                describe_schema(each["schema"]),
                each.get("description", each["schema"].get("description", "")),
            )
            for each in parameters
        ],
    )
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield from (f"Body, `{kind}`: {describe_schema(content.get('schema', {}))}.", "")
    for status, reply in operation["responses"].items():
        if status.startswith("2"):
            kinds = [
                describe_schema(content["schema"]) if kind == "application/json" else f"`{kind}`"
                for kind, content in reply.get("content", {}).items()
            ]
            yield from (f"Reply {status}: {', or '.join(kinds) or 'without a body'}.", "")
    refusals = [
        f"{status} ({reply['description'].removeprefix('Refused: ').rstrip('.')})"
        for status, reply in operation["responses"].items()
        if reply.get("description", "").startswith("Refused: ")
    ]
    if refusals:
        yield from (f"Refusals: {', '.join(refusals)}.", "")


def _write_fields(schema: Mapping[str, Any]) -> list[str]:
    needed = schema.get("required", ())
    rows = [
        (f"`{name}`{'*' if name in needed else ''}", describe_schema(field), escape_html(field.get("description", "")))
        for name, field in schema.get("properties", {}).items()
    ]
    return write_table(["field", "type", "what"], rows)


async def _write_mcp() -> str:
    reading = {tool.name for tool in await load_server({}).list_tools()}
    server = load_server({}, write=True)
    lines = [
        "# MCP",
        "",
        "What [`tome mcp`](commands/mcp.md) and `/mcp` of a server offer to agents. Tools that change a tome need "
        "`--write`. `tome mcp --config` prints what to paste into the settings of a client.",
        "",
        "## Tools",
        "",
    ]
    for tool in await server.list_tools():
        needs = "" if tool.name in reading else " Needs `--write`."
        lines += [f"### {tool.name}", "", escape_html(" ".join((tool.description or "").split())) + needs, ""]
        rows = []
        for name, field in tool.input_schema.get("properties", {}).items():
            default = f" Default {write_code(json.dumps(field['default']))}." if "default" in field else ""
            mark = "*" if name in tool.input_schema.get("required", ()) else ""
            rows.append((f"`{name}`{mark}", describe_schema(field), field.get("description", "") + default))
        lines += write_table(["argument", "type", "what"], rows)
    lines += ["## Resources", ""]
    resources = [(f"`{each.uri_template}`", each.description or "") for each in await server.list_resource_templates()]
    lines += write_table(["address", "what"], resources)
    lines += ["## Prompts", ""]
    for prompt in await server.list_prompts():
        given = ", ".join(f"`{each.name}`" for each in prompt.arguments or ())
        lines += [f"### {prompt.name}", "", f"{prompt.description} Arguments: {given}.", ""]
    return "\n".join(lines)
