"""A folder that grows by a document a day for a month, while questions come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.texts import prose

from tomewise.tome.tome import Tome

DAYS = 30
SYSTEM = "comorag"
# Layers that read each passage by itself.
BY_PASSAGE = ("gists", "summaries", "graph:passages-triples", "graph:passages-relations", "graph:gists-triples")


class Counting:
    """A model that counts its calls, around the model of a tome."""

    def __init__(self, inner):
        self.inner = inner
        self.calls: Counter[str] = Counter()  # by role

    def __getattr__(self, name):
        return getattr(self.inner, name)

    async def ask(self, role, given):
        self.calls[role.name] += 1
        return await self.inner.ask(role, given)


def open_counted(path: Path) -> tuple[Tome, Counting]:
    tome = Tome.open(path, embedder="hash", model="extractive", passage_tokens=60)
    counting = Counting(tome.kit.model)
    object.__setattr__(tome.kit, "model", counting)
    return tome, counting


def write_day(folder: Path, day: int) -> None:
    folder.mkdir(exist_ok=True)
    text = (
        f"The harbour log of day {day}. On day {day} the pilot Wren{day} brought in {day} barges.\n\n{prose(day, 10)}"
    )
    (folder / f"day-{day:02}.txt").write_text(text, encoding="utf-8")


def count_calls(here: Path, name: str, layers: Sequence[str], days: Sequence[int]) -> Counter[str]:
    """The calls of all builds of these layers, one after each of these days."""
    tome, counting = open_counted(here / f"{name}.tome")
    with tome:
        for day in range(1, DAYS + 1):
            write_day(here / name, day)
            tome.add(here / name)
            if day in days:
                tome.build("naive", layers=layers)
        return counting.calls


def test_every_question_is_answered_and_says_what_is_missing(here: Path):
    tome, _ = open_counted(here / "month.tome")
    with tome:
        for day in range(1, DAYS + 1):
            write_day(here / "month", day)
            added = tome.add(here / "month")
            if day == 1:
                tome.build(SYSTEM)
            assert (added.lagging.count if added.lagging else 0) == day - 1
            answer = tome.ask(f"Which pilot brought in the barges on day {day}?", system=SYSTEM)
            missing = answer.lagging.documents if answer.lagging else ()
            named = [Path(document).name for document in missing]
            assert named == [f"day-{late:02}.txt" for late in range(2, day + 1)][:20]
            if answer.lagging:
                assert answer.lagging.count == day - 1
                assert answer.lagging.passages >= answer.lagging.count
        tome.build(SYSTEM)
        assert tome.ask("Which pilot came last?", system=SYSTEM).lagging is None


def test_builds_every_day_take_the_calls_of_one_build_at_the_end(here: Path):
    daily = count_calls(here, "daily", BY_PASSAGE, range(1, DAYS + 1))
    once = count_calls(here, "once", BY_PASSAGE, [DAYS])
    assert daily == once
    assert min(once.values()) > DAYS


@pytest.mark.parametrize("layer", ["episodes", "tree", "schemata"])
def test_layers_across_passages_may_take_more(here: Path, layer: str):
    daily = count_calls(here, "daily", [layer], range(1, DAYS + 1, 10))
    once = count_calls(here, "once", [layer], [DAYS - 9])
    print(f"{layer}: {daily.total()} calls of builds every tenth day, {once.total()} of one build at the end")
    assert daily.total() >= once.total() > 0
