"""A tiny dataset of our own in every layout lies in `layouts`: a folder for each, with files as they are published."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LAYOUTS = Path(__file__).parent / "layouts"
Files = dict[str, Any]  # file name -> content: a list of rows, an object, or text


def read(folder: Path) -> Files:
    """The contents of the files in a folder."""
    return {path.relative_to(folder).as_posix(): _read_file(path) for path in folder.rglob("*") if path.is_file()}


def _read_file(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text) if path.suffix == ".json" else text


def write(folder: Path, files: Files) -> Path:
    """Write the files and return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture
def publish(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes the files of a layout, after a change to them, and returns the folder."""

    def write_layout(layout: str, change: Callable[[Files], None] = lambda files: None) -> Path:
        files = read(LAYOUTS / layout.replace(" ", "-"))
        change(files)
        return write(tmp_path, files)

    return write_layout
