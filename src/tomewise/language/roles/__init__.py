"""Every role that a model plays, with its input and output, one file for each family.

A role's prompt is `prompts/<name>.md`. The extractive model plays the same roles with text algorithms.
The schema shows the descriptions of fields to the model, so they say what the model shall write.
"""

from __future__ import annotations

from pydantic import BaseModel

from tomewise.language.roles.answering import ANSWER, FAILURE, AnswerIn, AnswerOut, Quote
from tomewise.language.roles.fields import Shown, Text
from tomewise.language.roles.judging import (
    JUDGE_CORRECT,
    JUDGE_ENTAILED,
    JUDGE_LEVEL,
    JUDGE_STATEMENTS,
    LEVEL_BAND,
    JudgeIn,
    Level,
    LevelIn,
    LevelOut,
    StatementsIn,
    StatementsOut,
    VerdictOut,
)
from tomewise.language.roles.reading import (
    EXTRACT_ENTITIES,
    EXTRACT_FACTS,
    EXTRACT_RELATIONS,
    EXTRACT_TRIPLES,
    GIST,
    MERGE_DESCRIPTIONS,
    NARRATE,
    SUMMARISE,
    DescriptionsIn,
    EntitiesOut,
    ExtractIn,
    GistIn,
    GistOut,
    PassageIn,
    Relationship,
    RelationsOut,
    SummaryIn,
    SummaryOut,
    TriplesOut,
    TypedEntity,
)
from tomewise.language.roles.steering import (
    DECOMPOSE,
    ENCODE,
    FILTER_FACTS,
    FUSE,
    PROBE,
    SELECT_NODES,
    CueOut,
    DecomposeIn,
    DecomposeOut,
    EncodeIn,
    EncodeOut,
    FilterIn,
    FilterOut,
    FuseIn,
    ProbeIn,
    ProbeOut,
    SelectIn,
    SelectOut,
)
from tomewise.types import Role

ROLES: tuple[Role[BaseModel, BaseModel], ...] = tuple(
    value for value in dict(globals()).values() if isinstance(value, Role)
)

__all__ = [
    "ANSWER",
    "DECOMPOSE",
    "ENCODE",
    "EXTRACT_ENTITIES",
    "EXTRACT_FACTS",
    "EXTRACT_RELATIONS",
    "EXTRACT_TRIPLES",
    "FAILURE",
    "FILTER_FACTS",
    "FUSE",
    "GIST",
    "JUDGE_CORRECT",
    "JUDGE_ENTAILED",
    "JUDGE_LEVEL",
    "JUDGE_STATEMENTS",
    "LEVEL_BAND",
    "MERGE_DESCRIPTIONS",
    "NARRATE",
    "PROBE",
    "ROLES",
    "SELECT_NODES",
    "SUMMARISE",
    "AnswerIn",
    "AnswerOut",
    "CueOut",
    "DecomposeIn",
    "DecomposeOut",
    "DescriptionsIn",
    "EncodeIn",
    "EncodeOut",
    "EntitiesOut",
    "ExtractIn",
    "FilterIn",
    "FilterOut",
    "FuseIn",
    "GistIn",
    "GistOut",
    "JudgeIn",
    "Level",
    "LevelIn",
    "LevelOut",
    "PassageIn",
    "ProbeIn",
    "ProbeOut",
    "Quote",
    "RelationsOut",
    "Relationship",
    "SelectIn",
    "SelectOut",
    "Shown",
    "StatementsIn",
    "StatementsOut",
    "SummaryIn",
    "SummaryOut",
    "Text",
    "TriplesOut",
    "TypedEntity",
    "VerdictOut",
]
