"""A tome as a retriever of LlamaIndex, with the real llama-index-core."""

from __future__ import annotations

import subprocess
import sys

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import MetadataMode, QueryBundle

from tomewise.adapters.llamaindex import TomeRetriever
from tomewise.errors import UnknownName


def test_nodes_have_text_source_place_score_and_layer(book):
    retriever = TomeRetriever(book, limit=1)
    assert isinstance(retriever, BaseRetriever)
    (found,) = retriever.retrieve("Who put out the light?")
    (evidence,) = book.search("Who put out the light?", limit=1)
    assert (found.node.node_id, found.score, found.text) == (evidence.node, evidence.score, evidence.text)
    metadata = found.node.metadata
    assert (metadata["layer"], metadata["score"]) == ("passages", evidence.score)
    assert metadata["place"]["chapter"][-1] == "Chapter 2"
    assert metadata["source"].endswith("log.md, ch. 2, part 1")


def test_a_model_is_shown_the_text_and_its_source_alone(book):
    (found,) = TomeRetriever(book, limit=1).retrieve("Who put out the light?")
    shown = found.node.get_content(MetadataMode.LLM)
    assert f"source: {found.node.metadata['source']}" in shown
    assert "Ada Marsh" in shown
    assert "passage:" not in shown


async def test_sync_and_async_find_the_same(book):
    retriever = TomeRetriever(book)
    found = await retriever.aretrieve(QueryBundle("the letter"))
    again = retriever.retrieve("the letter")
    assert [each.node.node_id for each in found] == [each.node.node_id for each in again]
    assert len(found) == 2


def test_a_search_is_narrowed_and_its_system_chosen(book):
    (found,) = TomeRetriever(book, system="naive", documents=["letter.txt"]).retrieve("light")
    assert found.node.metadata["document"].endswith("letter.txt")
    with pytest.raises(UnknownName):
        TomeRetriever(book, system="hybird").retrieve("light")


def test_without_the_package_the_extra_is_named():
    hidden = "import sys; sys.modules['llama_index'] = None; import tomewise.adapters.llamaindex"
    ran = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert "MissingDependency" in ran.stderr
    assert "pip install 'tomewise[llamaindex]'" in ran.stderr
