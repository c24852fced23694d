"""List the rooms of the package and the imports between them, from the code.

python tools/draw_architecture.py            # writes the table into docs/architecture.md
python tools/draw_architecture.py --check    # exit code 1 if the page differs from the code
"""

from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

PACKAGE = "tomewise"
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
TABLE = re.compile(r"(?<=<!-- rooms -->\n).*?(?=<!-- /rooms -->)", re.DOTALL)

Imports = dict[str, set[str]]


def main() -> int:
    """Write or check the table. Raises SystemExit if rooms import each other in a circle or the page has no place."""
    page = PAGE.read_text(encoding="utf-8")
    table = write_table(read_imports())
    written, places = TABLE.subn(lambda _: table, page)
    if places != 1:
        sys.exit(f"{PAGE} has {places} places for the table: it needs one, from <!-- rooms --> to <!-- /rooms -->")
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(written, encoding="utf-8")
    elif written != page:
        print(f"{PAGE} differs from the code: run python tools/draw_architecture.py")
        return 1
    return 0


def read_imports() -> Imports:
    """The rooms that each room imports. Imports for type checkers count too."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=False)
    imports: Imports = {}
    for module in graph.modules:
        targets = imports.setdefault(_find_room(module), set())
        targets |= {_find_room(target) for target in graph.find_modules_directly_imported_by(module)}
    return {room: targets - {room, PACKAGE} for room, targets in imports.items() if room != PACKAGE}


def write_table(imports: Imports) -> str:
    """A row for each room with what it imports, the lowest first. What a longer path implies is left out.

    Raises SystemExit if rooms import each other in a circle.
    """
    try:
        order = list(TopologicalSorter({room: sorted(imports[room]) for room in sorted(imports)}).static_order())
    except CycleError as error:
        sys.exit(f"rooms import each other in a circle: {' -> '.join(error.args[1])}")
    reachable: Imports = {}
    lines = ["| room | imports |", "| --- | --- |"]
    for room in order:
        behind = set().union(*(reachable[target] for target in imports[room]))
        reachable[room] = imports[room] | behind
        lines.append(
            f"| `{room}` | {', '.join(f'`{target}`' for target in sorted(imports[room] - behind)) or 'nothing'} |"
        )
    return "\n".join([*lines, ""])


def _find_room(module: str) -> str:
    return module.split(".")[1] if "." in module else PACKAGE


if __name__ == "__main__":
    sys.exit(main())
