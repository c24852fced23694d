"""Pictures to draw: of a given size, and with hostile texts."""

from __future__ import annotations

from tomewise.pictures import Group, Note, Picture, PictureLink, PictureNode, PicturePassage

SCRIPT = "</script><script>document.title = 'owned'</script>"
IMAGE = "<img src=x onerror=\"document.title = 'owned'\">"
GROUPS = (Group(id="point", label="Points", shape="square"), Group(id="entity", label="Entities"))


def make_graph(size: int) -> Picture:
    """A connected graph, in which a third of the nodes are points."""
    nodes = tuple(
        PictureNode(
            id=f"n{place}",
            label=f"the entity number {place}",
            group="entity" if place % 3 else "point",
            mark="" if place % 3 else f"M{place}",
            use="cited" if place < 4 else "",
            notes=(Note(title="inserted", text="It was said.", passages=("p",)),),
        )
        for place in range(size)
    )
    links = [PictureLink(source=f"n{place // 3}", target=f"n{place}") for place in range(1, size)]
    links += [PictureLink(source=f"n{place}", target=f"n{place * 7 % size}") for place in range(size // 2)]
    passage = PicturePassage(id="p", text="Once upon a time.", title="A story", place="ch. 1")
    return Picture(
        kind="graph",
        title="Hypergraph",
        about="Who?",
        nodes=nodes,
        links=tuple(links),
        groups=GROUPS,
        passages=(passage,),
        shown=size,
        total=size,
    )


def make_hostile() -> Picture:
    """A picture whose every text would run if it were taken for HTML."""
    return Picture(
        kind="graph",
        title=IMAGE,
        about=SCRIPT,
        nodes=(
            PictureNode(
                id=SCRIPT, label=SCRIPT, group="g", mark="<b>", text=IMAGE, facts={IMAGE: IMAGE}, passages=("p",)
            ),
            PictureNode(id="b", label=IMAGE, group="g", notes=(Note(title=IMAGE, text="javascript:alert(1) \u202e"),)),
        ),
        links=(PictureLink(source=SCRIPT, target="b", label=IMAGE),),
        groups=(Group(id="g", label=IMAGE),),
        passages=(PicturePassage(id="p", text=SCRIPT + "\ud800 & <!--", title=IMAGE, place=IMAGE),),
        missing=(IMAGE,),
    )
