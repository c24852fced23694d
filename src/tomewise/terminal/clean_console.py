"""The console of Rich through which commands print. A module of its own, since Rich takes a while to import."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tomewise.terminal.cleaning import clean


class CleanConsole(Console):
    """A console whose texts are clean, wherever they come from: all sequences are Rich's own, and none is a link."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed; those that move the cursor are of Rich and stay."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            plain = style.update_link(None) if style and style.link else style
            yield segment if control else Segment(clean(text), plain)
