"""What goes with documents is what then went, and what of it was paid for is known from the records of builds."""

from __future__ import annotations

import pytest
from tests.tome.paid_tome import pretend_paid

from tomewise.store.records import BUILDS
from tomewise.tome.foresight import foresee_removal
from tomewise.tome.tome import Tome
from tomewise.types import Document

TEXTS = {
    "light": "Ada Marsh put out the light at nine. Ada Marsh met Tom Reed at the harbour in May.",
    "boat": "Tom Reed rowed the boat to the harbour. The boat belonged to the clerk.",
}


@pytest.fixture
def path(here):
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        tome.add(*(Document(id=id, text=text) for id, text in TEXTS.items()))
        tome.build("comorag")
    return here / "a.tome"


def test_the_extractive_model_is_free(path):
    with Tome.open(path) as tome:
        foresight = foresee_removal(["light", "boat"], tome.store)
        assert foresight.paid == {}
        report = tome.remove("*")
        assert (foresight.passages, foresight.derived) == (report.passages, report.derived)


def test_what_another_model_made_was_paid_for_in_all_layers_that_it_wrote(path):
    pretend_paid(path, "openai:test, extractive")
    with Tome.open(path) as tome:
        foresight = foresee_removal(["light"], tome.store)
        assert foresight.paid == {"openai:test": foresight.derived}
        assert {"facts:passages-triples", "entities:passages-triples"} <= foresight.layers.keys()


def test_a_later_build_with_the_free_model_hides_nothing(path):
    pretend_paid(path)
    with Tome.open(path) as tome:
        tome.add(Document(id="more", text="Mary Lane sold the boat to Tom Reed in June."))
        tome.build("comorag")
        assert tome.store.notes(BUILDS)["graph:passages-triples"]["model"] == "extractive"
        foresight = foresee_removal(["light"], tome.store)
        assert list(foresight.paid) == ["openai:test"]
