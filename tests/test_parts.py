from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

from tomewise import parts
from tomewise.errors import UsageError
from tomewise.language.forwarding import SharedModel
from tomewise.loops.citing import Citer
from tomewise.loops.steps import LoopState
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document


def test_every_name_is_there():
    assert parts.__all__ == sorted(parts.__all__)
    assert all(hasattr(parts, name) for name in parts.__all__)


@pytest.mark.parametrize(("old", "part"), [("Course", LoopState), ("Citer", Citer)])
def test_an_old_name_warns(old, part):
    with pytest.warns(DeprecationWarning, match=rf"tomewise\.parts\.{old}` is deprecated"):
        assert getattr(parts, old) is part
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = parts.Nothing


async def test_old_methods_warn():
    async def reply() -> str:
        return "Ada"

    with pytest.warns(DeprecationWarning, match="use `Skipped.try_call`"):
        assert await parts.Skipped().usable(reply(), "") == "Ada"

    class OldModel:
        name = "old"

        def reckon(self, role: object, given: object) -> int:
            return 7

    old = SharedModel(OldModel())  # type: ignore[arg-type]
    with pytest.warns(FutureWarning, match="old: rename its method `reckon`"):
        assert old.count_input_tokens(None, None) == 7  # type: ignore[arg-type]
    assert old.count_input_tokens(None, None) == 7, "warns once"  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="give it a method `count_input_tokens`"):
        SharedModel(SimpleNamespace(name="none")).count_input_tokens(None, None)  # type: ignore[arg-type]


def test_type_checkers_find_a_misspelt_name():
    tree = ast.parse(Path(parts.__file__).read_text(encoding="utf-8"))
    assert "__getattr__" not in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_a_recipe_is_written_from_parts_alone(here):
    def mine(kit: parts.Kit, *, cycles: parts.Count = 0) -> parts.System:
        retriever = parts.Fused([parts.Dense(kit.store, kit.embedder), parts.Lexical(kit.store)])
        return parts.probe(kit, parts.answer_once(kit, retriever, 3, 500), cycles=cycles)

    model = ScriptedModel({"answer": lambda _: {"answer": "Ada"}})
    with Tome.open(here / "m.tome", model=model, embedder="hash") as tome:
        tome.add(Document(id="d", text="Ada kept the light."))
        answer = tome.ask("Who?", system=mine, settings={"cycles": 1})
    assert (answer.text, answer.system) == ("Ada", "mine cycles=1")
