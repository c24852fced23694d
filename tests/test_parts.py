from __future__ import annotations

from tomewise import parts
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document


def test_every_name_is_there():
    assert parts.__all__ == sorted(parts.__all__)
    assert all(hasattr(parts, name) for name in parts.__all__)


def test_a_recipe_is_written_from_parts_alone(here):
    def mine(kit: parts.Kit, *, cycles: parts.Count = 0) -> parts.System:
        retriever = parts.Fused([parts.Dense(kit.store, kit.embedder), parts.Lexical(kit.store)])
        return parts.probe(kit, parts.answer_once(kit, retriever, 3, 500), cycles=cycles)

    model = ScriptedModel({"answer": lambda _: {"answer": "Ada"}})
    with Tome.open(here / "m.tome", model=model, embedder="hash") as tome:
        tome.add(Document(id="d", text="Ada kept the light."))
        answer = tome.ask("Who?", system=mine, settings={"cycles": 1})
    assert (answer.text, answer.system) == ("Ada", "mine cycles=1")
