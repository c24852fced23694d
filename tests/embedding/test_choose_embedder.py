import subprocess
import sys

import pytest

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import UnknownName


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("bundled", "BundledMiniLM"),
        ("all-MiniLM-L6-v2", "BundledMiniLM"),
        ("hash", "HashEmbedder"),
        ("hash:128", "HashEmbedder"),
        ("fastembed:BAAI/bge-small-en-v1.5", "FastEmbed"),
        ("sentence-transformers:sentence-transformers/all-mpnet-base-v2", "SentenceTransformersEmbedder"),
        ("openai:text-embedding-3-small", "OpenAIEmbedder"),
        ("openai:text-embedding-3-small@256", "OpenAIEmbedder"),
        ("openai:nomic-embed-text:latest", "OpenAIEmbedder"),
    ],
)
def test_a_name_gives_an_embedder_whose_name_gives_it_again(spec, kind):
    embedder = choose_embedder(spec)
    assert type(embedder).__name__ == kind
    again = choose_embedder(embedder.name)
    assert (type(again), again.name) == (type(embedder), embedder.name)


def test_the_dimensions_in_a_name_are_asked_for():
    assert choose_embedder("hash:128").dimensions == 128
    assert choose_embedder("openai:text-embedding-3-small@256").dimensions == 256
    assert choose_embedder("openai:text-embedding-3-small").dimensions == 1536


@pytest.mark.parametrize(
    ("wrong", "offer"),
    [("bundeld", "'bundled'"), ("openia:x", "'openai:MODEL'"), ("fastembed", "'fastembed:MODEL'"), ("?", "hash, ")],
)
def test_an_unknown_name_offers_the_nearest(wrong, offer):
    with pytest.raises(UnknownName) as caught:
        choose_embedder(wrong)
    assert repr(wrong) in str(caught.value)
    assert offer in str(caught.value)


def test_choosing_loads_nothing_heavy():
    code = (
        "import sys; from tomewise.embedding.choose_embedder import choose_embedder as e\n"
        "for n in ('bundled', 'hash', 'fastembed:m', 'sentence-transformers:m', 'openai:m'): e(n)\n"
        "print([m for m in ('onnxruntime', 'onnx', 'tokenizers', 'openai', 'fastembed', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
