"""A role: one kind of thing asked of a model, typed in and typed out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from tomewise.errors import BadReply
from tomewise.types import In, Out


@dataclass(frozen=True, slots=True)
class Role(Generic[In, Out]):
    """One kind of question to a model.

    `name` is also the name of its prompt, `prompts/<name>.md`; `output_tokens` bounds the reply and is what an
    estimate reckons with. `find_fault` says what is wrong with an output that fits its type, or None: of roles whose
    outputs become memory, which one bad reply would spoil for good.
    """

    name: str
    input: type[In]
    output: type[Out]
    output_tokens: int = 1024
    find_fault: Callable[[In, Out], str | None] | None = None

    def accept(self, given: In, output: Out) -> Out:
        """The output as it is. Raises `BadReply` where something is wrong with it."""
        if self.find_fault is not None and (fault := self.find_fault(given, output)) is not None:
            raise BadReply(f"the reply for {self.name!r} cannot be remembered: {fault}")
        return output
