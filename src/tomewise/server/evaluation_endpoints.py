"""Endpoints for experiments: their tables with significance, their rows, and one question with two systems' answers.

They are plain functions, which FastAPI calls in threads: they read files and compute.
"""

from __future__ import annotations

from dataclasses import asdict
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query

from tomewise.errors import UnknownName
from tomewise.server.bodies import MOST_ID, PAGE, Limit, Start
from tomewise.server.operations import Family
from tomewise.server.replies import ComparedAnswers, EvaluationList, EvaluationReply, QuestionList
from tomewise.server.service import Service, Wanted

if TYPE_CHECKING:
    from tomewise.evaluate.results import Results

family = Family("/api/evaluations", "evaluations")
_MOST_SLICES = 8
Name = Annotated[str, Query(min_length=1, max_length=MOST_ID)]
Names = Annotated[list[Name] | None, Query(max_length=_MOST_SLICES)]


@family.get("", reply=EvaluationList)
def list_evaluations(service: Wanted, start: Start = 0, limit: Limit = PAGE) -> dict[str, Any]:
    """The experiments in the folder that the server was given, the latest first."""
    from tomewise.evaluate.design import list_experiments

    folder = service.options.evaluations
    found = list_experiments(folder) if folder else []
    return {"evaluations": [asdict(about) for about in found[start : start + limit]], "total": len(found)}


@family.get("/{name}", reply=EvaluationReply)
def show_evaluation(
    name: str,
    service: Wanted,
    start: Start = 0,
    limit: Annotated[int, Query(ge=0, le=1000)] = PAGE,
    baseline: Name | None = None,
    by: Names = None,
) -> dict[str, Any]:
    """The table of one experiment, as `tome eval report --json` prints it, a page of its rows, and its slices.

    `baseline` is the system against which differences are tested; `by` names slices for tables of their own.
    """
    from tomewise.evaluate.report import make_json
    from tomewise.evaluate.results import list_slices, tabulate

    results = _read(name, service)
    rows = [asdict(row) for row in results.rows[start : start + limit]]
    table = make_json(tabulate(results, baseline=baseline, by=by or ()))
    return {"table": table, "rows": rows, "total": len(results.rows), "slices": list_slices(results.rows)}


@family.get("/{name}/questions", reply=QuestionList)
def list_questions(name: str, service: Wanted, start: Start = 0, limit: Limit = PAGE) -> dict[str, Any]:
    """The questions of an experiment by id, each with the score of every system in the first metric."""
    from tomewise.evaluate.results import score_rows

    results = _read(name, service)
    about = results.about
    metric = next(iter((*about.metrics, *about.judges)), None)
    found: dict[str, dict[str, Any]] = {}
    for row in results.rows:
        item = found.setdefault(row.item.id, {"id": row.item.id, "question": row.item.question.text, "scores": {}})
        score = score_rows([row], metric, about) if metric else None
        item["scores"][row.system] = None if score is None or isnan(score[0]) else float(score[0])
    page = list(found.values())[start : start + limit]
    return {"metric": metric, "systems": results.systems, "questions": page, "total": len(found)}


@family.get("/{name}/compare", reply=ComparedAnswers)
def compare_answers(name: str, first: Name, second: Name, question: Name, service: Wanted) -> dict[str, Any]:
    """The answers of two systems to the question of that id: what `tome eval compare --json` prints."""
    from tomewise.evaluate.compare import compare

    return compare(_read(name, service), first, second, question)


def _read(name: str, service: Service) -> Results:
    from tomewise.evaluate.design import find_folder, list_experiments
    from tomewise.evaluate.results import read_results

    folder = service.options.evaluations
    if folder is None or name not in [about.name for about in list_experiments(folder)]:
        raise UnknownName(f"no evaluation {name[:200]!a} here: GET /api/evaluations lists them")
    return read_results(find_folder(folder, name))
