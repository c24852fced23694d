"""Random histories of a tome: whatever was added, replaced, removed, renamed and built before, the memory is the same.

A third of all passages are equal, as in forms. After each history the export equals that of a fresh tome with the last
files, and the model was asked nothing twice. `bench/churn.py` takes more histories.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.texts import prose

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import Batch
from tomewise.testing import ScriptedModel
from tomewise.tome.tome import Tome

# Together they have the layers that are functions of their passages. A MemTree depends on the history, see
# `tests/memory/growing_tree`.
SYSTEMS = (
    "raptor",
    "comorag levels=2",
    "hipporag2 together=3",
    "cogitorag",
    "cogitorag source=summaries",
    "hgmem",
    "cam",
    "read_agent",
)
_FORMS = [" ".join(prose(1_000 + number, 3).split()[:22]) + "." for number in range(3)]
_MOST_FILES = 6
_ID = re.compile(r"\b[a-z]+-[0-9a-f]{16}\b")
_ROUNDS = 6  # how far what is known of a node comes: from a passage through five levels of a tree


def name_by_content(export: list[str]) -> list[str]:
    """The lines of an export, with a name in place of each id of a node that tells all that is known of the node.

    A moved file keeps the ids that its passages got under the former path, as does what was made from them.
    """
    records = [json.loads(line) for line in export]
    nodes = [record for record in records if record["kind"] == "node"]
    edges = [record for record in records if record["kind"] == "edge"]
    names = {node["id"]: "" for node in nodes}
    for _ in range(_ROUNDS):
        known = {node["id"]: [_rename(node, names)] for node in nodes}
        for edge in edges:
            for end in {edge["a"], edge["b"]} & known.keys():
                known[end].append(_rename({**edge, "from": edge["a"] == end}, names))
        names = {node: sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16] for node, lines in known.items()}
    return sorted(_rename(record, names) for record in records)


def _rename(record: dict[str, Any], names: dict[str, str]) -> str:
    return _ID.sub(lambda found: names.get(found[0], found[0]), json.dumps(record, sort_keys=True))


class Churn:
    """One random history of the files in a folder, and of the tome beside it."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._dice = random.Random(seed)
        self._path = folder / "churn.tome"
        self._fresh = folder / "fresh.tome"
        self._files = folder / "files"
        self._files.mkdir()
        self._removed: list[str] = []
        self._next_file = 0
        self._embedder = HashEmbedder()
        self.model = self._make_model()
        self.systems = self._dice.sample(SYSTEMS, 3)
        if "raptor" not in self.systems:
            self.systems[0] = "raptor"
        self.steps: list[str] = []

    def run(self, steps: int = 8) -> None:
        """Take so many random steps, then bring all layers up to date."""
        with self._open(self._path, self.model) as tome:
            for _ in range(3):
                self._add()
            tome.add(self._files, sync=True)
            for _ in range(steps):
                self._step(tome)
            if "rename" in self.steps:
                # A moved file keeps its memory. So a tree stays as it is, in the former order, until a passage changes.
                self._make_name().write_text(self._write_text(), encoding="utf-8")
            tome.add(self._files, sync=True)
            for system in self.systems:
                tome.build(system)

    def compare(self) -> list[str]:
        """The differences of the export from that of a fresh tome, and what was asked twice."""
        with self._open(self._fresh, self._make_model()) as fresh, self._open(self._path, self.model) as tome:
            fresh.add(self._files, sync=True)
            for system in reversed(self.systems):
                fresh.build(system)
            own, expected = list(tome.memory.export()), list(fresh.memory.export())
        if "rename" in self.steps:
            own, expected = name_by_content(own), name_by_content(expected)
        paid = [f"asked {count} times: {asked}" for asked, count in self.count_asked().items() if count > 1]
        missing, wrong = Counter(expected) - Counter(own), Counter(own) - Counter(expected)
        return [*(f"- {line}" for line in sorted(missing)), *(f"+ {line}" for line in sorted(wrong)), *paid]

    def count_asked(self) -> Counter[tuple[str, int, str]]:
        """What the model was asked, passage by passage.

        What is asked with neighbours may have another reply than what is asked alone, so both are counted.
        """
        asked = Counter[tuple[str, int, str]]()
        for call in self.model.calls:
            items, together = [call.given], 1
            if isinstance(call.given, Batch):
                items, together = call.given.passages, call.given.together
            asked.update((call.role, together, item.model_dump_json()) for item in items)
        return asked

    def _make_model(self) -> ScriptedModel:
        """The extractive model as one that is paid for."""
        return ScriptedModel({}, others=ExtractiveModel(self._embedder), name="paid")

    def _open(self, path: Path, model: ScriptedModel) -> Tome:
        return Tome.open(path, embedder=self._embedder, model=model, settings={"passage_tokens": 32})

    def _step(self, tome: Tome) -> None:
        kinds = ["add", "replace", "remove", "rename", "undo", "build", "build"]
        kind = self._dice.choice(kinds)
        self.steps.append(kind)
        if kind == "build":
            tome.build(self._dice.choice(self.systems))
            return
        getattr(self, f"_{kind}")()
        if self._dice.random() < 0.8:  # else several changes come at once
            tome.add(self._files, sync=True)

    def _list_files(self) -> list[Path]:
        return sorted(self._files.iterdir())

    def _add(self) -> None:
        if len(self._list_files()) < _MOST_FILES:
            self._make_name().write_text(self._write_text(), encoding="utf-8")

    def _replace(self) -> None:
        for path in self._choose_file():
            paragraphs = path.read_text(encoding="utf-8").split("\n\n")
            paragraphs[self._dice.randrange(len(paragraphs))] = self._write_paragraph()
            path.write_text("\n\n".join(paragraphs), encoding="utf-8")

    def _remove(self) -> None:
        for path in self._choose_file():
            self._removed.append(path.read_text(encoding="utf-8"))
            path.unlink()

    def _rename(self) -> None:
        for path in self._choose_file():
            path.rename(self._make_name())

    def _undo(self) -> None:
        if self._removed and len(self._list_files()) < _MOST_FILES:
            self._make_name().write_text(self._removed.pop(), encoding="utf-8")

    def _choose_file(self) -> Iterator[Path]:
        files = self._list_files()
        if len(files) > 1:
            yield self._dice.choice(files)

    def _make_name(self) -> Path:
        self._next_file += 1
        return self._files / f"{self._dice.choice('abc')}{self._next_file}.txt"

    def _write_text(self) -> str:
        return "\n\n".join(self._write_paragraph() for _ in range(self._dice.randint(3, 12)))

    def _write_paragraph(self) -> str:
        """A passage: one of three forms, or text of its own."""
        if self._dice.random() < 1 / 3:
            return self._dice.choice(_FORMS)
        return " ".join(prose(self._dice.randrange(10_000), 3).split()[:22]) + "."


@pytest.mark.parametrize("seed", range(8))
def test_a_random_history_leaves_no_trace_and_pays_nothing_twice(seed: int, tmp_path: Path) -> None:
    churn = Churn(seed, tmp_path)
    churn.run()
    assert churn.compare() == [], churn.steps
