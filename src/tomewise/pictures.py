"""What a memory layer looks like: one type for all of them, and its plain JSON.

Builders make pictures, `drawing` draws them. Texts are shown as texts, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tomewise.errors import UsageError
from tomewise.events import ATTEMPTS, is_event, read_common
from tomewise.types import Answer, DocumentId, Event, NodeId, Noun

Kind: TypeAlias = Literal["graph", "tree", "line", "table"]
Shape: TypeAlias = Literal["circle", "square", "diamond"]
Use: TypeAlias = Literal["", "shown", "cited"]
LIMIT = 500  # nodes that a picture of a layer shows at most
_LABEL = 80  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturePassage:
    """A text that nodes rest on: a passage, or evidence made from passages.

    `place` is written for people. A passage has a `document`, and stands there from `start` to `end`, in characters.
    """

    id: NodeId
    text: str = ""
    document: DocumentId = ""
    title: str = ""
    place: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One entry under a node, such as a step of its history, with the passages that it rests on."""

    title: str
    text: str = ""
    passages: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureNode:
    """One thing in a picture.

    `label` is one short line, `mark` a few characters for the inside of its shape, `text` the whole. `facts` are named
    values; they are the columns of a table. Nodes of a higher `level` stand above others, or further to the left. `use`
    says whether the answer saw it ("shown"), or quotes a passage that it rests on ("cited").
    """

    id: str
    label: str
    group: str
    mark: str = ""
    text: str = ""
    facts: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)
    level: int = 0
    use: Use = ""
    passages: tuple[NodeId, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", shorten_label(self.label))


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureLink:
    """A line between two nodes, by their ids; in a tree from the parent to the child."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A sort of nodes, such as the entities."""

    id: str
    label: str
    shape: Shape = "circle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture(Noun):
    """What a layer looks like.

    `about` is the layer. It shows `shown` of `total` things. `missing` says what is not there though it could be, in
    sentences.
    """

    kind: Kind
    title: str
    about: str = ""
    nodes: tuple[PictureNode, ...] = ()
    links: tuple[PictureLink, ...] = ()
    groups: tuple[Group, ...] = ()
    passages: tuple[PicturePassage, ...] = ()
    shown: int = 0
    total: int = 0
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        nodes = {node.id for node in self.nodes}
        groups = {group.id for group in self.groups}
        if len(nodes) < len(self.nodes):
            raise UsageError(f"the picture {self.title!r} has two nodes with one id: give each its own")
        for link in self.links:
            if not {link.source, link.target} <= nodes:
                raise UsageError(f"a link joins {link.source!r} and {link.target!r}: add both nodes first")
        for node in self.nodes:
            if node.group not in groups:
                raise UsageError(f"the node {node.id!r} is in the group {node.group!r}: add this group first")

    def list_texts(self) -> tuple[NodeId, ...]:
        """The ids of all texts that its nodes rest on, each once."""
        notes = (passage for node in self.nodes for note in node.notes for passage in note.passages)
        return tuple(dict.fromkeys([passage for node in self.nodes for passage in node.passages] + list(notes)))


class Sketch:
    """A picture in the making: its nodes, each once, and its links."""

    def __init__(self) -> None:
        self.nodes: dict[str, PictureNode] = {}
        self.links: list[PictureLink] = []

    def add(self, node: PictureNode, parent: str = "") -> str:
        """Add a node unless it is there, and the link from its parent. Returns its id."""
        self.nodes.setdefault(node.id, node)
        if parent and PictureLink(source=parent, target=node.id) not in self.links:
            self.link(parent, node.id)
        return node.id

    def link(self, source: str, target: str, label: str = "") -> None:
        """Add a link; one with an end that is not drawn is left out in the end."""
        self.links.append(PictureLink(source=source, target=target, label=label))

    def finish(self, kind: Kind, title: str, groups: Iterable[Group], *, total: int = 0, **fields: Any) -> Picture:
        """The picture, with these other fields of it. There are `total` things, or as many as it shows."""
        drawn = self.nodes.keys()
        return Picture(
            kind=kind,
            title=title,
            nodes=tuple(self.nodes.values()),
            links=tuple(link for link in self.links if link.source in drawn and link.target in drawn),
            groups=tuple(groups),
            shown=len(drawn),
            total=total or len(drawn),
            **fields,
        )


@dataclass(frozen=True, slots=True)
class Uses:
    """What an answer used: the nodes that its last call was shown, and the passages that it quotes."""

    shown: frozenset[NodeId] = frozenset()
    cited: frozenset[NodeId] = frozenset()

    def find(self, nodes: Iterable[NodeId]) -> Use:
        """The strongest use of one of these nodes."""
        ids = frozenset(nodes)
        return "cited" if ids & self.cited else "shown" if ids & self.shown else ""

    def find_cited(self, nodes: Iterable[NodeId]) -> Use:
        """The use of what rests on these nodes and was itself not shown."""
        return "" if self.cited.isdisjoint(nodes) else "cited"


UNUSED = Uses()


def read_uses(answer: Answer) -> Uses:
    """What an answer used, as far as its events say; the last event that says what was shown counts."""
    shown: Iterable[NodeId] = [piece.id for piece in answer.evidence]
    for event in reversed(answer.events):
        if not shown and is_event(event, *ATTEMPTS, "evolved"):
            shown = event.detail["shown"]
        elif not shown and is_event(event, "retrieved", "looked up"):
            shown = [piece.id for piece in read_common(event).evidence]
    return Uses(frozenset(shown), frozenset(quote.passage for quote in answer.quotes))


def list_nodes(events: Iterable[Event]) -> list[NodeId]:
    """The nodes of all evidence in events, each once."""
    pieces = [piece for event in events for piece in read_common(event).evidence]
    return list(dict.fromkeys(piece.id for piece in pieces if piece.id))


def shorten_label(text: str) -> str:
    """The text as a label: one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else line[: _LABEL - 1].rstrip() + "…"
