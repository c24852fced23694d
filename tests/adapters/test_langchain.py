"""A tome as a retriever of LangChain, with the real langchain-core."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from tomewise.adapters.langchain import TomeRetriever
from tomewise.errors import NotBuilt, UnknownName, UsageError


def test_documents_have_text_source_place_score_and_layer(book):
    retriever = TomeRetriever(tome=book, limit=1)
    assert isinstance(retriever, BaseRetriever)
    (document,) = retriever.invoke("Who put out the light?")
    (evidence,) = book.search("Who put out the light?", limit=1)
    assert (document.page_content, document.id) == (evidence.text, evidence.node)
    metadata = document.metadata
    assert metadata["score"] == evidence.score
    assert metadata["layer"] == "passages"
    assert metadata["place"]["chapter"][-1] == "Chapter 2"
    assert metadata["source"].endswith("log.md, ch. 2, part 1")
    assert metadata["document"].endswith("log.md")
    assert metadata["sources"] == [{name: metadata[name] for name in ("document", "passage", "position")}]
    assert json.loads(json.dumps(metadata)) == metadata, "stores of other frameworks keep it"


def test_documents_have_the_metadata_of_their_sources(book):
    book.add("letter.txt", metadata={"author": "Ada Marsh", "layer": "stone"})
    (document,) = TomeRetriever(tome=book, limit=1).invoke("forged letter")
    assert document.metadata["author"] == "Ada Marsh"
    assert document.metadata["layer"] == "passages", "what every piece has comes first"


async def test_sync_and_async_find_the_same_also_in_a_chain(book):
    retriever = TomeRetriever(tome=book)
    found = await retriever.ainvoke("the letter")
    assert found == retriever.invoke("the letter")
    assert len(found) == 2
    chain = retriever | RunnableLambda(lambda documents: documents[0].page_content)
    assert "forged a letter" in await chain.ainvoke("the forged letter")
    first, second = retriever.batch(["the light", "the letter"])
    assert "Ada Marsh" in first[0].page_content
    assert "forged" in second[0].page_content


def test_a_search_is_narrowed_and_its_system_chosen(book):
    narrowed = TomeRetriever(tome=book, system="naive", documents=("letter.txt",))
    assert [document.metadata["position"] for document in narrowed.invoke("light")] == [0]
    assert narrowed.invoke("light")[0].metadata["document"].endswith("letter.txt")
    with pytest.raises(UnknownName):
        TomeRetriever(tome=book, system="hybird").invoke("light")
    with pytest.raises(NotBuilt):
        TomeRetriever(tome=book, system="associative").invoke("light")
    with pytest.raises(UsageError):
        TomeRetriever(tome=book).invoke(" ")


def test_without_the_package_the_extra_is_named():
    hidden = "import sys; sys.modules['langchain_core'] = None; import tomewise.adapters.langchain"
    ran = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert "MissingDependency" in ran.stderr
    assert "pip install 'tomewise[langchain]'" in ran.stderr


def test_arguments_that_are_unknown_or_of_another_type_are_named(book):
    for given, message in (
        ({"sytem": "naive"}, "'sytem' is not an argument: did you mean 'system'"),
        ({"limit": "many"}, "limit: .*, not 'many'"),
        ({"documents": "log"}, "documents: .*, not 'log'"),
    ):
        with pytest.raises(UsageError, match=message):
            TomeRetriever(tome=book, **given)
