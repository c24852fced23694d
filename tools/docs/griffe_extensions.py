"""How griffe reads the package for the pages of the public Python names."""

from __future__ import annotations

import re
from typing import Any

import griffe

_TWIN = re.compile(r"plain(?:_stream)?\((\w+)\)")


class PlainTwins(griffe.Extension):
    """Reads `ask = plain(aask)` as the method that it is, in place of the asynchronous one, which a label names.

    What a class says of itself, its class variables, is left out.
    """

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the attributes of a class that are plain twins."""
        for name, member in list(cls.members.items()):
            if member.is_attribute and member.annotation and "instance-attribute" not in member.labels:
                cls.del_member(name)
                continue
            found = _TWIN.fullmatch(str(member.value)) if isinstance(member, griffe.Attribute) else None
            if found is None:
                continue
            work = cls.members[found[1]]
            assert isinstance(work, griffe.Function), f"{cls.path}.{name} is the twin of {found[1]}, not of a method"
            twin = griffe.Function(
                name,
                lineno=work.lineno,
                endlineno=work.endlineno,
                parameters=work.parameters,
                returns=work.returns,
                docstring=work.docstring,
            )
            twin.labels.add(f"also {found[1]}")
            cls.set_member(name, twin)
            cls.del_member(found[1])


class FieldTables(griffe.Extension):
    """Lists the fields of a class in its docstring, as one table, and hides them elsewhere."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Add the table, if the class has fields that say what they hold."""
        fields = [each for each in cls.members.values() if is_field(each) and (each.docstring or has_fields(cls))]
        if not fields or cls.docstring is None:
            return
        lines = [f"    {each.name} ({each.annotation}): {_read_words(each)}" for each in fields]
        cls.docstring.value = "\n".join([cls.docstring.value, "", "Attributes:", *lines])
        for each in fields:
            each.public = False


def is_field(member: griffe.Object | griffe.Alias) -> bool:
    """Whether it is a public attribute of a class, and not a property."""
    return member.is_attribute and member.is_public and "property" not in member.labels


def has_fields(target: griffe.Object) -> bool:
    """Whether all attributes of a class are part of what it promises: a dataclass or a protocol."""
    return "dataclass" in target.labels or is_protocol(target)


def is_protocol(target: griffe.Object) -> bool:
    """Whether it says what others have to have."""
    return isinstance(target, griffe.Class) and any("Protocol" in str(base) for base in target.bases)


def _read_words(field: griffe.Object | griffe.Alias) -> str:
    return " ".join(field.docstring.value.split()) if field.docstring else "&nbsp;"  # named in the docstring above
