"""What a system says about itself: its recipe, where it comes from, how it differs, and its ablations."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tomewise.systems.kit import Recipe

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
    summary, _, about = (inspect.getdoc(part) or "").partition("\n")
    return SystemDeclaration(recipe=part, summary=summary, about=about.strip())
