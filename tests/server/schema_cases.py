"""Requests that Schemathesis makes from /openapi.json, with names from a filled library, and its checks of replies."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.server.served import TEXTS, TOKEN, Served, serve

from tomewise.tome.tome import Tome
from tomewise.types import Document

SENTENCES = ("Who put out the light?", "Who forged the letter?")
KNOWN: dict[str, tuple[Any, ...]] = {
    "tome": ("novel", "other"),
    "document": tuple(TEXTS),
    "documents": (["light"], [], ["letter", "light"]),
    "folder": ("", "notes"),
    "q": ("", "light"),
    "where": (["year>1900"], [], ["year=1911"]),
    "number": (1, 2),
    "trace": (1, None),
    "name": ("talk", "light", "novel/hybrid"),
    "layer": ("passages", "summaries", "facts:hipporag2"),
    "around": ("", "light"),
    "system": ("naive", "hybrid", "hipporag2", "raptor", None),
    "settings": ({}, {"limit": 5}, {"limit": 0}),
    "question": SENTENCES,
    "query": SENTENCES,
    "session": ("talk", None),
    "model": ("novel/hybrid", "novel/naive", "other/hybrid"),
    "messages": ([{"role": "user", "content": SENTENCES[0]}],),
}


@contextmanager
def serve_filled(folder: Path) -> Iterator[Served]:
    """A server of two tomes with documents, a graph, a session and traces."""
    (folder / "lib").mkdir()
    for name in ("novel", "other"):
        with Tome.open(folder / "lib" / f"{name}.tome", embedder="hash") as tome:
            tome.add(*(Document(id=id, text=text, metadata={"year": 1911}) for id, text in TEXTS.items()))
            tome.build("hipporag2")
            for sentence in SENTENCES:
                tome.sessions["talk"].ask(sentence)
    with serve(folder, "--root", "lib") as served:
        yield served


@schemathesis.serializer("application/jsonl")
def write_lines(context: Any, value: Any) -> bytes:
    """What an import is sent."""
    return json.dumps(value, default=str).encode()


class _Token:
    """Sends the token, so that Schemathesis can leave it out."""

    def get(self, case: Any, context: Any) -> str:
        return f"Bearer {TOKEN}"

    def set(self, case: Any, data: str, context: Any) -> None:
        case.headers["Authorization"] = data


def check_operations(served: Served, examples: int, seed: int = 1) -> Counter[str]:
    """How many requests of each operation passed all checks. Raises the first failure.

    Of the `examples` of each, every fifth one breaks its schema. The check that all data which fits is accepted is left
    out: a blank question and a setting that no recipe has fit, and get 400.
    """
    schema = schemathesis.openapi.from_dict(served.http.get("/openapi.json").json())
    schema.auth()(_Token)
    counts: Counter[str] = Counter()
    operations = [result.ok() for result in schema.get_all_operations()]
    for operation in sorted(operations, key=lambda each: (each.method == "delete", "rename" in each.label)):
        jobs = [job["id"] for job in served.http.get("/api/jobs").json()["jobs"]]
        known = {**KNOWN, "id": (*TEXTS, *jobs[:3])}
        broken = examples // 5 if operation.body or operation.query else 0
        for mode, number in ((GenerationMode.POSITIVE, examples - broken), (GenerationMode.NEGATIVE, broken)):
            if number:
                cases = operation.as_strategy(generation_mode=mode)
                counts[operation.label] += _check(cases, known, served.url, number, seed)
    return counts


def _check(cases: Any, known: dict[str, tuple[Any, ...]], url: str, examples: int, seed: int) -> int:
    done = 0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=cases, picks=hypothesis.strategies.randoms(use_true_random=False))
    def run(case: Any, picks: Any) -> None:
        nonlocal done
        is_broken = case.meta is not None and case.meta.generation.mode.is_negative
        for part in (case.path_parameters,) if is_broken else (case.path_parameters, case.query, case.body):
            for name in list(part) if isinstance(part, dict) else ():
                if name in known and picks.random() < 0.8:
                    part[name] = picks.choice(known[name])
        case.call_and_validate(base_url=url, excluded_checks=[positive_data_acceptance])
        done += 1

    run()
    return done
