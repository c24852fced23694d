"""Check the arguments of `Tome.open`, before a file is opened, and of a tome's methods, with the questions in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tomewise.errors import UsageError
from tomewise.settings import Settings, check_values
from tomewise.types import Form, Question, Scope

if TYPE_CHECKING:
    from types import UnionType

    from tomewise.language.prompts import Prompts


def read_settings(settings: Settings | Mapping[str, Any] | None) -> Settings:
    """Settings, or some of their fields, as settings. Raises UsageError for an unknown field and for a bad value."""
    if isinstance(settings, Settings):
        return settings
    check_type("settings", settings, Mapping | None, "Settings, or a mapping of their fields")
    return Settings(**check_values(settings or {}))


def check_part(name: str, value: object, verb: str, wanted: str) -> None:
    """Raise UsageError for what is neither a name, nor left out, nor an object with this method."""
    if not isinstance(value, str | None) and not callable(getattr(value, verb, None)):
        raise UsageError(f"{name} must be {wanted}, not {value!r:.200}")


def check_pool(on: str | None, workers: int | None) -> None:
    """Raise UsageError for a number of workers without a place where they work."""
    if workers is not None and on is None:
        raise UsageError(f"{workers} workers need a cluster: give --on ray too (in Python, on='ray')")


def check_settings(settings: Settings) -> None:
    """Raise UsageError or UnknownName for settings with which no tome can be opened. Nothing is asked."""
    from tomewise.language.choose_model import check_models
    from tomewise.language.spec import check_address

    if settings.system != Settings.system:
        from tomewise.systems.registry import parse_variant  # late: it imports all systems

        parse_variant(settings.system)
    read_prompts(settings)
    check_models(settings.model, settings.models, settings.base_url)
    for address in filter(None, (settings.base_url, settings.embedder_base_url)):
        check_address(address)


def read_prompts(settings: Settings) -> Prompts:
    """The prompts, those of the user's folder before the packaged ones. Raises UsageError, UnknownName."""
    from tomewise.language.choose_model import list_roles
    from tomewise.language.prompts import Prompts

    if not settings.prompts:
        return Prompts()
    prompts = Prompts(Path(settings.prompts))
    prompts.check_files(list_roles())
    return prompts


# ---------------------------------------------------------------- methods

_MOST_OPTIONS = 26  # each option has a letter, A to Z


def check_type(name: str, value: object, kinds: type | UnionType, wanted: str) -> None:
    """Raise UsageError for an argument of another type, with its name; `wanted` says what it should be."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        raise UsageError(f"{name} must be {wanted}, not {value!r:.200}")


def read_texts(name: str, value: object) -> tuple[str, ...]:
    """The texts of a list. Raises UsageError for one text, which is not a list, and for anything else."""
    texts = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) else None
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise UsageError(f'{name} must be a list of texts such as ["a", "b"], not {value!r:.200}')
    return texts


def read_names(argument: str, names: str | Sequence[str]) -> tuple[str, ...]:
    """The names that an argument gives, one or several. Raises UsageError for another type."""
    return (names,) if isinstance(names, str) else read_texts(argument, names)


def read_integer(name: str, value: object, wanted: str) -> int:
    """A whole number, also of another library, such as NumPy. Raises UsageError, see `check_type`."""
    check_type(name, value, int if isinstance(value, bool) else Integral, wanted)
    return int(value)  # type: ignore[call-overload, no-any-return]


def make_question(
    question: str | Question,
    within: Scope | None = None,
    *,
    current: bool = False,
    only_supported: bool = False,
    options: Sequence[str] = (),
    instructions: str = "",
    form: Form | None = None,
    force: bool = False,
) -> Question:
    """The question that a caller states, in its own scope or `within` this one.

    Raises UsageError, also for an empty question, for text that is not UTF-8, and for a wrong number of options.
    """
    check_type("question", question, str | Question, "a text or a Question")
    check_type("force", force, bool, "True or False")
    if isinstance(question, str):
        question = Question(text=question, options=read_texts("options", options), instructions=instructions, form=form)
    elif options or instructions or form:
        raise UsageError("a Question has its own options, instructions and form: put them there")
    if question.form not in (None, *get_args(Form)):
        raise UsageError(f"form must be one of {', '.join(get_args(Form))}, not {question.form!r:.200}")
    check_type("question", question.text, str, "a text")
    check_type("instructions", question.instructions, str, "a text")
    for text in (question.text, question.instructions, *read_texts("options", question.options)):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the question holds bytes that are not UTF-8: {text[:80]!a}: type it again") from None
    if not question.text.strip():
        raise UsageError("the question is empty: say what you want to know")
    if len(question.options) == 1 or not all(option.strip() for option in question.options):
        raise UsageError("a multiple-choice question needs two options or more, none of them empty")
    if len(question.options) > _MOST_OPTIONS:
        raise UsageError(
            f"{len(question.options)} options are more than there are letters: give at most {_MOST_OPTIONS}"
        )
    own_scope = None if question.within == Scope() else question.within
    if within and own_scope not in (None, within):
        raise UsageError("a Question has its own scope: put documents and conditions there")
    return replace(
        question,
        within=within or own_scope,
        force=force or question.force,
        current=current or question.current,
        only_supported=only_supported or question.only_supported,
    )
