"""Pictures from their JSON data: the inverse of `Picture.as_json`."""

from __future__ import annotations

from pydantic import TypeAdapter

from tomewise.pictures import Picture


def read_picture(data: object) -> Picture:
    return TypeAdapter(Picture).validate_python(data)
