"""`tome help`: pages by their names, a search that finds the right one, nothing that leads nowhere."""

from __future__ import annotations

import re

import pytest
from tests.texts import REPOSITORY

# What newcomers ask, written before the search, and the pages that answer it: one has to be among the first three.
QUESTIONS = """
install with as few packages as possible | install
use a model that runs on my own computer | how-to/local-models
how much will it cost before I run it | how-to/costs
can it read a scanned pdf | how-to/add-documents
my notes change every day, how do I keep up | how-to/sync
does anything I add leave my machine | explanations/security
why did it not answer my question | how-to/inspect how-to/when-something-goes-wrong
where do I put my api key | how-to/settings
which system is best for my question | how-to/choose-a-system systems/index
delete a document and all that was learnt from it | explanations/changes
ask a follow-up question | how-to/sessions
how often is a name mentioned | how-to/find
check whether my draft is supported by the sources | how-to/verify
call it from a python script | how-to/python
connect it to Claude or another agent | how-to/agents reference/mcp
share it with my team behind a password | how-to/serve
compare two systems on my own questions | how-to/compare-systems
store everything in postgres | how-to/postgres
take my memory to another computer | how-to/move
are the quotes exact, character for character | explanations/citations
what is a tome | glossary index explanations/memory
Ollama cannot be reached | how-to/when-something-goes-wrong how-to/local-models
limit the money it may spend | how-to/costs
summarise the whole book | how-to/choose-a-system systems/auto
add an epub | how-to/add-documents
write my own reader for a file format | how-to/add-a-reader
use several computers so that building is faster | how-to/ray
does it run on Windows | install
show me the prompt that was sent | how-to/inspect
only ask documents of one author or year | how-to/metadata
what is ComoRAG | systems/comorag
is it better than LightRAG | explanations/compared explanations/results
langchain retriever | how-to/frameworks
jupyter | tutorials/notebook
what happens when I change a file | explanations/changes how-to/sync
change the prompts | how-to/settings
environment variables | reference/settings how-to/settings
exit code 7 | reference/errors how-to/when-something-goes-wrong
list every person in the book | how-to/find
how large can my library get | scale reference/limits
"""
ROWS = [line.split(" | ") for line in QUESTIONS.strip().splitlines()]
FOUND = 37  # of 40


def test_questions_find_their_page_among_the_first_three(command):
    missed = []
    for question, right in ROWS:
        ran = command("help", question)
        found = re.findall(r"^tome help (\S+)  ", ran.out, re.MULTILINE)
        assert (ran.code, ran.err, len(found) <= 3) == (0, "", True), question
        if not set(found) & set(right.split()):
            missed.append((question, found))
    assert len(ROWS) - len(missed) >= FOUND, missed


@pytest.mark.parametrize(
    ("topic", "title"),
    [
        ("costs", "# Costs and caps"),
        ("how-to/costs.md", "# Costs and caps"),
        ("local models", "# Use a local model"),
        ("comorag", "# ComoRAG"),
        ("weights", "# `tome weights`"),
        ("serve", "# Serve and secure"),
    ],
)
def test_a_topic_is_a_page(command, topic, title):
    ran = command("help", *topic.split())
    assert (ran.code, ran.out.splitlines()[0]) == (0, title)


def test_pages_are_whole_and_their_links_are_topics(command):
    whole = command("help", "comorag").out
    assert "| `cycles` |" in whole
    assert "--8<--" not in whole
    assert "<svg" not in whole
    assert "python -m pydoc tomewise.Answer" in command("help", "reference/python/tomewise").out
    listed = command("help").out
    topics = re.findall(r"\(`(\S+)`\)", listed + command("help", "reference/commands/index").out)
    assert "reference/commands/find" in topics
    for topic in topics:
        assert command("help", topic).out.startswith(("# ", "---\n")), topic
    assert "how much it will cost" in listed


def test_the_list_has_every_page_that_users_come_for(command):
    listed = command("help").out
    for path in sorted((REPOSITORY / "docs").rglob("*.md")):
        name = path.relative_to(REPOSITORY / "docs").with_suffix("").as_posix()
        if name.startswith(("how-to/", "tutorials/", "explanations/")):
            assert f"(`{name}`)" in listed, name


def test_words_that_no_page_has_are_refused(command):
    ran = command("help", "xylophonic")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "tome: no page of the documentation has 'xylophonic': `tome help` lists what they are about\n"


def test_what_pages_are_about_names_topics(command):
    found = command("help", "write my own reader for a file format").out
    assert "(`how-to/add-a-reader`)" in found
    assert ".md)" not in found


def test_an_installation_without_the_documentation_says_so(command, monkeypatch, tmp_path):
    monkeypatch.setattr("tomewise.terminal.manual._PACKAGE", tmp_path / "lib" / "tomewise")
    ran = command("help", "costs")
    assert (ran.code, ran.out) == (5, "")
    assert "came without the documentation" in ran.err
