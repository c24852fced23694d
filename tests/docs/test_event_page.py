"""The page of trace events has every event that there is, with every field and the systems that really yield it."""

from __future__ import annotations

from pathlib import Path

from tools.docs.event_pages import find_makers, write_event_page
from tools.docs.python_pages import load_package

from tomewise import Document, Tome, events
from tomewise.events import CLASSES, TypedEvent
from tomewise.outgoing import answer_models
from tomewise.systems.registry import LOOPS, SYSTEMS

AROUND = {events.Rephrased, events.Resumed, events.SessionUsed, events.Waiting, events.Fallbacks}  # in no loop
SECTIONS = dict(part.split("\n", 1) for part in write_event_page(load_package()).split("\n## ")[1:])
MAKERS = find_makers()
STORY = """Ada Marsh kept the light of Skerry for nine years. Tom Reed forged the letter that called the boats home.

On 3 May Ada Marsh put out the light at nine. Tom Reed sailed to Skerry with the letter.

Ada Marsh found the letter in the harbour office in June. The harbour office of Skerry burned in July."""


def test_each_event_has_a_section_and_is_made_somewhere() -> None:
    for name, classes in CLASSES.items():
        assert name in SECTIONS
        for made in classes:
            assert (made in MAKERS) != (made in AROUND), made


def test_systems_yield_what_the_page_says(tmp_path: Path) -> None:
    seen = set[type[TypedEvent]]()
    with Tome.open(tmp_path / "a.tome", model="extractive", embedder="hash", passage_tokens=32) as tome:
        tome.add(Document(id="log", text=STORY))
        for name in [*(name for name in SYSTEMS if "+" not in name), *(f"hybrid+{loop}" for loop in LOOPS)]:
            tome.build(system=name)
            answer = tome.ask("Who forged the letter, and what burned in July?", system=name)
            for event in answer.events:
                made = type(event)
                assert issubclass(made, TypedEvent)
                key = name.removeprefix("hybrid") if "+" in name else name
                assert name == "auto" or made in AROUND or key in MAKERS[made], (name, event.name)
                section = SECTIONS[event.name]
                plain = answer_models.Event.of(event).write()
                missing = [field for field in plain["detail"] if f"| `{field}` |" not in section]
                assert not missing or made is events.Fallbacks, (event.name, missing)
                seen.add(made)
    assert len(seen) > 20
