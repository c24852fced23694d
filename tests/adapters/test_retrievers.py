"""A tome as a retriever of LangChain and of LlamaIndex, with the real langchain-core and llama-index-core."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from llama_index.core.base import base_retriever
from llama_index.core.schema import MetadataMode, QueryBundle

from tomewise.adapters import langchain, llamaindex
from tomewise.errors import NotBuilt, UnknownName, UsageError
from tomewise.tome.tome import Tome

LOG = "# Night\n\n## Chapter 2\n\nThe keeper, Ada Marsh, put out the light at nine."
LETTER = "The doctor forged a letter. Nobody asked him why."
LIGHT = "Who put out the light?"


@pytest.fixture
def book(here):
    """A tome of two documents that retrievers search."""
    (here / "log.md").write_text(LOG)
    (here / "letter.txt").write_text(LETTER)
    with Tome.open(here / "a.tome", embedder="hash") as made:
        made.add("log.md", "letter.txt")
        yield made


async def find_by_langchain(tome, query, **given):
    retriever = langchain.TomeRetriever(tome=tome, **given)
    found = retriever.invoke(query)
    assert found == await retriever.ainvoke(query)
    return [(document.id, document.page_content, document.metadata) for document in found]


async def find_by_llamaindex(tome, query, **given):
    retriever = llamaindex.TomeRetriever(tome, **given)
    found, again = retriever.retrieve(query), await retriever.aretrieve(QueryBundle(query))
    assert [(each.node, each.score) for each in found] == [(each.node, each.score) for each in again]
    assert all(each.score == each.node.metadata["score"] for each in found)
    return [(each.node.node_id, each.text, each.node.metadata) for each in found]


by_framework = pytest.mark.parametrize("find", [find_by_langchain, find_by_llamaindex])


@by_framework
async def test_evidence_has_text_source_place_score_and_layer(book, find):
    ((node, text, metadata),) = await find(book, LIGHT, limit=1)
    (evidence,) = book.search(LIGHT, limit=1)
    assert (node, text, metadata["score"]) == (evidence.id, evidence.text, evidence.score)
    assert metadata["layer"] == "passages"
    assert metadata["place"]["chapter"][-1] == "Chapter 2"
    assert metadata["source"].endswith("log.md, ch. 2, part 1")
    assert metadata["document"].endswith("log.md")
    assert metadata["sources"] == [{name: metadata[name] for name in ("document", "passage", "position")}]
    assert json.loads(json.dumps(metadata)) == metadata, "stores of other frameworks keep it"
    book.add("letter.txt", metadata={"author": "Ada Marsh", "layer": "stone"})
    ((_, _, own), _) = await find(book, "forged letter")
    assert (own["author"], own["layer"]) == ("Ada Marsh", "passages"), "what every piece has comes first"
    ((_, _, chosen),) = await find(book.within(where="author=Ada Marsh"), "light")
    assert chosen["document"] == own["document"]


@by_framework
async def test_a_search_is_narrowed_and_its_system_chosen(book, find):
    ((_, _, metadata),) = await find(book.within("letter.txt"), "light", system="naive")
    assert metadata["position"] == 0
    assert metadata["document"].endswith("letter.txt")
    for query, system, error in (
        ("light", "hybird", UnknownName),
        ("light", "associative", NotBuilt),
        (" ", None, UsageError),
    ):
        with pytest.raises(error):
            await find(book, query, system=system)


async def test_a_retriever_is_part_of_a_chain_of_langchain(book):
    retriever = langchain.TomeRetriever(tome=book)
    assert isinstance(retriever, BaseRetriever)
    chain = retriever | RunnableLambda(lambda documents: documents[0].page_content)
    assert "forged a letter" in await chain.ainvoke("the forged letter")
    first, second = retriever.batch(["the light", "the letter"])
    assert "Ada Marsh" in first[0].page_content
    assert "forged" in second[0].page_content


def test_a_model_is_shown_the_text_and_its_source_alone(book):
    retriever = llamaindex.TomeRetriever(book, limit=1)
    assert isinstance(retriever, base_retriever.BaseRetriever)
    (found,) = retriever.retrieve(LIGHT)
    shown = found.node.get_content(MetadataMode.LLM)
    assert f"source: {found.node.metadata['source']}" in shown
    assert "Ada Marsh" in shown
    assert "passage:" not in shown


@pytest.mark.parametrize(("module", "extra"), [("langchain_core", "langchain"), ("llama_index", "llamaindex")])
def test_without_the_package_the_extra_is_named(module, extra):
    hidden = f"import sys; sys.modules[{module!r}] = None; import tomewise.adapters.{extra}"
    ran = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert "MissingDependency" in ran.stderr
    assert f"pip install 'tomewise[{extra}]'" in ran.stderr
