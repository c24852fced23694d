"""How long replies will be, before they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tomewise.language.usage import estimate_tokens
from tomewise.types import In, LanguageModel, Out, Rehearsing

if TYPE_CHECKING:
    from tomewise.store.sqlite.store import SqliteStore
    from tomewise.types import Role


_REHEARSED = 160  # inputs, evenly spread: their mean is within a few percent of that of all


@dataclass(frozen=True, slots=True)
class Typical:
    """A reply takes `base` tokens and `share` for each token of the text that it is about."""

    base: float
    share: float


async def reply_tokens(
    store: SqliteStore,
    model: LanguageModel,
    role: Role[In, Out],
    typical: Typical,
    inputs: Sequence[In],
    texts: Sequence[str],
) -> int:
    """Output tokens of one reply per input; `texts` are what the inputs are about.

    A model that costs nothing rehearses some of them. Of another the replies will be as long as those it gave in this
    tome, else as is typical of their role.
    """
    if (length := await rehearsed(model, role, inputs)) is not None:
        return length
    mean = store.calls.mean_reply_bytes(role.name, model.name)
    if mean is not None:
        return round(len(texts) * mean / 4)
    return round(sum(typical.base + typical.share * estimate_tokens(text) for text in texts))


async def rehearsed(model: LanguageModel, role: Role[In, Out], inputs: Sequence[In]) -> int | None:
    """Output tokens of one reply per input, from what a model that costs nothing says to some; else None."""
    sample = inputs[:: max(1, len(inputs) // _REHEARSED)]
    if not isinstance(model, Rehearsing) or not sample:
        return None
    lengths = [length for given in sample if (length := await model.rehearse(role, given)) is not None]
    return round(sum(lengths) * len(inputs) / len(sample)) if len(lengths) == len(sample) else None
