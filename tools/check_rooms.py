"""Check that the files of the package are easy to find, and that no import goes round in a circle.

python tools/check_rooms.py            # exit code 1 and one line for each fault

Imports inside functions, for types alone, and by name (`import_module`) count like all others.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parent.parent
PACKAGE = "tomewise"
SMALL = 40  # lines; a smaller file with one importer joins it
Imports: TypeAlias = dict[str, set[str]]

# Files that are small, have one importer, and stay by themselves for a reason.
APART: dict[str, str] = {
    "terminal/clean_console.py": "imports Rich, which takes a while: it is imported when something is printed",
}


def main() -> int:
    """Print every fault. Returns 1 if there is one."""
    source = ROOT / "src" / PACKAGE
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))}
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    imports = read_imports(trees, source)
    faults = [
        *find_repeated_names(trees, source),
        *find_lost_files(trees, imports, source),
        *(f"{', '.join(circle)}: these files import each other in a circle" for circle in find_circles(imports)),
        *find_upward_names(trees, source, contract["contracts"][0]["layers"]),
    ]
    for fault in faults:
        print(fault)
    print(f"rooms: {len(faults)} faults in {len(trees)} files")
    return bool(faults)


def find_repeated_names(trees: dict[Path, ast.Module], source: Path) -> Iterator[str]:
    """A name that several files or folders have. A file may have the name of the folder in which it is."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in trees:
        place = path.parent if path.name == "__init__.py" else path
        if place != source and path.stem != path.parent.name:
            places[place.stem].append(str(place.relative_to(source)))
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"{name}: {', '.join(sorted(found))} have one name: a file's name stands once in the package"


def find_lost_files(trees: dict[Path, ast.Module], imports: Imports, source: Path) -> Iterator[str]:
    """Small files that one file alone imports, and exceptions that are none."""
    importers = Counter(target for targets in imports.values() for target in targets)
    small = {
        str(path.relative_to(source))
        for path, tree in trees.items()
        if path.name != "__init__.py" and importers[name_module(path, source)] == 1 and tree.body[-1].end_lineno < SMALL  # type: ignore[operator]
    }
    yield from (f"{path}: one file alone imports it: let it join that file" for path in sorted(small - set(APART)))
    yield from (f"{path}: it needs no exception: take it out of APART" for path in sorted(set(APART) - small))


def find_upward_names(trees: dict[Path, ast.Module], source: Path, layers: list[str]) -> Iterator[str]:
    """Imports by name that point up, which import-linter does not see."""
    height = {part: number for number, line in enumerate(layers) for part in line.split(" : ")}
    names = {name_module(path, source): tree for path, tree in trees.items()}
    for module, tree in names.items():
        room = height.get(module.partition(".")[2].partition(".")[0])
        for target in set(list_named(tree)) & set(names):
            below = height.get(target.partition(".")[2].partition(".")[0])
            if room is not None and below is not None and below < room:
                yield f"{module}: it imports {target} by name, which is above it"


def read_imports(trees: dict[Path, ast.Module], source: Path) -> Imports:
    """The modules of the package that each module imports. What the package itself exports is left out."""
    names = {name_module(path, source): tree for path, tree in trees.items() if path != source / "__init__.py"}
    folders = {name_module(path, source) for path in trees if path.name == "__init__.py"}
    return {
        name: ({*list_targets(tree), *set(list_named(tree)) - folders} & set(names)) - {name}
        for name, tree in names.items()
    }


def list_targets(tree: ast.Module) -> Iterator[str]:
    """What a file imports: modules, and names that may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def list_named(tree: ast.Module) -> Iterator[str]:
    """The texts that may name a module, in a file that imports modules by name. A folder's name is a beginning only."""
    if any(isinstance(node, ast.Name) and node.id == "import_module" for node in ast.walk(tree)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def name_module(path: Path, source: Path) -> str:
    """The dotted name of a file's module."""
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_circles(imports: Imports) -> list[list[str]]:
    """The groups of modules that import each other, directly or not."""
    modules = sorted(imports)
    numbers = {module: number for number, module in enumerate(modules)}
    edges = [(numbers[module], numbers[target]) for module in modules for target in imports[module]]
    rows, columns = np.array(edges).T
    graph = coo_array((np.ones(len(edges)), (rows, columns)), shape=(len(modules), len(modules)))
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for module, group in zip(modules, connected_components(graph, connection="strong")[1], strict=True):
        groups[group].append(module)
    return sorted(group for group in groups.values() if len(group) > 1)


if __name__ == "__main__":
    sys.exit(main())
