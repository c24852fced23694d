"""What a recipe takes and returns, the kit from which it wires parts and the system, and what a system declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import Signature, getdoc, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field

from tomewise.embedding.cached_embedder import CachedEmbedder
from tomewise.errors import UsageError
from tomewise.language.together import MOST_TOGETHER
from tomewise.loops.desk import Desk, FusingDesk
from tomewise.loops.evidence import Count as Counter
from tomewise.loops.evidence import make_token_counter
from tomewise.loops.last_prompt import DEPTH
from tomewise.loops.once import Once
from tomewise.recall.flat import REWRITING, Summed
from tomewise.recall.placing import Placed
from tomewise.recall.rewriting import Rewriter, find_title_leads
from tomewise.recall.several_searches import ComparedRecall
from tomewise.systems.defaults import CONTEXT as CONTEXT
from tomewise.types import Embedder, LanguageModel, Layer, Loop, Retriever

if TYPE_CHECKING:
    from tomewise.store.contract import Store

Count: TypeAlias = Annotated[int, Field(ge=0)]
"""A setting: a whole number from 0 up."""
Positive: TypeAlias = Annotated[int, Field(ge=1)]
"""A setting: a whole number from 1 up."""
Weight: TypeAlias = Annotated[float, Field(ge=0)]
"""A setting: a number from 0 up."""
Above0: TypeAlias = Annotated[float, Field(gt=0)]
"""A setting: a number above 0."""
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""A setting: a number from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Multiplies:
    """A mark on a setting: what a larger number makes more of, and the `most` that a server lets others ask for.

    `depth: Annotated[Count, Multiplies("calls of a question", most=20)] = 3`. A server holds a number without a mark
    or an upper bound (`Field(le=...)`) to a careful limit of its own.
    """

    what: str
    """What a larger number makes more of, in words."""
    most: float


# Settings that many systems have. `Field` gives bounds, a text is the help that `tome systems NAME` shows.
Limit: TypeAlias = Annotated[Count, "pieces of evidence that a search finds at most", Multiplies("evidence", most=1000)]
"""A setting: the pieces of evidence that a search finds at most."""
Context: TypeAlias = Annotated[
    Count,
    "tokens of evidence that the answering role sees at most",
    Multiplies("tokens of the answering call", most=1_000_000),
]
"""A setting: the tokens of evidence that the answering role sees at most."""
Reading: TypeAlias = Annotated[
    Count,
    "tokens of evidence that a call which takes a note reads at most",
    Multiplies("tokens of such a call", most=1_000_000),
]
"""A setting: the tokens of evidence that a call which takes a note reads at most, whatever the context is."""
READING = 6000
Together: TypeAlias = Annotated[
    int, Field(ge=1, le=MOST_TOGETHER), "neighbouring passages that one call of a build reads"
]
"""A setting: the neighbouring passages that one call of a build reads."""
Gleanings: TypeAlias = Annotated[
    int, Field(ge=0, le=5), "further calls a passage of a build, which read relations that were missed"
]
"""A setting: the calls that read again what a first call missed."""


@dataclass(frozen=True, slots=True)
class Kit:
    """The store, model and embedder from which a recipe wires parts. A part gets its members, never the kit itself."""

    store: Store
    """Where documents, nodes, vectors and replies are kept."""
    model: LanguageModel
    """The model, with its cache and its budget."""
    embedder: Embedder
    """Turns texts and queries into vectors."""
    count_tokens: Counter = field(init=False, repr=False, compare=False)
    """The tokens of each text, by the embedder's tokenizer; the counts of the last texts are remembered."""

    def __post_init__(self) -> None:
        """Embed a query once and count a text once, however many parts need it."""
        if not isinstance(self.embedder, CachedEmbedder):
            object.__setattr__(self, "embedder", CachedEmbedder(self.embedder))
        object.__setattr__(self, "count_tokens", make_token_counter(self.embedder))

    @property
    def desk(self) -> Desk:
        """The desk on which a loop lays out what it found."""
        return Desk(self.store, self.model, self.count_tokens)

    @property
    def fusing_desk(self) -> FusingDesk:
        """The desk of our own loops, which fuses what they find with what `hybrid` finds."""
        rewriter = Rewriter(self.store, self.embedder, find_title_leads, REWRITING)
        plain = Placed(self.store, ComparedRecall(Summed(self.store, self.embedder, rewriter)))
        return FusingDesk(self.store, self.model, self.count_tokens, plain=plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a loop searches: a retriever, and the memory layers that it needs, the lowest first."""

    retriever: Retriever
    """Finds evidence for a query."""
    layers: tuple[Layer, ...] = ()
    """Empty where passages suffice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A way of answering: a loop, and the memory layers that it needs, the lowest first.

    `retriever` is the one with which the loop searches; a loop that has several, or none, leaves it out.
    """

    loop: Loop
    """Answers questions."""
    retriever: Retriever | None = None
    layers: tuple[Layer, ...] = ()
    """Empty where passages suffice."""


Recipe = Callable[..., System]
"""A function of a `Kit` and of settings that returns a `System`."""
OURS = "ours"  # in place of a paper


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemDeclaration:
    """A system: a recipe, whose signature declares the settings, and what people read about it.

    A loop and a recall are declared in the same way: the `recipe` of a loop takes a kit and a `Recall`, and that of a
    recall returns a `Recall`. `summary` is one sentence, `about` says more, `deviations` are those from the paper.
    `kind` says in a few words how the system works. `ablations` names sets of settings. A system whose recall other
    loops cannot use says why in `no_recall`.
    """

    recipe: Recipe
    summary: str
    paper: str = ""
    """With its venue or its number at arXiv, or "ours"."""
    about: str = ""
    deviations: str = ""
    kind: str = ""
    ablations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    no_recall: str = ""

    @property
    def description(self) -> str:
        """All that people read, in paragraphs."""
        paper = "" if self.paper in ("", OURS) else f"Paper: {self.paper}."
        deviations = self.deviations and f"Deviations: {self.deviations}"
        return "\n\n".join(paragraph for paragraph in (self.summary, self.about, paper, deviations) if paragraph)


@cache  # what is composed of a part is kept by its declaration
def read_declaration(part: Recipe | SystemDeclaration) -> SystemDeclaration:
    """The declaration of a part from outside. A function without one is described by its docstring as it stands."""
    if isinstance(part, SystemDeclaration):
        return part
    summary, _, about = (getdoc(part) or "").partition("\n")
    return SystemDeclaration(recipe=part, summary=summary, about=about.strip())


def with_settings_of(source: Callable[..., object]) -> Callable[[Recipe], Recipe]:
    """Decorates a recipe that takes `**settings`: it has those of `source` too."""

    def extend(recipe: Recipe) -> Recipe:
        own = [each for each in signature(recipe).parameters.values() if each.kind != each.VAR_KEYWORD]
        among = signature(source, eval_str=True).parameters.values()
        taken = [each for each in among if each.kind == each.KEYWORD_ONLY]
        recipe.__signature__ = Signature([*own, *taken])  # type: ignore[attr-defined]
        return recipe

    return extend


def find_recall(name: str, found: object) -> Recall:
    """The recall of what a recipe returned. Raises UsageError for a system without one retriever."""
    if isinstance(found, Recall):
        return found
    if not isinstance(found, System):
        raise UsageError(f"the recall {name} returned {found!r}: a recall returns a Recall or a System")
    if found.retriever is None:
        raise UsageError(f"{name} has no retriever of its own to search with, or several: name a system with one")
    return Recall(retriever=found.retriever, layers=found.layers)


def answer_once(
    kit: Kit,
    retriever: Retriever,
    layers: tuple[Layer, ...] = (),
    desk: Desk | None = None,
    *,
    limit: Limit = DEPTH,
    context: Context = CONTEXT,
) -> System:
    """A system that retrieves once and then answers, with the settings of that; without a `desk`, on the kit's."""
    loop = Once(retriever, desk or kit.desk, limit=limit, budget=context)
    return System(loop=loop, retriever=retriever, layers=layers)


@with_settings_of(answer_once)
def once(kit: Kit, recall: Recall | System, **answering: Any) -> System:
    """The loop that retrieves once and then answers."""
    recall = find_recall("this System", recall)
    return answer_once(kit, recall.retriever, recall.layers, **answering)
