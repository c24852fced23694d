"""The check of rooms finds what it is there to find, in small packages made for it."""

import ast
from pathlib import Path

from tools import check_rooms

SOURCE = Path("tomewise")


def parse(files: dict[str, str]) -> dict[Path, ast.Module]:
    return {SOURCE / name: ast.parse(text) for name, text in files.items()}


def test_imports_in_functions_for_types_and_by_name_make_circles() -> None:
    trees = parse(
        {
            "__init__.py": "from tomewise.a import one",
            "a.py": "def one():\n    from tomewise.b import two",
            "b.py": "if TYPE_CHECKING:\n    import tomewise.c",
            "c.py": "from importlib import import_module\nHOME = 'tomewise.a'\nimport_module(HOME)",
            "d.py": "from tomewise import a",
        }
    )
    imports = check_rooms.read_imports(trees, SOURCE)
    assert check_rooms.find_circles(imports) == [["tomewise.a", "tomewise.b", "tomewise.c"]]
    assert imports["tomewise.d"] == {"tomewise.a"}


def test_one_name_for_two_files_is_a_fault_but_not_for_a_file_in_its_own_folder() -> None:
    names = "__init__.py tome/__init__.py tome/tome.py a/pictures.py b/pictures.py b/a.py a/__init__.py".split()
    faults = list(check_rooms.find_repeated_names(parse(dict.fromkeys(names, "")), SOURCE))
    assert [fault.partition(":")[0] for fault in faults] == ["a", "pictures"]
