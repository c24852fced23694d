"""Draw the rooms of the package and the imports between them, from the code.

python tools/draw_architecture.py            # writes the picture into docs/architecture.md
python tools/draw_architecture.py --check    # exit code 1 where the page differs from the code
"""

from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

PACKAGE = "tomewise"
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
PICTURE = re.compile(r"(?<=<!-- rooms -->\n).*?(?=<!-- /rooms -->)", re.DOTALL)

Imports = dict[str, set[str]]


def main() -> int:
    """Write or check the picture. Raises SystemExit where rooms import each other in a circle."""
    page = PAGE.read_text(encoding="utf-8")
    drawn = PICTURE.sub(lambda _: draw(read_imports()), page)
    if "--check" in sys.argv[1:]:
        if drawn != page:
            print("docs/architecture.md differs from the code: run python tools/draw_architecture.py")
        return drawn != page
    PAGE.write_text(drawn, encoding="utf-8")
    return 0


def read_imports() -> Imports:
    """The rooms that each room imports, those for type checkers included."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=False)
    imports: Imports = {}
    for module in graph.modules:
        targets = imports.setdefault(_find_room(module), set())
        targets |= {_find_room(target) for target in graph.find_modules_directly_imported_by(module)}
    return {room: targets - {room, PACKAGE} for room, targets in imports.items() if room != PACKAGE}


def draw(imports: Imports) -> str:
    """A Mermaid picture: each room in a row below those that import it, with the arrows that no other path implies."""
    try:
        order = list(TopologicalSorter({room: sorted(imports[room]) for room in sorted(imports)}).static_order())
    except CycleError as error:
        sys.exit(f"rooms import each other in a circle: {' -> '.join(error.args[1])}")
    reachable: Imports = {}
    lines = ["```mermaid", "flowchart TD"]
    for room in order:
        behind = set().union(*(reachable[target] for target in imports[room]))
        reachable[room] = imports[room] | behind
        lines += [f"    {room} --> {target}" for target in sorted(imports[room] - behind)]
    return "\n".join([*lines, "```", ""])


def _find_room(module: str) -> str:
    return module.split(".")[1] if "." in module else PACKAGE


if __name__ == "__main__":
    sys.exit(main())
