import pytest

from tomewise.embedding.hash import HashEmbedder
from tomewise.language.roles import Shown


@pytest.fixture(scope="session")
def embedder():
    return HashEmbedder()


def show(*texts, kind="passage"):
    """Evidence with the labels E1, E2 and so on."""
    return [Shown(label=f"E{number}", text=text, kind=kind) for number, text in enumerate(texts, 1)]
