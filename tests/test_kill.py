"""`kill -9` in the middle of `tome add`: the tome opens, what was committed is there, adding again completes it."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest
from tests.texts import prose

from tomewise.store.lookups import read_vectors
from tomewise.tome.tome import Tome


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Documents of every size, one of them long, and what an undisturbed run makes of them."""
    folder = tmp_path_factory.mktemp("library") / "texts"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number:02}.txt").write_text(prose(number, 4000 if number == 6 else 300 * (number % 4 + 1)))
    with Tome.open(folder.parent / "whole.tome", embedder="hash") as tome:
        begun = time.monotonic()
        tome.add(folder)
        return folder, list(tome.memory.export()), time.monotonic() - begun


def start_add(folder, path):
    words = [sys.executable, "-m", "tomewise", "-m", str(path), "add", str(folder), "--embedder", "hash"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_add_loses_nothing_that_was_committed(library, tmp_path, seed):
    folder, whole, seconds = library
    path = tmp_path / "a.tome"
    dice = random.Random(seed)
    process = start_add(folder, path)
    if seed:  # the first is killed while it starts, the others once they have begun to write
        while not path.exists() and process.poll() is None:
            time.sleep(0.005)
    time.sleep(dice.uniform(0, seconds))
    process.kill()
    process.communicate()
    with Tome.open(path, embedder="hash") as tome:
        kept = {record.id: record.digest for record in tome.documents()}
        lines = set(tome.memory.export())
        assert {line for line in lines if '"kind": "setting"' not in line} <= set(whole)
        for record in kept:
            passages = tome.store.passages(documents=[record]).values()
            text = tome.documents[record].text
            assert all(text[passage.start : passage.end] == passage.text for passage in passages)
        assert len(read_vectors(tome.store, "passages").keys) == len(tome.store.passages())
        if kept:
            assert tome.ask("Who burned the letter?", system="naive").evidence
        report = tome.add(folder)
        assert set(report.unchanged) == set(kept)
        assert list(tome.memory.export()) == whole
