"""The prompt of every role: one Jinja2 template each, in `prompts/<role>.md`.

Text from documents or models is put between tags that it cannot close (the filter `fenced`), so that a model can
distinguish material from instructions. `templates` bounds what a template may do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tomewise.errors import UsageError, suggest

if TYPE_CHECKING:
    from tomewise.language.templates import Template
    from tomewise.types import In, Out, Role

PACKAGED = Path(__file__).parent.parent / "prompts"
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
# The weights of a model, and names that stand for few.
_WEIGHTS = re.compile(r"(?<![a-z\d.])e?(\d{1,5}(?:\.\d{1,5})?)(b|m)(?![a-z])", re.IGNORECASE)
_SMALL = re.compile(r"tinyllama|smollm|phi\W?\d(?:\.\d)?\W?mini|llama\W?3\.2(?![-:])", re.IGNORECASE)
_MOST_WEIGHTS = 4  # billion
_SMALL_WINDOW = 8_192  # tokens: in a larger one a long prompt takes little of the room
_LARGEST = 1_000_000  # bytes of a prompt file that are read


def needs_short(model: str, window: int) -> bool:
    """Whether short prompts suit a model better: by its name (`qwen2.5:1.5b`) it is small, or its window is.

    Long rules are most of what such a model reads, and it copies from them.
    """
    billions = [float(number) / (1000 if unit in "mM" else 1) for number, unit in _WEIGHTS.findall(model)]
    is_small = max(billions) <= _MOST_WEIGHTS if billions else bool(_SMALL.search(model))
    return is_small or window <= _SMALL_WINDOW


class Prompts:
    """Renders the prompt of a role. A file `<role>.md` in `folder` replaces the role's own or the packaged prompt.

    So does a text in `texts`, the files of a folder on another machine, each under its name (see `read_own`). Some
    packaged prompts have a short form, in `short/<role>.md`, for models that a long one would confuse.

    Templates see the fields of the role's input by name, as plain data. They may use the filters `fenced`, `oneline`,
    `numbered`, `lettered`, `join`, `default`, `int`, `length`, `lower`, `upper`.
    """

    def __init__(self, folder: Path | None = None, *, texts: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._texts = dict(texts or {})
        self._templates: dict[tuple[str, str, bool], tuple[Template, str]] = {}

    def render(self, role: Role[In, Out], given: In, *, short: bool = False) -> str:
        """The prompt of `role` for `given`, in its `short` form if there is one.

        Raises `UsageError` for a missing or broken template, naming the file.
        """
        from jinja2 import TemplateError

        from tomewise.language.fences import use_tags  # late: it makes large tables of letters

        template, source = self._find(role, short=short)
        try:
            # Plain data only: through the methods of an object, a template could reach anything.
            with use_tags(role.tags):
                return template.render(given.model_dump(mode="json")).strip()
        except (UsageError, TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise UsageError(f"the prompt {source} cannot be rendered: {error}; fix it") from error

    def get_templates(self, role: Role[In, Out]) -> str:
        """The text of the template of `role`, and behind it that of its short form. Raises `UsageError` as `render`."""
        return "\0".join(self._find(role, short=short)[0].text for short in (False, True))

    def read_own(self) -> dict[str, str]:
        """The prompts of the user's folder as text, by the name of their file. Raises `UsageError`."""
        if self._folder is None:
            return dict(self._texts)
        self._find_file("")
        try:
            return {path.name: _read_text(path) for path in sorted(self._folder.glob("*.md"))}
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"a prompt in {self._folder} cannot be read as UTF-8 text: {error}") from error

    def check_files(self, roles: Collection[str]) -> None:
        """Raise `UsageError` if the folder does not exist, or if a file in it seems a misspelt one of these roles.

        A file that is near to none of them may be for a role from outside.
        """
        if self._folder is None:
            return
        self._find_file("")
        for path in sorted(self._folder.glob("*.md")):
            if path.stem not in roles and path.stem.lower() != "readme" and (hint := suggest(path.stem, roles)):
                raise UsageError(f"{path} is the prompt of no role: {hint}rename it, or move it out of the folder")

    def _find_file(self, name: str, *, short: bool = False) -> Path:
        if self._folder is not None:
            if not self._folder.is_dir():
                raise UsageError(f"the prompt folder {self._folder} does not exist: create it, or leave it out")
            if (file := self._folder / f"{name}.md").is_file():
                return file
        file = PACKAGED / "short" / f"{name}.md"
        return file if short and file.is_file() else PACKAGED / f"{name}.md"

    def _find(self, role: Role[In, Out], *, short: bool) -> tuple[Template, str]:
        """The template of a role, which is loaded once, and where it comes from, for messages."""
        key = (role.name, role.prompt, short)
        if key not in self._templates:
            self._templates[key] = self._load(*key)
        return self._templates[key]

    def _load(self, name: str, text: str, short: bool) -> tuple[Template, str]:
        """The prompt of a role, which may bring the `text` itself, and where the prompt comes from, for messages."""
        from jinja2 import TemplateSyntaxError

        from tomewise.language.templates import Template

        path = self._find_file(name, short=short)
        source = str(path)
        try:
            if path.name in self._texts:
                source, text = path.name, self._texts[path.name]
            elif text and path.parent == PACKAGED:
                source = f"of the role {name!r}"
            else:
                text = _read_text(path)
            text = text.replace("\r\n", "\n").removeprefix("\ufeff")
            if front_matter := _FRONT_MATTER.match(text):
                text = text[front_matter.end() :]
                fields = dict(line.split(":", 1) for line in front_matter[1].splitlines() if ":" in line)
                if (stated := fields.get("name", name).strip()) != name:
                    wanted = f"write `name: {name}` in its front matter"
                    raise UsageError(f"the prompt {source} has the name {stated!r}: {wanted}")
            return Template(text), source
        except FileNotFoundError as error:
            raise UsageError(f"the prompt {source} does not exist: give the role its `prompt`") from error
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the prompt {path} cannot be read as UTF-8 text: {error}") from error
        except TemplateSyntaxError as error:
            where = f"line {error.lineno} after the front matter"
            raise UsageError(f"the prompt {source} is broken, {where}: {error.message}; fix it") from error


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST).decode("utf-8")
