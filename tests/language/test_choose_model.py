from pathlib import Path
from typing import Any

import pytest

from tomewise.errors import UsageError
from tomewise.language.chat import ChatModel
from tomewise.language.choose_model import choose_model
from tomewise.language.price_list import find_price
from tomewise.language.spec import ModelSpec
from tomewise.tome.tome import Tome


class NoEmbedder:
    """Stands where an embedder is asked for and not used."""


EMBEDDER: Any = NoEmbedder()


def test_the_extractive_model_is_named_by_its_word() -> None:
    from tomewise.language.extractive import ExtractiveModel

    assert isinstance(choose_model("extractive", embedder=EMBEDDER), ExtractiveModel)


def test_others_are_named_by_provider_and_model() -> None:
    model = choose_model("openai:gpt-4o-mini", embedder=EMBEDDER, base_url="http://127.0.0.1:1/v1", window=5000)
    assert isinstance(model, ChatModel)
    assert (model.name, model.window) == ("openai:gpt-4o-mini", 5000)
    assert choose_model("ollama:llama3.1:8b", embedder=EMBEDDER).name == "ollama:llama3.1:8b"


@pytest.mark.parametrize("spec", ["", "gpt-4o-mini", "openai:", ":x", "openai: gpt", "openai:a b"])
def test_a_malformed_name_shows_examples(spec: str) -> None:
    with pytest.raises(UsageError, match="openai:gpt-4o-mini"):
        choose_model(spec, embedder=EMBEDDER)


def test_an_address_is_a_url() -> None:
    with pytest.raises(UsageError, match="http://"):
        choose_model("openai:x", embedder=EMBEDDER, base_url="localhost:8000")


def test_prices_are_known_or_none() -> None:
    assert find_price(ModelSpec.parse("openai:gpt-4o-mini"), 1_000_000, 1_000_000) == pytest.approx(0.75)
    assert find_price(ModelSpec.parse("openai:no-such-model"), 1, 1) is None
    assert find_price(ModelSpec.parse("ollama:llama3.1"), 1, 1) is None


@pytest.mark.parametrize(
    ("name", "full"),
    [("gpt-4o-mini", "openai:gpt-4o-mini"), ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5")],
)
def test_a_model_without_its_provider_offers_the_whole_name(name: str, full: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{full}'"):
        choose_model(name, embedder=EMBEDDER)
    with pytest.raises(UsageError) as caught:
        choose_model("nonsense", embedder=EMBEDDER)
    assert "did you mean" not in str(caught.value)


def test_a_misspelt_argument_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'modle' is not an argument: did you mean 'model'"):
        Tome.open(tmp_path / "a.tome", modle="extractive")
    with pytest.raises(UsageError, match="did you mean 'max_calls'"):
        Tome.open(tmp_path / "a.tome", max_call=3)
    assert not list(tmp_path.iterdir())
