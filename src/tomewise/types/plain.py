"""The JSON of a noun: one rule, from which the command, HTTP, MCP, traces, sessions and the page have theirs.

    write_plain(answer)             # plain data: what `--json` prints, and what HTTP and MCP send
    read_plain(Answer, data)        # the noun again, checked

A noun is a frozen dataclass, and its JSON has its fields under their names. What is different says the class itself:
`kept_back` names fields that are not written, `computed` properties that are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, get_type_hints

from tomewise.types.place import Place, as_plain_data

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

T = TypeVar("T")
_DEEPEST = 100  # levels
_PARSING = RLock()  # pydantic parses classes for the docstrings of fields, which Python 3.11 cannot do in two threads
_LONGEST = 60  # characters of one value in a `repr`


class Noun:
    """What all nouns share. A part from outside may derive nouns of its own from it."""

    __slots__ = ()
    computed: ClassVar[tuple[str, ...]] = ()
    kept_back: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The noun as plain JSON data."""
        return cast(dict[str, Any], write_plain(self))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """How pydantic reads it (by its fields), and writes it (by `write_plain`)."""
        from pydantic_core import core_schema  # late, since a process that only reads files does without pydantic

        with _PARSING:
            schema = handler(source)
        schema["serialization"] = core_schema.plain_serializer_function_ser_schema(write_plain)  # type: ignore[index]
        return schema

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """What OpenAPI and MCP say of it: what `write_plain` writes."""
        described = handler(schema)
        found = handler.resolve_ref_schema(described)
        properties = found.get("properties", {})
        for name in cls.kept_back:
            properties.pop(name, None)
        for name in cls.computed:
            made = getattr(cls, name)
            about = {"description": made.__doc__} if made.__doc__ else {}
            properties[name] = _make_adapter(get_type_hints(made.fget)["return"]).json_schema() | about
        return described


def write_plain(thing: Any, _around: tuple[int, ...] = ()) -> Any:
    """Plain JSON data of a noun, or of anything that holds nouns. What JSON has no form for becomes its `repr`.

    Of a place only the fields that are set are written; a set is written in order. What holds itself, or lies deeper
    than 100 levels, becomes "…".
    """
    if thing is None or isinstance(thing, str | bool | int | float):
        return thing
    if isinstance(thing, Place):
        return as_plain_data(thing)
    if id(thing) in _around or len(_around) > _DEEPEST:
        return "…"
    inside = (*_around, id(thing))
    if is_dataclass(thing) and not isinstance(thing, type):
        left_out = getattr(thing, "kept_back", ())
        names = [field.name for field in fields(thing) if field.name not in left_out]
        return {name: write_plain(getattr(thing, name), inside) for name in (*names, *getattr(thing, "computed", ()))}
    if isinstance(thing, Mapping):
        return {str(name): write_plain(value, inside) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [write_plain(item, inside) for item in thing]
    if isinstance(thing, Set):
        return sorted((write_plain(item, inside) for item in thing), key=str)
    return repr(thing)


def describe_object(thing: object, *values: object, **named: object) -> str:
    """The name of the type with values and named values, each cut, as `Answer('Ada', support='quoted')`.

    It is for `repr`: a notebook or a debugger prints objects that hold whole books.
    """
    parts = [*map(_cut_text, values), *(f"{name}={_cut_text(value)}" for name, value in named.items())]
    return f"{type(thing).__name__}({', '.join(parts)})"


def _cut_text(value: object) -> str:
    text = repr(value[: _LONGEST + 1]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def map_texts(value: Any, change: Callable[[str, str], str], key: str = "", *, as_it_is: Set[str] = frozenset()) -> Any:
    """Plain data with each text changed, except for keys, and for what is under the keys `as_it_is`.

    `change` gets a text, and the key that it is under.
    """
    if key in as_it_is:
        return value
    if isinstance(value, str):
        return change(value, key)
    if isinstance(value, Mapping):
        return {name: map_texts(item, change, name, as_it_is=as_it_is) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [map_texts(item, change, key, as_it_is=as_it_is) for item in value]
    return value


def read_plain(kind: type[T], data: Any) -> T:
    """The noun of this class that `data` is the JSON of; unknown names are passed over. Raises ValueError."""
    return cast(T, _make_adapter(kind).validate_python(data))  # type: ignore[arg-type]  # a class is hashable


def describe_invalid(error: Exception) -> str:
    """What is wrong with data that `read_plain` refused, in one line: the place and the message of the first fault."""
    list_problems: Any = getattr(error, "errors", None)  # of pydantic's errors
    if list_problems is None:
        return str(error).partition("\n")[0]
    first = list_problems()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


@cache
def _make_adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # late: see `Noun`

    return TypeAdapter(kind)


def list_values(value: Any) -> Sequence[Any]:
    """The items of a list; any other value alone in one."""
    return value if isinstance(value, list | tuple) else [value]
