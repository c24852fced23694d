"""The roles that make a table of what documents say: plan it, take rows from passages, say which are one thing."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tomewise.language.labels import Numbers
from tomewise.language.roles.fields import Records, Text, describe
from tomewise.language.roles.memory_roles import PassageIn
from tomewise.types import Column, ColumnKind, Role


class PlannedColumn(BaseModel):
    name: Text = Field(description="one to three words")
    kind: ColumnKind = "text"
    about: Text = describe("what a cell of it says, in a few words")


class PlanTableIn(BaseModel):
    question: str


class PlanTableOut(BaseModel):
    item: Text = describe("what one row is, and what counts as one, in one sentence")
    columns: Records[PlannedColumn] = describe("the columns, the name of the thing first", [])
    key: Records[Text] = describe("names of the columns by which two rows are the same thing", [])


class CollectIn(PassageIn):
    """A passage, and the rows that are wanted of it."""

    item: str
    columns: list[Column]


class CollectedRow(BaseModel):
    """The quotation comes first, since a model writes its fields in order."""

    quote: Text = describe("the words of the passage that say it, copied word for word", "")
    cells: list[Text] = describe("one text for each column, in their order; empty for what it leaves open", [])


class CollectOut(BaseModel):
    rows: Records[CollectedRow] = describe("one row for each such thing in the passage; empty without one", [])


class RowPair(BaseModel):
    """Two rows, each written as its cells."""

    first: str
    second: str


class SameRowsIn(BaseModel):
    item: str
    pairs: list[RowPair]


class SameRowsOut(BaseModel):
    reasoning: Text = describe("in a few words, what tells them apart or makes them one")
    same: Numbers = describe("numbers of the pairs that are one and the same thing", [])


PLAN_TABLE = Role("plan_table", PlanTableIn, PlanTableOut, output_tokens=768, tags=("column",))
COLLECT = Role("collect", CollectIn, CollectOut, output_tokens=1024, tags=("item", "column"), whole=True)
SAME_ROWS = Role("same_rows", SameRowsIn, SameRowsOut, output_tokens=512, tags=("item", "row"))
