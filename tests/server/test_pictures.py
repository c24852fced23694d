"""Pictures over HTTP."""

from __future__ import annotations

from pathlib import Path

from tests.drawn import read_picture
from tests.server.conftest import make_tome
from tests.server.served import Served, serve

from tomewise.store.records import BUILDS
from tomewise.tome.tome import Tome

QUESTION = "Who put out the light?"
GRAPH = "graph:passages-triples"


def test_pictures_of_layers_and_of_an_answer(tmp_path: Path):
    make_tome(tmp_path / "novel.tome")
    with Tome.open(tmp_path / "novel.tome") as tome:
        tome.build("hipporag2")
        tome.build("comorag")
        number = tome.ask(QUESTION, system="hipporag2").trace
        probed = tome.ask(QUESTION, system="hybrid+probe").trace
        built = sorted(tome.store.notes(BUILDS))
        around = tome.draw_layer(GRAPH).nodes[0].label
        chosen = {"around": around, "hops": 1, "limit": 3}
        drawn = [tome.draw_layer(GRAPH, **chosen), tome.draw_layer(GRAPH, trace=number), tome.draw_trace(probed)]
    with serve(tmp_path, "novel.tome") as served:
        url = "/api/tomes/novel"
        assert served.http.get(f"{url}/pictures").json() == {"layers": built}
        assert GRAPH in built
        replies = [
            served.http.get(f"{url}/pictures/{GRAPH}", params=chosen),
            served.http.get(f"{url}/pictures/{GRAPH}", params={"trace": number}),
            served.http.get(f"{url}/traces/{probed}/picture"),
        ]
        assert [reply.json() for reply in replies] == [picture.as_json() for picture in drawn]
        assert read_picture(replies[2].json()) == drawn[2]
        assert served.http.get(f"{url}/traces/{number}/picture").status_code == 400
        listed = served.http.get(f"{url}/traces").json()["traces"]
        assert [(row["id"], row["drawable"]) for row in listed] == [(probed, True), (number, False)]


def test_pictures_that_cannot_be_drawn(served: Served):
    url = "/api/tomes/novel"
    assert served.http.get(f"{url}/pictures").json() == {"layers": []}
    assert served.http.get(f"{url}/pictures/tree").json()["error"]["code"] == "unknown_name"
    assert served.http.get(f"{url}/pictures/tree", params={"limit": 501}).status_code == 400
    assert served.http.get(f"{url}/pictures/tree", params={"trace": 2**63}).status_code == 404
    assert served.http.get(f"{url}/traces/{2**63}/picture").status_code == 404
