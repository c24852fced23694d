"""The wording of every role: one Jinja2 template each, in `prompts/<role>.md`.

Text that comes from documents or from models stands inside tags that it cannot close (`fenced`), so that a model can
tell material from instructions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING

from tomewise.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment

    from tomewise.language.role import Role
    from tomewise.types import In, Out

PACKAGED = Path(__file__).parent.parent / "prompts"
TAGS = (
    "evidence", "note", "question", "options", "instructions", "passage", "names", "name", "description",
    "text", "items", "tried", "finding", "missing", "probe", "reference", "prediction",
)  # fmt: skip
# What a model could take for the start of a tag: case, blanks, wide signs and invisible characters do not hide it.
# Possessive, or a sign before a long gap would take time that is quadratic in it.
_INVISIBLE = "[\\s\u00ad\u200b-\u200f\u2060\ufeff]*+"
_NAMES = "|".join(_INVISIBLE.join(tag) for tag in sorted(TAGS, key=len, reverse=True))
_TAG = re.compile(f"[<\uff1c\ufe64](?={_INVISIBLE}[/\uff0f]?{_INVISIBLE}(?:{_NAMES})(?![\\w-]))", re.IGNORECASE)
_TURN = re.compile(r"<\|(?=\w{1,40}\|>)|\[(?=/?INST\])|<(?=</?SYS>>)|<(?=/?(?:start|end)_of_turn>)")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


def neutral(text: str) -> str:
    """The text with the opening sign of anything like a tag of ours written as `&lt;`; all else untouched.

    The marks by which servers tell the turns of a conversation apart, such as `<|im_start|>` and `[INST]`, are broken
    up too: some read them wherever they stand.
    """
    return _TURN.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", _TAG.sub("&lt;", text))


def fenced(text: str, tag: str, **attributes: object) -> str:
    """The text between `<tag>` and `</tag>`, neither of which it can contain. Empty attributes are left out."""
    stated = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items() if value not in ("", None))
    return f"<{tag}{stated}>\n{neutral(text)}\n</{tag}>"


def oneline(text: str) -> str:
    """The text on one line, so that an item of a list cannot pretend to be two."""
    return neutral(" ".join(text.split()))


def numbered(items: Sequence[str]) -> str:
    """One item a line, numbered from 1."""
    return "\n".join(f"{number}. {oneline(item)}" for number, item in enumerate(items, start=1))


def lettered(items: Sequence[str]) -> str:
    """One item a line, lettered from A."""
    return "\n".join(f"{letter(index)}. {oneline(item)}" for index, item in enumerate(items))


def letter(index: int) -> str:
    """The letter of the option at `index`, counted from 0: A, B, C. There are at most 26 options."""
    return ascii_uppercase[index]


class Prompts:
    """Renders the prompt of a role; a file of the same name in `folder` takes the place of the packaged one.

    Templates see the fields of the role's input by name and the filters `fenced`, `oneline`, `numbered`, `lettered`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._environment: SandboxedEnvironment | None = None
        self._templates: dict[str, Template] = {}

    def render(self, role: Role[In, Out], given: In) -> str:
        """The prompt of `role` for `given`. Raises `UsageError` for a missing or broken template, naming the file."""
        from jinja2 import TemplateError

        template = self._templates.get(role.name)
        if template is None:
            template = self._templates[role.name] = self._load(role.name)
        fields = {name: getattr(given, name) for name in type(given).model_fields}
        try:
            return template.render(fields).strip()
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise UsageError(f"the prompt {self._path(role.name)} cannot be rendered: {error}; mend it") from error

    def _path(self, name: str) -> Path:
        if self._folder is None:
            return PACKAGED / f"{name}.md"
        if not self._folder.is_dir():
            raise UsageError(f"the prompt folder {self._folder} does not exist: create it, or leave it out")
        own = self._folder / f"{name}.md"
        return own if own.is_file() else PACKAGED / f"{name}.md"

    def _load(self, name: str) -> Template:
        from jinja2 import TemplateSyntaxError

        path = self._path(name)
        try:
            body = _body(path.read_text(encoding="utf-8"), name, path)
            return self._jinja().from_string(body)
        except FileNotFoundError as error:
            raise UsageError(f"there is no prompt {path}: a role needs a file of its name") from error
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the prompt {path} cannot be read as UTF-8 text: {error}") from error
        except TemplateSyntaxError as error:
            where = f"line {error.lineno} after the front matter"
            raise UsageError(f"the prompt {path} is broken, {where}: {error.message}; mend it") from error

    def _jinja(self) -> SandboxedEnvironment:
        if self._environment is None:
            from jinja2 import StrictUndefined
            from jinja2.sandbox import SandboxedEnvironment

            # Sandboxed, since people share prompt folders; not escaped, since prompts are no HTML (see `fenced`).
            self._environment = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
            self._environment.filters.update(fenced=fenced, oneline=oneline, numbered=numbered, lettered=lettered)
        return self._environment


def _attribute(value: object) -> str:
    return oneline(str(value)).replace('"', "'").replace("<", "&lt;").replace(">", "&gt;")


def _body(source: str, name: str, path: Path) -> str:
    """The template without its front matter, whose `name`, where stated, must be the role's."""
    source = source.replace("\r\n", "\n").removeprefix("\ufeff")
    found = _FRONT_MATTER.match(source)
    if found is None:
        return source
    stated = dict(line.split(":", 1) for line in found[1].splitlines() if ":" in line)
    if (said := stated.get("name", name).strip()) != name:
        raise UsageError(f"the prompt {path} says it is {said!r}: its front matter must say `name: {name}`")
    return source[found.end() :]
