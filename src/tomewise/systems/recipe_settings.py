"""The settings of a recipe: the parameters of its signature after the kit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from types import MappingProxyType, SimpleNamespace
from typing import Annotated, Any, Literal, NotRequired, Required, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from tomewise.errors import UnknownName, UsageError, suggest
from tomewise.systems.kit import Multiplies, Recipe

_CAREFUL, _CAREFUL_TIMES = 100.0, 10  # a server allows a number that declares nothing this, or so often its default
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False, extra="forbid")


def name_recipe(recipe: Callable[..., object]) -> str:
    """The name of a recipe that is not registered: that of its function."""
    function = _find_function(recipe)
    return str(getattr(function, "__name__", type(function).__name__))


def _find_function(recipe: Callable[..., object]) -> Any:
    """The function of a recipe, without the settings that `partial` gave it."""
    while isinstance(recipe, partial):
        recipe = recipe.func
    return recipe


@cache
def list_settings(recipe: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """The settings of a recipe by name, with types in place of their texts, which only its own module can read.

    The type of the kit is not read: it may be imported for type checkers only. Raises UsageError for a callable that
    takes no kit, and for a type that its module does not hold.
    """
    try:
        kit, *parameters = inspect.signature(recipe).parameters.values()
    except (TypeError, ValueError):
        raise UsageError(f"{recipe!r} is not a recipe: pass a function of a Kit that returns a System") from None
    if kit.kind not in (kit.POSITIONAL_ONLY, kit.POSITIONAL_OR_KEYWORD):
        raise UsageError(f"{recipe!r} is not a recipe: its first parameter must take the kit by position")
    settings = [each for each in parameters if each.kind in (kit.POSITIONAL_OR_KEYWORD, kit.KEYWORD_ONLY)]
    function = _find_function(recipe)
    function = inspect.unwrap(function if hasattr(function, "__globals__") else function.__call__)
    holder = SimpleNamespace(
        __annotations__={each.name: each.annotation for each in settings if each.annotation is not each.empty}
    )
    try:
        types = get_type_hints(holder, globalns=getattr(function, "__globals__", {}), include_extras=True)
    except NameError as error:
        name = name_recipe(recipe)
        raise UsageError(f"the settings of {name} have a type that its module does not hold: {error}") from None
    return {each.name: each.replace(kind=each.KEYWORD_ONLY, annotation=types.get(each.name, Any)) for each in settings}


@dataclass(frozen=True, slots=True)
class DeclaredSetting:
    """A setting as a recipe's signature declares it.

    `multiplies` says what a larger number makes more of; empty if the recipe does not say it. `most` is the largest
    number that a server lets others ask for: the one declared, by `Multiplies` or as an upper bound, or a careful one.
    """

    name: str
    type: Any
    default: Any
    required: bool
    help: str
    multiplies: str
    most: float
    declares_most: bool


def read_declared(
    recipe: Recipe, ablations: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> Mapping[str, DeclaredSetting]:
    """The settings of a recipe by name, with what their types say of them. Raises UsageError, see `list_settings`.

    A careful bound covers what the `ablations` of a system set, as it does the default.
    """
    parameters = list_settings(recipe)
    own = {name: [each[name] for each in ablations.values() if name in each] for name in parameters}
    return {name: _read_setting(each, own[name]) for name, each in parameters.items()}


def is_ours(recipe: Callable[..., object]) -> bool:
    """Whether it is a function of Tomewise."""
    return str(getattr(_find_function(recipe), "__module__", "")).partition(".")[0] == "tomewise"


def list_numbers(value: object) -> Iterator[float]:
    """The numbers in a value, also those in its lists and objects. True and False are none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(list_numbers, value.values()))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from chain.from_iterable(map(list_numbers, value))


def validate_settings(name: str, recipe: Recipe, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as the recipe's signature types them; a setting without an annotation takes any value.

    `name` is for messages. Raises UnknownName for a setting that the recipe does not have, and UsageError for a value
    that its type does not take or a setting that is missing.
    """
    known = list_settings(recipe)
    for setting in settings:
        if setting not in known:
            hint = suggest(setting, known)
            raise UnknownName(f"{name} has no setting {setting!r}: {hint}known are {', '.join(known) or 'none'}")
    try:
        checked: dict[str, Any] = _make_adapter(recipe).validate_python(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        setting = str(first["loc"][0])
        if first["type"] == "missing":
            raise UsageError(f"{name} needs a value for the setting {setting!r}: write {setting}=VALUE") from None
        problem = first["msg"].removeprefix("Input should be ")
        raise UsageError(f"{name}: {setting} must be {problem}, not {settings[setting]!r}") from None
    return {setting: checked[setting] for setting in settings}  # in the order of the caller


def _read_setting(parameter: inspect.Parameter, own_values: list[Any]) -> DeclaredSetting:
    required = parameter.default is parameter.empty
    default = None if required else parameter.default
    marks = list(_list_marks(parameter.annotation))
    texts = (mark if isinstance(mark, str) else getattr(mark, "description", None) for mark in marks)
    help = next(filter(None, texts), "")
    multiplies = next((mark for mark in marks if isinstance(mark, Multiplies)), None)
    if multiplies:
        declared: float | None = multiplies.most
    else:
        bounds = [getattr(mark, key, None) for mark in marks for key in ("le", "lt")]
        declared = min((bound for bound in bounds if isinstance(bound, int | float)), default=None)
    times_default = [_CAREFUL_TIMES * abs(number) for number in list_numbers(default)]
    careful = max([_CAREFUL, *times_default, *(abs(number) for number in list_numbers(own_values))])
    most = careful if declared is None else declared
    what = multiplies.what if multiplies else ""
    return DeclaredSetting(
        parameter.name, parameter.annotation, default, required, help, what, most, declared is not None
    )


def _list_marks(type_: Any) -> Iterator[Any]:
    """What the `Annotated` parts of a type say, the outermost first; the bounds of a `Field` are among them."""
    type_ = getattr(type_, "__value__", type_)  # of a `type` statement
    parts = get_args(type_)
    if get_origin(type_) is Annotated:
        parts, marks = parts[:1], parts[:0:-1]
        for mark in marks:
            yield mark
            yield from getattr(mark, "metadata", ())
    if get_origin(type_) is not Literal:
        for part in parts:
            yield from _list_marks(part)


@cache
def _make_adapter(recipe: Recipe) -> TypeAdapter[Any]:
    fields: dict[str, Any] = {
        name: (Required if setting.default is setting.empty else NotRequired)[setting.annotation]
        for name, setting in list_settings(recipe).items()
    }
    settings_type: Any = TypedDict("Settings", fields)  # type: ignore[misc]
    setattr(settings_type, "__pydantic_config__", _STRICT)  # noqa: B010 - mypy knows no attributes of it
    return TypeAdapter(settings_type)
