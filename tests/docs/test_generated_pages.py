"""The generated pages have everything that there is: events and limits."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.texts import REPOSITORY
from tools.docs.event_pages import find_makers, write_event_page
from tools.docs.limit_pages import SECTIONS, read_number, write_limit_page

from tomewise import Document, Tome
from tomewise.events import EVENTS, is_event
from tomewise.settings import SETTINGS
from tomewise.systems.registry import LOOPS, SYSTEMS

PACKAGE = REPOSITORY / "src" / "tomewise"
# Made by no loop.
AROUND = {"rephrased", "resumed", "session", "waiting", "asked again", "fallbacks", "context lowered"}
STORY = """Ada Marsh kept the light of Skerry for nine years. Tom Reed forged the letter that called the boats home.

On 3 May Ada Marsh put out the light at nine. Tom Reed sailed to Skerry with the letter.

Ada Marsh found the letter in the harbour office in June. The harbour office of Skerry burned in July."""


@cache
def read_sections() -> dict[str, str]:
    return dict(part.split("\n", 1) for part in write_event_page().split("\n## ")[1:])


def test_each_event_has_a_section_and_is_made_somewhere() -> None:
    for name, kind in EVENTS.items():
        assert (name in find_makers()) != (name in AROUND), name
        assert all(f"| `{field}` |" in read_sections()[name] for field in kind.fields)


def test_systems_yield_what_the_page_says_with_exactly_the_fields_of_the_table(tmp_path: Path) -> None:
    seen = set[str]()
    with Tome.open(tmp_path / "a.tome", model="extractive", embedder="hash", settings={"passage_tokens": 32}) as tome:
        tome.add(Document(id="log", text=STORY))
        for name in [*(name for name in SYSTEMS if "+" not in name), *(f"hybrid+{loop}" for loop in LOOPS)]:
            tome.build(system=name)
            answer = tome.ask("Who forged the letter, and what burned in July?", system=name)
            for event in answer.events:
                key = name.removeprefix("hybrid") if "+" in name else name
                made = event.name
                assert name == "auto" or made in AROUND or key in find_makers()[made], (name, made)
                assert is_event(event, made), (name, event)
                assert event.detail.keys() <= EVENTS[made].fields.keys()
                seen.add(made)
    assert len(seen) > 20


LIMITS = [limit for limits in SECTIONS.values() for limit in limits]
NO_BOUNDS = {"base_url", "embedder", "embedder_base_url", "model", "models", "offer", "overlap", "prompts", "system"}
NO_BOUNDS |= {"current", "encoding", "on", "only_supported", "server", "sync_forgets", "workers"}


def test_limits_have_every_setting_that_is_a_bound() -> None:
    listed = {limit.setting for limit in LIMITS} - {""}
    assert listed == SETTINGS.keys() - NO_BOUNDS - {"tome"}


def test_numbers_of_limits_are_those_of_the_code() -> None:
    page = write_limit_page()
    for limit in LIMITS:
        if limit.source and (number := read_number(limit.source)) is not None:
            assert number if isinstance(number, str) else number > 0, limit.source
    assert "| an upload | 100,000,000 bytes |" in page
    assert "| results of one search | 1,000 |" in page


def read_messages() -> str:
    """The source without what joins the pieces of a message, and with "…" for what varies in it."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    joined = re.sub(r"\"\s*\n\s*f?\"", "", source)
    return re.sub(r"\{[^{}]*\}", "…", joined)


def test_messages_of_limits_are_those_of_the_code() -> None:
    messages = read_messages()
    for limit in LIMITS:
        for part in re.split(r"…|: ", limit.says):
            assert part.strip() in messages, (limit.what, part)
