"""Measure how much one must hold in one's head to follow the code. Run it before and after a change.

python tools/measure_house.py            # prints the table
python tools/measure_house.py --json     # the same as JSON, to compare two trees
python tools/measure_house.py --write    # writes the table into docs/architecture.md
python tools/measure_house.py --check    # exit code 1 if the source or a room has more tokens than that table says

Tokens are those of Python's tokenizer without layout and comments; a text of any length is one. A question, an `add`
and a build are followed with a profile function: which functions of the package run, and how often a call leads from
one room into another. Each pair of caller and called function counts once, so that the length of the text does not
matter.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import threading
import tokenize
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TextIO

import tomewise

ROOT = Path(tomewise.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
TABLE = re.compile(r"(?<=<!-- house -->\n).*?(?=<!-- /house -->)", re.DOTALL)
RECORDED = re.compile(r"^\| `?([\w ]+?)`? \| ([\d,]+) \|", re.MULTILINE)
ALL = "all"
TEXT = "Ada keeps the lighthouse at Skagen.\nHer brother Ole mends nets.\nIn winter Ole rows to the lighthouse."
_LAYOUT = frozenset({
    tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    """The Python source of a room."""

    tokens: int = 0
    lines: int = 0
    files: int = 0

    def __add__(self, more: Size) -> Size:
        return Size(self.tokens + more.tokens, self.lines + more.lines, self.files + more.files)


@dataclass(frozen=True, slots=True)
class Walk:
    """What a piece of work enters."""

    functions: int
    files: int
    changes_of_room: int


def main() -> int:
    """Do what the option says. Returns the exit code."""
    sizes, options = measure_rooms(), sys.argv[1:]
    if "--check" in options:
        faults = find_rises(sizes, PAGE.read_text(encoding="utf-8"))
        print("\n".join(faults) or f"house: {sizes[ALL].tokens:,} tokens, no room above what is recorded")
        return bool(faults)
    walks = follow_work()
    if "--json" in options:
        print(json.dumps({name: {key: asdict(each) for key, each in found.items()} for name, found in
                          (("rooms", sizes), ("walks", walks))}, indent=2))  # fmt: skip
    elif "--write" in options:
        page, places = TABLE.subn(lambda _: write_tables(sizes, walks), PAGE.read_text(encoding="utf-8"))
        if places != 1:
            sys.exit(f"{PAGE} has {places} places for the tables: it needs one, from <!-- house --> to <!-- /house -->")
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(write_tables(sizes, walks), end="")
    return 0


def measure_rooms(root: Path = ROOT) -> dict[str, Size]:
    """The size of each room, sorted, and of all together. A file that lies beside the rooms is one itself."""
    sizes: dict[str, Size] = {}
    for path in sorted(root.rglob("*.py")):
        room = find_room(str(path), root)
        with tokenize.open(path) as file:
            tokens = count_tokens(file)
        size = Size(tokens, len(path.read_text(encoding="utf-8").splitlines()), 1)
        sizes[room] = sizes.get(room, Size()) + size
    return {**dict(sorted(sizes.items())), ALL: sum(sizes.values(), Size())}


def count_tokens(file: TextIO) -> int:
    """The tokens of a file. A text with fields in it is one token, as it was to Python before 3.12."""
    count = depth = 0
    for token in tokenize.generate_tokens(file.readline):
        kind = tokenize.tok_name[token.type]
        depth -= kind == "FSTRING_END"
        count += depth == 0 and token.type not in _LAYOUT and kind != "FSTRING_START"
        depth += kind == "FSTRING_START"
    return count


def find_rises(sizes: dict[str, Size], page: str) -> list[str]:
    """A line for each room that has more tokens than the page says, or that only one of the two knows."""
    table = TABLE.search(page)
    recorded = {
        name: int(tokens.replace(",", ""))
        for name, tokens in RECORDED.findall(table[0].split("| work |")[0] if table else "")
    }
    gone = [f"{room}: is gone: run python tools/measure_house.py --write" for room in recorded if room not in sizes]
    return gone + [
        f"{room}: {size.tokens:,} tokens, {recorded.get(room, 0):,} are recorded: delete as much, or run "
        "python tools/measure_house.py --write and say in the commit why nothing could go"
        for room, size in sizes.items()
        if size.tokens > recorded.get(room, 0)
    ]


def write_tables(sizes: dict[str, Size], walks: dict[str, Walk]) -> str:
    """Two tables in Markdown: the rooms, and what work enters."""
    names = {room: room if room == ALL else f"`{room}`" for room in sizes}
    rows = [f"| {names[room]} | {size.tokens:,} | {size.lines:,} | {size.files} |" for room, size in sizes.items()]
    found = [f"| {name} | {walk.functions} | {walk.files} | {walk.changes_of_room} |" for name, walk in walks.items()]
    head = ["| room | tokens | lines | files |", "| --- | ---: | ---: | ---: |"]
    heading = ["| work | functions | files | changes of room |", "| --- | ---: | ---: | ---: |"]
    return "\n".join([*head, *rows, "", *heading, *found, ""])


def follow_work() -> dict[str, Walk]:
    """What one `add`, one plain question and one build enter. All run twice; the second time has no first imports."""
    walks: dict[str, Walk] = {}
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            tome = tomewise.Tome.open(Path(folder) / "house.tome", embedder="hash")
            work: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
                "an add": lambda tome=tome: tome.aadd(tomewise.Document(id="house.txt", text=TEXT)),
                "a plain question": lambda tome=tome: tome.aask("Who keeps the lighthouse?", system="naive"),
                "a build of `raptor`": lambda tome=tome: tome.abuild("raptor"),
            }
            for name, begin in work.items():
                trail = Trail()
                with trail:  # only threads that start inside are followed, so the event loop is a new one
                    asyncio.run(begin())
                walks[name] = trail.measure()
            tome.close()
    return walks


class Trail:
    """The functions of the package that run inside this context, in any thread, and who called them."""

    def __init__(self) -> None:
        self._calls: set[tuple[CodeType | None, CodeType]] = set()

    def __enter__(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def measure(self) -> Walk:
        """The functions, their files, and the calls that lead into another room."""
        functions = {called for _, called in self._calls}
        pairs = ((caller.co_filename, called.co_filename) for caller, called in self._calls if caller is not None)
        return Walk(
            functions=len(functions),
            files=len({code.co_filename for code in functions}),
            changes_of_room=sum(find_room(caller) != find_room(called) for caller, called in pairs),
        )

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and is_ours(frame.f_code) and not frame.f_code.co_name.startswith("<"):
            caller = frame.f_back
            while caller is not None and not is_ours(caller.f_code):
                caller = caller.f_back
            self._calls.add((caller.f_code if caller else None, frame.f_code))


def is_ours(code: CodeType) -> bool:
    """Whether it is code of the package."""
    return code.co_filename.startswith(str(ROOT))


def find_room(filename: str, root: Path = ROOT) -> str:
    """The folder or file directly below the package."""
    return Path(filename).relative_to(root).parts[0].removesuffix(".py")


if __name__ == "__main__":
    sys.exit(main())
