"""Labels in replies: "E3" for a piece of evidence, "M2" for a point, 4 for an item of a numbered list.

Models write one label in many ways: `1`, `[1]`, "e1.", "evidence E1", ["[M2]"], "M1, M3", "E6 and E7", "E3-E5".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator

T = TypeVar("T")
_OPENING, _CLOSING = r"[\s\[\](){}<>\"'`*#]{0,4}", r"[\])}>\"'`*#]{0,4}"
_ONE = rf"{_OPENING}(?:[^\W\d_][\s_-]?)?\d{{1,8}}(?!\w){_CLOSING}"
_BETWEEN = r"(?:\s*(?:[&+/–-]|[^\W\d_]{1,3}\b))?"  # nothing, a sign, or a short word: and, or, to
# No label is read again in another way (`?>`), which would take forever on a long list that ends in words.
# Words may stand before ("evidence E1"), and after a colon, bracket or dash what the label stands for ("M1: Xodar").
_LIST = re.compile(rf"(?:[^\W\d_]{{2,}}[\s.:_-]+){{0,2}}((?>{_ONE})(?>{_BETWEEN}{_ONE})*)\.?(?=$|: | \(| [–-] )")
_LABEL = re.compile(r"\s?(to\b|[–-])?[\W_]{0,12}?(?:(?<![^\W\d_])([^\W\d_])[\s_-]?)?(\d+)")
_NUMBER = re.compile(r"([^\W\d_]?)(\d{1,8})")
_LONGEST_RANGE = 20  # labels that "E3-E5" may stand for


def read_labels(written: object) -> list[Any]:
    """The labels of a field, each as "E3", or as "3" without a letter. Other words stay as they are."""
    values = written if isinstance(written, list | tuple) else [] if written is None else [written]
    labels = (label for value in values if value is not None for label in _read_value(value))
    return list({repr(label): label for label in labels}.values())


def find_number(label: str, letter: str) -> int | None:
    """The number of a label that `read_labels` gave, if it has this letter or none."""
    found = _NUMBER.fullmatch(label)
    return int(found[2]) if found and found[1] in ("", letter) else None


def find_labelled(written: object, shown: Sequence[T]) -> list[T]:
    """What a prompt shows under these labels (E1 is the first), each once; other labels are left out."""
    numbers = dict.fromkeys(find_number(label, "E") for label in read_labels(written))
    return [shown[number - 1] for number in numbers if number and number <= len(shown)]


def _read_value(value: object) -> Iterator[object]:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int):
        yield value  # the schema refuses it
        return
    for part in re.split("[,;]", str(value)):
        text = " ".join(part.split())
        found = _LIST.match(text)
        if found is None and text.strip("[](){}"):
            yield text
        letter_before, before = "", 0
        for joint, letter, digits in _LABEL.findall(found[1]) if found else ():
            number = int(digits)
            letter = letter.upper() or (letter_before if joint else "")
            if joint and letter == letter_before and 0 < number - before <= _LONGEST_RANGE:
                yield from (f"{letter}{between}" for between in range(before + 1, number))
            yield f"{letter}{number}"
            letter_before, before = letter, number


def read_label(written: object) -> str:
    """The label of one thing; a reply that names several keeps them all, and so names none that was shown."""
    return ", ".join(map(str, read_labels(written)))


def _read_numbers(written: object) -> list[int]:
    """The numbers of labels, each once, whatever their letter; what is not a label is left out."""
    found = (_NUMBER.fullmatch(str(label)) for label in read_labels(written))
    return list(dict.fromkeys(int(number[2]) for number in found if number))


Label = Annotated[str, BeforeValidator(read_label)]
Labels = Annotated[list[str], BeforeValidator(read_labels)]
Numbers = Annotated[list[int], BeforeValidator(_read_numbers)]
