"""Another embedder: new vectors and synonyms, and everything else as it was."""

from __future__ import annotations

import sys
from contextlib import closing

import numpy as np
import pytest
from tests.damages import DOCUMENTS, QUESTION

from tomewise import Document, Tome
from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import Locked, StoreError
from tomewise.language.extractive import ExtractiveModel
from tomewise.store.lookups import read_edges, read_vectors
from tomewise.store.rights import work_alone
from tomewise.tome.open_store import open_store
from tomewise.tome.reembedding import foresee_reembedding, replace_embedder

# The extractive model asks an embedder too: with one of its own it writes the same in every tome.
MODEL = ExtractiveModel(HashEmbedder(64))
LAYERS = ("gists", "graph:passages-triples", "graph:passages-relations")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)


def make(path, embedder, *systems):
    with Tome.open(path, embedder=embedder, model=MODEL) as tome:
        tome.add(*DOCUMENTS)
        tome.build(layers=LAYERS)
        for system in systems:
            tome.build(system)
        return list(tome.memory.export())


def change(path, embedder, report=lambda _: None):
    with closing(open_store(path)) as store:
        replace_embedder(store, embedder, report)


def make_small(most_tokens):
    embedder = HashEmbedder(32)
    embedder.max_tokens = most_tokens
    return embedder


def list_texts(tome):
    return {layer: sorted(node.text for node in tome.store.nodes(layer).values()) for layer in tome.store.layers()}


def test_the_memory_is_as_if_it_had_been_built_with_the_new_embedder(here):
    make(here / "a.tome", "hash:64")
    expected = make(here / "b.tome", "hash:32")
    change(here / "a.tome", HashEmbedder(32))
    with Tome.open(here / "a.tome", model=MODEL) as tome, Tome.open(here / "b.tome", model=MODEL) as second:
        assert tome.kit.embedder.name == "hash:32"
        assert tome.store.find_damage() == ""
        assert list(tome.memory.export()) == expected
        for space in ("passages", "entities:passages-triples", "facts:passages-triples"):
            rows = []
            for store in (tome.store, second.store):
                found = read_vectors(store, space)
                keys = found.keys.tolist()
                ids = [each.id for each in (store.nodes_at(keys) or store.passages(keys)).values()]
                rows.append([row for _, row in sorted(zip(ids, found.rows.tolist(), strict=True))])
            np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)


def test_what_a_model_wrote_stays_and_is_not_asked_for_again(here):
    make(here / "a.tome", "hash:64", "raptor", "cam", "memtree")
    with Tome.open(here / "a.tome") as tome:
        texts = list_texts(tome)
    change(here / "a.tome", HashEmbedder(32))
    with Tome.open(here / "a.tome", model=MODEL) as tome:
        assert list_texts(tome) == texts
        for system in ("raptor", "cam", "memtree", "hybrid"):
            assert tome.build(system).cost.calls == 0
            assert tome.search(QUESTION, system=system)
        tome.add(Document(id="late", text="Zoe Quill forged the Vellum Codex in Bruges."))
        tome.build("cam")
        assert tome.ask(QUESTION, system="cam").words


def test_what_it_takes_is_said_before(here):
    make(here / "a.tome", "hash:64", "raptor", "cam")
    with closing(open_store(here / "a.tome", read_only=True)) as store:
        foreseen = foresee_reembedding(store, HashEmbedder(32))
        assert foreseen.texts["passages"] == len(store.passages())
        assert {"tree", "schemata"} >= set(foreseen.grouped) > set()
        assert foreseen.tokens > foreseen.texts["passages"]
        assert foreseen.cut == 0
        assert foresee_reembedding(store, make_small(16)).cut > 0


def test_passages_to_come_fit_a_smaller_embedder_with_their_overlap(here):
    with Tome.open(
        here / "a.tome", embedder=HashEmbedder(64), settings={"passage_tokens": 256, "overlap": 127}
    ) as tome:
        tome.add(*DOCUMENTS)
    small = make_small(128)
    with closing(open_store(here / "a.tome")) as store:
        assert foresee_reembedding(store, small).sizes == {"passage_tokens": 128, "overlap": 64}
        replace_embedder(store, small, lambda _: None)
        assert foresee_reembedding(store, small).sizes == {}
    with Tome.open(here / "a.tome", embedder=small) as tome:
        assert tome.add(Document(id="late", text="Zoe Quill forged a codex.")).added


def test_the_next_build_of_schemata_compares_with_the_new_vectors_alone(here):
    late = Document(id="late", text="Zoe Quill forged the Vellum Codex in Bruges.")
    found = []
    for name, embedders in (("a.tome", (64, 32)), ("b.tome", (32,))):
        make(here / name, f"hash:{embedders[0]}", "cam")
        if len(embedders) > 1:
            change(here / name, HashEmbedder(32))
        with Tome.open(here / name, model=MODEL) as tome:
            tome.add(late)
            tome.build("cam")
            for space in ("schemata-lists", "schemata-links:0"):
                rows = read_edges(tome.store, space).rows
                ids = {key: passage.id for key, passage in tome.store.passages().items()}
                found.append(sorted((ids[int(a)], ids[int(b)], round(weight, 5)) for a, b, weight in rows))
    assert found[0]
    assert found[:2] == found[2:]


def test_stopped_on_the_way_it_leaves_all_as_it_was(here):
    before = make(here / "a.tome", "hash:64")

    def stop(progress):
        if progress.done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        change(here / "a.tome", HashEmbedder(32), stop)
    with Tome.open(here / "a.tome", model=MODEL) as tome:
        assert list(tome.memory.export()) == before
        with work_alone(tome.store, "add"), pytest.raises(Locked):
            change(here / "a.tome", HashEmbedder(32))


def test_a_tome_that_is_open_meanwhile_is_opened_again(here):
    make(here / "a.tome", "hash:64")
    with Tome.open(here / "a.tome", model=MODEL) as tome:
        change(here / "a.tome", HashEmbedder(32))
        for use in (lambda: tome.ask(QUESTION), lambda: tome.search(QUESTION), lambda: tome.build("raptor")):
            with pytest.raises(StoreError, match="has another embedder now, hash:32, not hash:64"):
                use()


def test_the_command_asks_or_needs_yes(command, here):
    (here / "log.txt").write_text("The keeper, Ada Marsh, put out the light at nine.")
    assert command("add", here / "log.txt").code == 0
    ran = command("reembed", "--embedder", "hash:32")
    assert ran.code == 2
    assert "hash:32 embeds 1 texts (1 of passages), " in ran.err
    assert "give --yes" in ran.err
    assert command("reembed", "--embedder", "hash:32", "--yes").out == "memory.tome has the embedder hash:32 now\n"
    ran = command("reembed", "--embedder", "hash:32")
    assert "was made with hash:32 already" in ran.err
    assert "put out the light" in command("search", "light").out
