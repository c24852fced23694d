"""The tomes of a server: how each is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.conftest import make_tome

from tomewise.errors import StoreError
from tomewise.server.library import Library
from tomewise.settings import Settings
from tomewise.tome.tome import Tome

MODEL = "openai:text-embedding-3-small"  # its dimensions are known, so nobody is asked


@pytest.fixture(autouse=True)
def no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def make_at(path: Path, address: str) -> Path:
    Tome.open(path, embedder=MODEL, embedder_base_url=address).close()
    return path


async def test_each_tome_has_its_embedder_at_the_address_that_it_remembers(tmp_path: Path):
    addresses = ["http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"]
    files = [make_at(tmp_path / f"{number}.tome", address) for number, address in enumerate(addresses)]
    files.append(make_at(tmp_path / "2.tome", addresses[0]))
    library = Library(Settings(), files)
    tomes = [await library.open(name) for name in library.names()]
    embedders = [tome.kit.embedder._embedder for tome in tomes]  # behind the cache of each tome
    assert [getattr(each, "address", "") for each in embedders] == [*addresses, addresses[0]]
    assert embedders[0] is embedders[2]
    await library.close()


async def test_a_question_is_not_sent_to_an_address_elsewhere(tmp_path: Path):
    library = Library(Settings(), [make_at(tmp_path / "novel.tome", "https://models.example/v1")])
    with pytest.raises(StoreError, match=r"https://models\.example/v1.*TOMEWISE_EMBEDDER_BASE_URL"):
        await library.open("novel")
    await library.close()


async def test_a_tome_is_opened_with_the_settings_and_without_their_bounds(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    settings = Settings(system="naive", max_calls=0, passage_tokens=64, embedder="bundled")
    library = Library(settings, [tmp_path / "novel.tome"])
    tome = await library.open("novel")
    assert (tome.default_system, tome.kit.embedder.name) == ("naive", "hash")
    assert (await tome.aask("Who put out the light?")).text.startswith("Ada Marsh put out the light at nine.")
    await library.close()
