"""What requests hold: their bodies, and which page of a list they want.

Types are strict and unknown fields are refused; each text has a limit on its length.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, TypeAlias

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from tomewise import types
from tomewise.reading.metadata import METADATA, cut_metadata
from tomewise.settings import SETTINGS
from tomewise.systems.efforts import Effort
from tomewise.types import FindKind, Form

MOST_QUESTION = 100_000  # characters
MOST_ID = 1000
Text = Annotated[str, Field(max_length=MOST_QUESTION)]
Name = Annotated[str, Field(min_length=1, max_length=500)]
DocumentName = Annotated[str, Field(min_length=1, max_length=5000)]


def check_limit(text: str) -> str:
    """The limit as it is written. Raises ValueError."""
    return str(types.Limit.parse(text))


LimitText = Annotated[
    str, Field(max_length=100, description="Such as `20 calls, $0.50, 5 minutes`."), AfterValidator(check_limit)
]
PAGE = 100  # rows of a page
Limit = Annotated[int, Query(ge=1, le=1000)]
MOST_START = 10**12  # a larger number does not fit into a store
Start = Annotated[int, Query(ge=0, le=MOST_START)]
After = Annotated[str, Query(max_length=MOST_ID)]  # a row comes after it

Current = Annotated[bool, Field(description="Refuse memory that lags behind the documents.")]

FieldName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^=!<>\x00-\x1f\x7f]+$")]
Scalar: TypeAlias = (
    Annotated[str, Field(max_length=1000)]
    | bool
    | Annotated[int, Field(ge=-(2**53), le=2**53)]
    | Annotated[float, Field(ge=-1e300, le=1e300)]
)
FieldValue: TypeAlias = Scalar | Annotated[list[Scalar], Field(max_length=100)]


class Body(BaseModel):
    """What all bodies share."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class NewTome(Body):
    """A tome to make."""

    name: Name
    embedder: Name | None = None
    passage_tokens: Annotated[int, Field(ge=SETTINGS["passage_tokens"].least, le=100_000)] | None = None


class NewName(Body):
    """Another name for a tome."""

    name: Name


class NewDocument(Body):
    """A document that a client writes."""

    id: Annotated[str, Field(min_length=1, max_length=MOST_ID)]
    title: Annotated[str, Field(max_length=MOST_ID)] = ""
    text: Annotated[str, Field(min_length=1)]
    metadata: Annotated[dict[FieldName, FieldValue], Field(max_length=50)] = Field(
        default_factory=dict, description="Fields that `where` can test."
    )

    @field_validator("metadata")
    @classmethod
    def _check_kept(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        kept = cut_metadata(metadata)
        for name, value in metadata.items():
            if name not in kept or kept[name] != value:
                raise ValueError(
                    f"{name!a} would be cut: all fields may have {METADATA:,} characters of JSON, send less"
                )
        return metadata


MOST_TEXTS = 1000  # of one request


class NewDocuments(Body):
    """Several documents that a client writes, for one job."""

    documents: Annotated[list[NewDocument], Field(min_length=1, max_length=MOST_TEXTS)]

    @field_validator("documents")
    @classmethod
    def _check_ids(cls, documents: list[NewDocument]) -> list[NewDocument]:
        repeated = next((id for id, count in Counter(each.id for each in documents).items() if count > 1), None)
        if repeated is not None:
            raise ValueError(f"two documents have the id {repeated[:60]!a}: give each its own")
        return documents


class ChosenModel(Body):
    """A model, one of those that `/api/models` lists."""

    model: Name


class ChosenSystem(Body):
    """A system, as on the command line, and settings of its recipe. Without a system, the default of the tome.

    `model` is one of those that `/api/models` lists; without it, the default of the server is asked.
    """

    model: Name | None = None
    system: Name | None = None
    settings: Annotated[dict[str, Any], Field(max_length=50)] = Field(default_factory=dict)


class Build(ChosenSystem):
    """A build, and what it may cost; without that, nothing."""

    accept: LimitText = "0 calls"


class Narrowed(Body):
    """Which documents are searched, and tests of metadata such as `year>=1911`; all must hold."""

    documents: Annotated[list[DocumentName], Field(max_length=1000)] = Field(
        default_factory=list,
        description="The exact names or ids of documents, as `.../documents` lists them, or folders such as `notes/`.",
    )
    where: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list)
    scope: Annotated[str, Field(max_length=100, description="In place of both the id of an open scope.")] = ""


class Search(ChosenSystem, Narrowed):
    """A search for evidence."""

    query: Text
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    current: Current = False


class Find(Narrowed):
    """Texts to find, any of them, and which of the places to list; all are counted."""

    wanted: Annotated[list[Text], Field(min_length=1, max_length=100)]
    kind: FindKind = "words"
    case: Annotated[bool, Field(description="Whether capitals and small letters differ.")] = False
    limit: Annotated[int, Field(ge=0, le=10_000)] = 100
    skip: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class Collect(Narrowed):
    """What to collect, and what it may cost. Columns are written as `name`, `paid:number`, `day:date`."""

    asked: Text
    columns: Annotated[list[Name], Field(max_length=20)] = Field(default_factory=list)
    key: Annotated[list[Name], Field(max_length=20)] = Field(default_factory=list)
    figures: Annotated[list[Name], Field(max_length=50, description="Such as `sum paid` or `last day`.")] = Field(
        default_factory=list
    )
    fresh: bool = False
    model: Annotated[Name | None, Field(description="One of those that `/api/models` lists.")] = None


class Verify(Narrowed):
    """A text to verify. With `judge`, a model is asked about each statement that is inferred or has no support."""

    text: Text
    judge: bool = False
    model: Annotated[Name | None, Field(description="One of those that `/api/models` lists.")] = None


class Ask(ChosenSystem, Narrowed):
    """A question, and what it may cost. Later questions of a session may leave out its system.

    In place of a system, `effort` says how much work the question is worth. With `force`, a guess takes the place of a
    declined answer.
    """

    question: Text
    options: Annotated[list[Text], Field(max_length=26)] = Field(default_factory=list)
    instructions: Text = ""
    form: Annotated[Form | None, Field(description="What the answer shall look like; null leaves it to the model.")] = (
        None
    )
    session: Name | None = None
    effort: Effort | None = None
    force: bool = False
    current: Current = False
    only_supported: Annotated[bool, Field(description="Show only statements that the evidence supports.")] = False
    budget: LimitText | None = None
    accept: Annotated[
        LimitText | None,
        Field(description="Where it would cost more, nobody is asked: the reply is 409, with the price."),
    ] = None


class ToPrice(Ask):
    """What to price: a question, or without one the build of the system."""

    question: Text = ""
