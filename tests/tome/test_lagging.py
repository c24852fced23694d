"""Memory that lags behind the documents answers, says what is missing, and never shows what was removed."""

from __future__ import annotations

import asyncio
import sys

import pytest
from tests.texts import prose

from tomewise import Document, Question, Scope, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import NotBuilt
from tomewise.language.extractive import ExtractiveModel
from tomewise.systems.registry import SYSTEMS, parse_variant
from tomewise.testing.scripted import ScriptedModel

OLD = [Document(id=f"old{number}", text=prose(number, 12)) for number in range(4)]
NEW = Document(id="new/orchard.txt", text="Zebulon Quince planted the orchard behind the mill in 1907. He sold pears.")
LATE = Document(id="late/harbour.txt", text="Ottilie Brand dredged the harbour in 1931, with two barges.")
QUESTION = "Who planted the orchard behind the mill?"
LATE_QUESTION = "Who dredged the harbour?"


def list_layered(tome):
    return [name for name in SYSTEMS if parse_variant(name).wire(tome.kit).layers]


@pytest.fixture(scope="module", name="built")
def build_everything(tmp_path_factory):
    """The path of a tome in which every layer of every system is built over `OLD` and `NEW`."""
    path = tmp_path_factory.mktemp("built") / "built.tome"
    with pytest.MonkeyPatch.context() as patch, Tome.open(path, embedder="hash", model="extractive") as tome:
        patch.setitem(sys.modules, "umap", None)  # it takes seconds to import
        tome.add(*OLD, NEW)
        for name in list_layered(tome):
            tome.build(name)
    return path


@pytest.fixture
def model():
    return ScriptedModel({}, others=ExtractiveModel(HashEmbedder()))


@pytest.fixture(name="copy")
def copy_built(built, here, model):
    path = here / "copy.tome"
    path.write_bytes(built.read_bytes())
    with Tome.open(path, embedder="hash", model=model) as tome:
        yield tome


def test_every_system_answers_from_what_is_built_and_says_what_is_missing(copy):
    copy.add(LATE)
    for name in list_layered(copy):
        lagging = copy.ask(LATE_QUESTION, system=name).lagging
        assert (lagging.documents, lagging.count, lagging.passages) == ((LATE.id,), 1, 1), name
        assert (lagging.nearer, lagging.removed, lagging.system) == (True, False, name)
        assert lagging.layers
        assert lagging.cost.calls or lagging.unpriced
        assert copy.lag(LATE_QUESTION, system=name) == lagging
        assert not copy.ask(f"What of {OLD[0].text[:60]}?", system=name).lagging.nearer, name
        with pytest.raises(NotBuilt, match="not up to date"):
            copy.ask(Question(text=LATE_QUESTION, current=True), system=name)
        with pytest.raises(NotBuilt, match="not up to date"):
            copy.check(Question(text=LATE_QUESTION, current=True), system=name)


def test_what_a_removed_document_made_is_in_no_prompt_and_no_evidence_before_the_next_build(copy, model):
    def read_prompts():
        return "".join(call.given.model_dump_json() for call in model.calls)

    names = list_layered(copy)
    for name in names:
        copy.ask(QUESTION, system=name)
    assert "Zebulon" in read_prompts(), "the test would see it"
    copy.remove(NEW.id)
    model.calls.clear()
    for name in names:
        answer = copy.ask(QUESTION, system=name, fresh=True)
        assert "Zebulon" not in "".join([answer.text, *(piece.text for piece in answer.evidence)]), name
        assert "Zebulon" not in read_prompts(), name
        assert answer.lagging is None or answer.lagging.removed
    assert model.calls
    assert copy.lag(QUESTION, system="raptor").removed
    assert copy.lag(QUESTION, system="hipporag2") is None, "a graph lost what was made from it, and nothing else"
    copy.build("raptor")
    assert copy.lag(QUESTION, system="raptor") is None


def test_a_document_that_changed_counts_as_new_and_its_old_text_is_gone(copy):
    copy.add(Document(id=NEW.id, text="Ottilie Brand felled the orchard behind the mill in 1931."))
    for name in list_layered(copy):
        answer = copy.ask(QUESTION, system=name)
        assert answer.lagging.documents == (NEW.id,)
        assert "Zebulon" not in "".join(piece.text for piece in answer.evidence)


def test_only_what_is_within_the_scope_of_a_question_is_missing_and_its_trace_keeps_it(copy):
    copy.add(LATE)
    assert copy.within(NEW.id).ask(QUESTION, system="hipporag2").lagging is None
    assert copy.within(Scope(documents=frozenset({LATE.id}))).lag(QUESTION, system="hipporag2").nearer
    assert copy.lag(QUESTION, system="naive") is None, "passages never lag"
    answer = copy.sessions["s"].ask(LATE_QUESTION, system="comorag")
    assert answer.lagging.documents == (LATE.id,)
    assert copy.traces[answer.trace].answer.lagging == answer.lagging
    with pytest.raises(NotBuilt):
        copy.sessions["s"].ask(Question(text="And when?", current=True))


def test_memory_that_was_never_built_or_holds_nothing_any_more_is_refused(tome):
    tome.add(*OLD[:2])
    with pytest.raises(NotBuilt, match=r"not built: tree \(\d+ to take in\); run `tome build"):
        tome.ask(QUESTION, system="raptor")
    tome.build("raptor")
    tome.remove(OLD[0].id)
    remedy = r"tree \(something was removed\); run `tome build --tome .*a.tome --system raptor`"
    with pytest.raises(NotBuilt, match=remedy):
        tome.ask(Question(text=QUESTION, current=True), system="raptor")
    assert tome.ask(QUESTION, system="raptor").lagging.removed
    tome.remove(OLD[1].id)
    tome.add(OLD[2])
    with pytest.raises(NotBuilt, match="not built: tree"):
        tome.ask(QUESTION, system="raptor")


def test_an_addition_says_what_a_build_of_the_layers_that_are_there_takes(tome):
    assert tome.add(OLD[0]).lagging is None
    tome.build("hipporag2")
    assert tome.add(OLD[0]).lagging is None
    lagging = tome.add(OLD[1]).lagging
    assert (lagging.layers, lagging.documents) == (("graph:passages-triples-in-2-calls",), ("old1",))
    assert lagging.cost.calls == sum(each.cost.calls for each in tome.memory.estimate("hipporag2").layers) > 0
    assert tome.add(OLD[1]).lagging == lagging, "until it is built"
    tome.build(layers=lagging.layers)
    assert tome.add(OLD[1]).lagging is None


async def test_questions_are_answered_while_documents_come_and_layers_are_built(here):
    async with Tome.open(here / "busy.tome", embedder="hash", model="extractive") as tome:
        await tome.aadd(*OLD)
        for name in ("comorag", "cam"):
            await tome.abuild(name)

        async def write():
            for number in range(2):
                await tome.aadd(Document(id=f"late{number}", text=prose(number + 20, 6)))
                await tome.abuild("comorag")
                await tome.aremove(f"late{number}" if number % 2 else f"old{number}")
                await tome.abuild("cam")

        async def ask(system):
            while not writing.done():
                await tome.aask("What happened?", system=system, fresh=True)

        writing = asyncio.create_task(write())
        await asyncio.gather(writing, ask("comorag"), ask("cam"))
        last = await tome.aask("What happened?", system="comorag")
        kept = {passage.id for passage in tome.store.passages().values()}
        assert {source for piece in last.evidence for source in piece.sources} <= kept
        assert {"old0", "late1"}.isdisjoint({record.id for record in tome.documents()})
        await tome.abuild("comorag")
        assert (await tome.aask("What happened?", system="comorag")).lagging is None
