"""The verbs that all parts share, as protocols with at most three methods, and the roles that a model plays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from tomewise.errors import BadReply
from tomewise.types.nouns import Change, Cost, Estimate, Event, Evidence, LayerReport, Question, Report, Scope
from tomewise.types.proof import Answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic import BaseModel
    from tokenizers import Tokenizer

In = TypeVar("In", bound="BaseModel")
"""The input of a role."""
Out = TypeVar("Out", bound="BaseModel")
"""The output of a role."""


# ---------------------------------------------------------------- roles of a model


@dataclass(frozen=True, slots=True)
class Role(Generic[In, Out]):
    """One kind of task for a model.

    `prompt` is the template of its prompt; without it the prompt is the packaged file `prompts/<name>.md`. A file of
    that name in the user's folder of prompts replaces either. `tags` are the tags between which this prompt puts texts,
    in addition to those of all prompts. `play` is a text algorithm with which the extractive model plays the role; a
    role from outside without one needs a real model.

    `output_tokens` is the limit on the reply; estimates count this many. A small model or window, which gets the short
    form of the prompt, has `short_tokens` in their place, if there are any. With `goes_on`, a reply that reaches its
    limit is continued, and the output has a text `unfinished`: why that ended. What was cut of a `whole` reply is not
    read, since nobody would know what is missing. `find_fault` returns what is wrong with
    an output of the right type, or None. Roles whose outputs become memory have one, because one bad reply would damage
    the memory for good. `read_prose` makes an output of a reply without JSON, after a repair; None refuses it.
    """

    name: str
    """The name in prompts, costs and settings."""
    input: type[In]
    """A dataclass or a model of pydantic."""
    output: type[Out]
    """A model of pydantic, to which replies are decoded."""
    output_tokens: int = 1024
    find_fault: Callable[[In, Out], str | None] | None = None
    prompt: str = ""
    tags: tuple[str, ...] = ()
    play: Callable[[In], Out] | None = None
    read_prose: Callable[[str], Out | None] | None = None
    short_tokens: int = 0
    goes_on: bool = False
    whole: bool = False

    def limit_reply(self, *, short: bool) -> int:
        """The limit on the reply to the usual or to the `short` form of the prompt."""
        return self.short_tokens or self.output_tokens if short else self.output_tokens

    def accept(self, given: In, output: Out) -> Out:
        """The output, unchanged. Raises `BadReply` if `find_fault` finds something wrong with it."""
        if self.find_fault is not None and (fault := self.find_fault(given, output)) is not None:
            raise BadReply(f"the reply for {self.name!r} cannot be remembered: {fault}")
        return output


# ---------------------------------------------------------------- verbs


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    `max_tokens` includes the special tokens that `tokenizer` adds; `tokenizer` itself neither truncates nor pads.
    """

    @property
    def name(self) -> str:
        """The name that a tome keeps; vectors of another name are not compared."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text it sees."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Counts tokens."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dimensions). Empty texts are allowed; equal texts give equal rows."""


class CallCache(Protocol):
    """A store of replies, as JSON.

    `keep` replaces the earlier reply for this key. When `keep` returns, the reply is durable. `since` is a mark, any
    text: if it is not empty, `get` finds only the replies of calls of `keep` with the same mark.
    """

    async def get(self, key: str, *, since: str = "") -> str | None:
        """The reply for this key, or None."""

    async def keep(self, key: str, *, role: str, model: str, reply: str, since: str = "") -> None:
        """Keep the reply of a model in a role."""

    async def drop(self, key: str) -> None:
        """Forget the reply for this key."""


@runtime_checkable
class LanguageModel(Protocol):
    """A model that plays typed roles. The meters around a call record its cost.

    What else is true of a model, it may say in an attribute `abilities` (see `Abilities`).
    """

    @property
    def name(self) -> str:
        """The name in answers and in the keys of the cache."""

    @property
    def window(self) -> int:
        """How many tokens the model accepts, reply included."""

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """Play `role` on `given`. Raises a `ModelError`; an error never becomes text."""

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        """The input tokens that this call would use, as the model counts them. Calls nothing."""


def _is_slow(role: Role[Any, Any], given: Any) -> bool:
    return False


async def _do_nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a model was measured to be."""

    reads: float
    """Tokens of a prompt in a second."""
    writes: float
    """Tokens of a reply in a second."""
    beside: int = 1
    """How many calls run beside each other and take no longer; 1 where they share a machine."""

    def foresee(self, cost: Cost) -> float:
        """The seconds of calls that cost so much."""
        seconds = (cost.input_tokens - cost.cached_tokens) / self.reads + cost.output_tokens / self.writes
        return seconds / max(1, min(self.beside, cost.calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a language model says of itself, where the defaults are wrong for it."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Its names in answers of some roles, by role, so that nobody takes one kind of reply for the other."""
    samples: bool = False
    """Whether it draws its replies at random, on purpose: then no reply is used twice."""
    is_quick: Callable[[Role[Any, Any], Any], bool] = _is_slow
    """Whether an ask is less work here than its way to another process, which takes about 2 ms."""
    measure_reply: Callable[[Role[Any, Any], Any], Awaitable[int]] | None = None
    """The output tokens of a reply. Only models that cost nothing can say. No meter sees this."""
    thoughts: int = 0
    """About how many tokens it writes before a reply."""
    pace: Pace | None = None
    """How fast it is, None if that was not measured."""
    prepare: Callable[[], Coroutine[Any, Any, None]] = _do_nothing
    """Imports and makes, in the running event loop, what the first ask would. Asks nobody anything."""
    close: Callable[[], Coroutine[Any, Any, None]] = _do_nothing
    """Closes the connections of the running event loop."""


@runtime_checkable
class Retriever(Protocol):
    """Finds evidence: best first, at most `limit`; ties are ordered by node id. All of it is within the scope."""

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Evidence]: ...


@runtime_checkable
class Loop(Protocol):
    """A way of reasoning: yields events, and the Answer at the end."""

    def run(self, question: Question) -> AsyncIterator[Event | Answer]: ...


@runtime_checkable
class Layer(Protocol):
    """A kind of long-term memory, created with the store, model and embedder that it uses.

    `name` is different for each instance ("graph:gists-triples"). `writes` names the node layers that hold its nodes
    (`Node.layer`), usually its own name alone. `needs` names what it is derived from: layers, each of which stands for
    all that it writes, or single node layers. It may also declare the `kind` of its nodes as evidence ("summary"),
    which prompts show in place of its name, and its `calls`.

    Most layers are a pure function of what they need (`testing.check_layer`). A layer may also be a state that takes in
    batches and depends on their order (`testing.check_state_layer`): it commits once a batch, what the batch changed
    together with its intake.
    """

    @property
    def name(self) -> str:
        """Different for each instance."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of layers or node layers."""

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of node layers."""

    async def update(self, change: Change, report: Report) -> LayerReport:
        """Bring the layer up to date. Its rows and its build record are committed in one transaction."""

    async def estimate(self, change: Change) -> Estimate:
        """The calls and tokens that `update` would use. Calls no model and writes nothing."""
