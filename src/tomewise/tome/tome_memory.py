"""What a tome remembers about its documents: estimated, read, drawn, exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tomewise.notebook_display import show_bars
from tomewise.pictures import LIMIT
from tomewise.store.lookups import read_setting
from tomewise.store.rights import work_alone
from tomewise.tome.arguments import check_type, read_integer
from tomewise.tome.damaged import explain_damage
from tomewise.tome.open_tome import PartOfTome, names_damage, plain
from tomewise.types import Cost, Progress

# What needs more than the store is imported where it is first used: who only looks at a tome does not wait for it.
if TYPE_CHECKING:
    from tomewise.pictures import Picture
    from tomewise.systems.advice import Recommendation
    from tomewise.systems.registry import Choice
    from tomewise.tome.entities import Entity
    from tomewise.tome.reports import Price
    from tomewise.tome.suggestions import SuggestedQuestion


class Memory(PartOfTome):
    """The memory of a whole tome."""

    @names_damage
    async def aestimate(
        self,
        system: Choice | None = None,
        *,
        layers: str | Sequence[str] = (),
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Price:
        """What `Tome.build` would use, in all and layer by layer, before anything is spent; see `Tome.estimate` too."""
        from tomewise.memory.building import estimate
        from tomewise.systems.pricing import price_estimates
        from tomewise.systems.registry import choose_variant
        from tomewise.tome.builds import wire_layers
        from tomewise.tome.reports import Price

        opened = self._opened
        variant = choose_variant(opened.settings.system if system is None else system)
        wired = wire_layers(opened.kit, variant, layers)
        with show_bars(on_progress) as report:
            found = price_estimates(await estimate(wired, self.store, report), opened.kit.model)
        total = sum((layer.cost for layer in found), Cost())
        return Price(system=variant.label, model=opened.kit.model.name, layers=found, total=total)

    estimate = plain(aestimate)

    def recommend(self) -> Recommendation | None:
        """The system that suits this tome as it is, with its model, and why; None if it is empty."""
        from tomewise.systems.advice import recommend_system

        tokens = int(read_setting(self.store, "passage_tokens") or 0)
        counts = [record.passages for record in self.store.documents()]
        return recommend_system(counts, tokens, self._opened.model.name)

    def entity(self, name: str) -> Entity:
        """What the graphs of this tome hold on a person, a place or a thing: its facts, passages and gists.

        Case and punctuation do not count. Raises NotBuilt without a graph, and UnknownName, which names similar ones.
        """
        from tomewise.tome.entities import read_entity

        check_type("name", name, str, "a text")
        with explain_damage(self.store):
            return read_entity(name, self.store)

    def flags(self) -> dict[str, Any]:
        """By layer, model and kind, what models wrote that their texts do not support: the `count`, some `examples`.

        Statements were "asked again", "left out", or kept though "unsupported".
        """
        from tomewise.tome.holdings import list_records

        with explain_damage(self.store):
            return list_records(self.store, "flags")

    def suggest_questions(self, limit: int = 6) -> list[SuggestedQuestion]:
        """Questions to begin with, from names, headings and titles. No model is asked; equal tomes give equal ones."""
        from tomewise.tome.suggestions import suggest_questions

        limit = read_integer("limit", limit, "a whole number")
        with explain_damage(self.store):
            return suggest_questions(self.store, limit)

    def draw(
        self, layer: str, *, around: str = "", hops: int = 1, limit: int = LIMIT, trace: int | None = None
    ) -> Picture:
        """A layer as a picture, by the name that `tome show` prints, with at most `limit` (up to 500) nodes.

        A graph shows the entities within `hops` facts `around` one, or the most connected. What the answer of `trace`
        used is highlighted. Raises UnknownName, UsageError.
        """
        from tomewise.tome.drawings import draw_layer

        answer = None if trace is None else self._opened.traces[trace].answer
        with explain_damage(self.store):
            return draw_layer(layer, self.store, around=around, hops=hops, limit=limit, answer=answer)

    def export(self) -> Iterator[str]:
        """The whole memory as JSON lines in a canonical order: equal memories have equal exports."""
        from tomewise.store.export import export

        with explain_damage(self.store):
            yield from export(self.store)

    def clean(self) -> int:
        """Delete the caches beside the tome. Returns the bytes that are free now. Raises Locked."""
        with work_alone(self.store, "clean"):
            size = self.store.cache_size()
            self.store.clear_cache()
        return size
