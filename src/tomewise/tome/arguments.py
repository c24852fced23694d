"""Check the arguments of `Tome.open`, before a file is opened, and of a tome's methods, with the questions in them.

A server checks its settings so when it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tomewise.errors import UsageError, suggest
from tomewise.settings import DEFAULTS, SETTINGS, Settings
from tomewise.types import Question, Scope

if TYPE_CHECKING:
    from types import UnionType

    from tomewise.language.prompts import Prompts

# What may be an object in place of a name, by its verb.
_OBJECTS = {
    "model": ("ask", "a LanguageModel"),
    "models": ("ask", "a LanguageModel"),
    "embedder": ("embed", "an Embedder"),
}

# Those that go to the models as they are, see `choose_model`.
MODEL_SETTINGS = ("base_url", "limit", "timeout", "window")
LIMITS = ("max_calls", "max_tokens", "max_cost")  # see `limit_spending`


def read_arguments(given: Mapping[str, Any], further: set[str]) -> Settings:
    """The arguments of `Tome.open` as settings; in the place of an object there is the default.

    Raises UsageError for one of another type, beyond its bounds, or neither a setting nor one of the `further` names,
    and what `check_settings` raises.
    """
    known = sorted({*SETTINGS, *further} - {"tome"})
    for name in given:
        if name not in SETTINGS:
            raise UsageError(f"{name!r} is not an argument: {suggest(name, known)}known are {', '.join(known)}")
    named = {name: value for name, value in given.items() if not _is_object(name, value)}
    if isinstance(models := named.pop("models", None), Mapping):
        models = {
            role: DEFAULTS.model if _is_object(f"models[{role!r}]", model) else model for role, model in models.items()
        }
    if isinstance(prompts := named.get("prompts"), PathLike):
        named["prompts"] = str(Path(prompts))
    for name in ("limit", "timeout"):
        if name in named and named[name] is None:  # the default
            del named[name]
    settings = Settings(models={} if models is None else models, **named)
    check_settings(settings)
    return settings


def check_pool(on: str | None, workers: int | None) -> None:
    """Raise UsageError for a place of work that does not exist, and for a number of workers without one."""
    if on not in (None, "ray"):
        raise UsageError(f"work cannot be done on {on!r:.200}: write ray, or leave it out to work in this process")
    if workers is None:
        return
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise UsageError(f"workers must be a whole number from 1 up, not {workers!r:.200}")
    if on is None:
        raise UsageError(f"{workers} workers need a cluster: give --on ray too (in Python, on='ray')")


def _is_object(name: str, value: object) -> bool:
    """Whether it stands in place of a name. Raises UsageError for an object that cannot."""
    verb, kind = _OBJECTS.get(name.partition("[")[0], ("", ""))
    if not verb or name == "models" or value is None or isinstance(value, str):
        return False
    if callable(getattr(value, verb, None)):
        return True
    raise UsageError(f"{name} must be a name or {kind}, not {value!r:.200}")


def check_settings(settings: Settings) -> None:
    """Raise UsageError or UnknownName for settings with which no tome can be opened. Nothing is asked."""
    from tomewise.language.choose_model import check_models
    from tomewise.language.spec import check_address

    if settings.system != DEFAULTS.system:
        from tomewise.systems.registry import parse_variant  # late: it imports all systems

        parse_variant(settings.system)
    read_prompts(settings)
    check_models(settings.model, settings.models, settings.base_url)
    if settings.embedder_base_url:
        check_address(settings.embedder_base_url)


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


def check_asking(fresh: object, on_event: object) -> None:
    """Raise UsageError for arguments of another type; before any call."""
    check_type("fresh", fresh, bool, "True or False")
    if on_event is not None and not callable(on_event):
        raise UsageError(f"on_event must be a function of an event, not {on_event!r:.200}")


def read_integer(name: str, value: object, wanted: str) -> int:
    """A whole number, also of another library, such as NumPy. Raises UsageError, see `check_type`."""
    check_type(name, value, int if isinstance(value, bool) else Integral, wanted)
    return int(value)  # type: ignore[call-overload, no-any-return]


def make_question(
    question: str | Question,
    within: Scope | None = None,
    *,
    current: bool = False,
    options: Sequence[str] = (),
    instructions: str = "",
    force: bool = False,
) -> Question:
    """The question that a caller states, in its own scope or `within` this one. Raises UsageError."""
    check_type("question", question, str | Question, "a text or a Question")
    check_type("force", force, bool, "True or False")
    if isinstance(question, str):
        question = Question(text=question, options=read_texts("options", options), instructions=instructions)
    elif options or instructions:
        raise UsageError("a Question has its own options and instructions: put them there")
    check_question(question)
    if question.within == Scope():
        question = replace(question, within=None)
    if within and question.within not in (None, within):
        raise UsageError("a Question has its own scope: put documents and conditions there")
    return replace(
        question,
        within=within or question.within,
        force=force or question.force,
        current=current or question.current,
    )


def check_question(question: Question) -> None:
    """Raise UsageError for an empty question, for text that is not UTF-8, and for a wrong number of options."""
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
