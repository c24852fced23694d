"""How the extractive model plays each role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel

from tomewise.errors import ModelError
from tomewise.language.extractive.answering import answer
from tomewise.language.extractive.extracting import (
    extract_entities,
    extract_relations,
    extract_triples,
    glean_relations,
)
from tomewise.language.extractive.gist import write_gist
from tomewise.language.extractive.hypergraph_plays import evolve, merge_points, plan
from tomewise.language.extractive.judging import judge_correct, judge_entailed, judge_level, judge_statements
from tomewise.language.extractive.quotations import quote
from tomewise.language.extractive.relaying import carry_note, extract_notes, infer_notes, plan_reading, refine_questions
from tomewise.language.extractive.rephrasing import rephrase
from tomewise.language.extractive.reporting import explore, hypothesise, map_reports, rate_report, write_report
from tomewise.language.extractive.steering import (
    decompose,
    encode,
    filter_facts,
    find_keywords,
    fuse,
    look_up,
    probe,
    select_nodes,
    step,
    think,
)
from tomewise.language.extractive.summarising import narrate, shorten, summarise
from tomewise.language.roles import Batch
from tomewise.language.together import write_items
from tomewise.types import Embedder, In, Out, Role

Play = Callable[[Any], BaseModel]
EmbeddingPlay = Callable[[Any, Embedder], BaseModel]

PLAYS: Mapping[str, Play] = {
    "gist": write_gist,
    "extract_triples": extract_triples,
    "extract_facts": extract_triples,
    "extract_entities": extract_entities,
    "extract_relations": extract_relations,
    "glean_relations": glean_relations,
    "summarise": summarise,
    "aggregate": summarise,
    "narrate": narrate,
    "shorten": shorten,
    "decompose": decompose,
    "keywords": find_keywords,
    "probe": probe,
    "step": step,
    "fuse": fuse,
    "plan": plan,
    "rephrase": rephrase,
    "merge_points": merge_points,
    "plan_reading": plan_reading,
    "infer_notes": infer_notes,
    "refine_questions": refine_questions,
    "carry_note": carry_note,
    "write_report": write_report,
    "rate_report": rate_report,
    "hypothesise": hypothesise,
    "judge_correct": judge_correct,
    "judge_entailed": judge_entailed,
    "judge_level": judge_level,
    "judge_statements": judge_statements,
}
# These compare meanings. That takes so long that they run in a thread, beside the event loop.
EMBEDDING_PLAYS: Mapping[str, EmbeddingPlay] = {
    "answer": quote,
    "filter_facts": filter_facts,
    "encode": encode,
    "evolve": evolve,
    "look_up": look_up,
    "think": think,
    "map_reports": map_reports,
    "explore": explore,
    "extract_notes": extract_notes,
    "select_nodes": select_nodes,
}
SHORT_ANSWERS: Mapping[str, EmbeddingPlay] = {"answer": answer}


def find_embedding_play(role: Role[In, Out], *, short_answers: bool) -> EmbeddingPlay | None:
    """The play of a role that compares meanings, if its algorithm does."""
    if role.play is not None:
        return None
    short = SHORT_ANSWERS.get(role.name) if short_answers else None
    return short or EMBEDDING_PLAYS.get(role.name)


def find_play(role: Role[In, Out], given: In) -> Play:
    """The play of any other role. Raises ModelError for a role without one."""
    play = role.play or PLAYS.get(role.name)
    if play is None:
        known = ", ".join(sorted([*PLAYS, *EMBEDDING_PLAYS]))
        raise ModelError(
            f"the extractive model cannot play the role {role.name!r}: use one of {known}, give the role a `play`, "
            "or use a real model"
        )
    return partial(_play_each, play, role.output) if isinstance(given, Batch) else play


def _play_each(play: Play, output: type[BaseModel], given: Batch) -> BaseModel:
    """Play each passage of a batch alone: no algorithm gains from its neighbours."""
    return output.model_validate({"passages": write_items([play(each) for each in given.passages])})
