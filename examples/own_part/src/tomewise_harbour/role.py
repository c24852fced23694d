"""A role: one fact of a graph, retold as a sentence."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tomewise.parts import Role


class FactIn(BaseModel):
    fact: str


class FactOut(BaseModel):
    sentence: str = Field(description="one sentence that states the fact")


def play(given: FactIn) -> FactOut:
    """Retell the fact without a model."""
    words = " ".join(given.fact.split())
    return FactOut(sentence=f"{words[:1].upper()}{words[1:]}.")


RETELL_FACT = Role(
    "retell_fact",
    FactIn,
    FactOut,
    output_tokens=100,
    prompt='State this fact in one sentence, and add nothing to it.\n{{ fact | fenced("harbour_fact") }}',
    tags=("harbour_fact",),
    play=play,
)
