"""The wording of every role: one Jinja2 template each, in `prompts/<role>.md`.

Text that comes from documents or from models stands inside tags that it cannot close (`fenced`), so that a model can
tell material from instructions. What a template may do is bounded (see `templates`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tomewise.errors import UsageError

if TYPE_CHECKING:
    from tomewise.language.templates import Template
    from tomewise.types import In, Out, Role

PACKAGED = Path(__file__).parent.parent / "prompts"
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_LARGEST = 1_000_000  # bytes of a file: more is no prompt


class Prompts:
    """Renders the prompt of a role; a file of the same name in `folder` takes the place of the packaged one.

    Templates see the fields of the role's input by name, as plain data, and the filters `fenced`, `oneline`,
    `numbered`, `lettered`, `join`, `default`, `int`, `length`, `lower`, `upper`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._templates: dict[str, Template] = {}

    def render(self, role: Role[In, Out], given: In) -> str:
        """The prompt of `role` for `given`. Raises `UsageError` for a missing or broken template, naming the file."""
        from jinja2 import TemplateError

        template = self._templates.get(role.name)
        if template is None:
            template = self._templates[role.name] = self._load(role.name)
        try:
            # Plain data: from the methods of an object, a template could reach anything.
            return template.render(given.model_dump(mode="json")).strip()
        except (UsageError, TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
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

        from tomewise.language.templates import Template

        path = self._path(name)
        try:
            return Template(_body(_text(path), name, path))
        except FileNotFoundError as error:
            raise UsageError(f"there is no prompt {path}: a role needs a file of its name") from error
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the prompt {path} cannot be read as UTF-8 text: {error}") from error
        except TemplateSyntaxError as error:
            where = f"line {error.lineno} after the front matter"
            raise UsageError(f"the prompt {path} is broken, {where}: {error.message}; mend it") from error


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST).decode("utf-8")


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
