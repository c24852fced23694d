"""MuSiQue in a file and in a database: the lists of BM25 and of `hipporag2`, question by question.

`python bench/musique_postgres.py [--tome PATH]`. Takes the tome that `bench/musique.py` makes, and its copy in a
database of a server of this script or of TOMEWISE_TEST_POSTGRES. Asks no model: facts are not recognised.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from musique import CUTS, DATA, DEPTH, HIPPO, OUT, MusiqueQuestion, measure, open_tome, read_rows
from postgres import find_server, lend
from tomewise.store.address import find_tome_address
from tomewise.systems.registry import assemble
from tomewise.tome.open_store import copy_tome
from tomewise.tome.tome import Tome

List = list[tuple[str, float]]


async def ask_all(tome: Tome, questions: list[MusiqueQuestion]) -> tuple[list[List], list[List], float]:
    """For each question the list of BM25 (ids and scores) and of `hipporag2`; recall at 5 of the latter, in percent."""
    passages = tome.store.passages()
    words = [[(passages[key].id, score) for key, score in tome.store.lexical(each.text, DEPTH)] for each in questions]
    retriever = assemble("hipporag2", tome.kit, **HIPPO).retriever
    graph = [[(found.id, found.score) for found in await retriever.retrieve(q.text, DEPTH)] for q in questions]
    table = await measure(retriever, questions, {passage.id: passage.document for passage in passages.values()})
    return words, graph, float(table[:, CUTS.index(5)].mean())


def count_equal(a: list[List], b: list[List]) -> str:
    names = sum([name for name, _ in x] == [name for name, _ in y] for x, y in zip(a, b, strict=True))
    scores = sum(
        len(x) == len(y) and np.array_equal([s for _, s in x], [s for _, s in y]) for x, y in zip(a, b, strict=True)
    )
    return f"{names} of {len(a)} equal, with all scores {scores}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tome", type=Path, default=OUT / "musique.tome")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data/musique is absent")
        return
    questions = [
        MusiqueQuestion(row["question"], frozenset(map(str, row["supporting"]))) for row in read_rows("questions.jsonl")
    ]
    with tempfile.TemporaryDirectory() as cache, find_server() as (server, _):
        os.environ["TOMEWISE_CACHE"] = cache
        with open_tome(options.tome) as tome:
            in_file = asyncio.run(ask_all(tome, questions))
        with lend(f"{server}#musique{os.getpid()}") as address:
            start = time.perf_counter()
            copy_tome(options.tome, find_tome_address(address))
            print(f"copied in {time.perf_counter() - start:.1f} s", flush=True)
            with Tome.open(address) as tome:
                in_database = asyncio.run(ask_all(tome, questions))
    print(f"BM25, {DEPTH} passages: {count_equal(in_file[0], in_database[0])}")
    print(f"`hipporag2`, {DEPTH} passages: {count_equal(in_file[1], in_database[1])}")
    print(f"R@5 of `hipporag2`: {json.dumps([in_file[2], in_database[2]])} (file, database)")


if __name__ == "__main__":
    main()
