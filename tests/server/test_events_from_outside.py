"""A system from outside yields plain events of any shape: the server streams, stores and lists them."""

from __future__ import annotations

import os
from pathlib import Path

from tests.server.conftest import make_tome
from tests.server.served import serve
from tests.server.test_endpoints import events_of

LOOP = """
from tomewise.parts import Answer, Event, Kit, System

ODD = [None, "a text", {"node": 4, "score": 10**400, "place": {"chapter": 5}, "text": 2}]


class Odd:
    async def run(self, question):
        yield Event(name="odd", summary="odd: 1", detail={"evidence": ODD, "notes": 3, "pool": "x", "cut": "y"})
        yield Event(name="answer_part", summary="not ours", detail={"no": "text"})
        yield Event(name="chosen", step=1, summary="not ours", detail={"chosen": 1})
        yield Answer(text="Ada Marsh")


def odd(kit: Kit) -> System:
    return System(loop=Odd(), retriever=None)
"""


def test_plain_events_pass_through_the_server(tmp_path: Path) -> None:
    (tmp_path / "parts" / "odd-1.dist-info").mkdir(parents=True)
    (tmp_path / "parts" / "odd_loop.py").write_text(LOOP)
    (tmp_path / "parts" / "odd-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    (tmp_path / "parts" / "odd-1.dist-info" / "entry_points.txt").write_text("[tomewise.systems]\nodd = odd_loop:odd\n")
    make_tome(tmp_path / "novel.tome")
    path = os.pathsep.join([str(tmp_path / "parts"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    with serve(tmp_path, "novel.tome", PYTHONPATH=path) as served:
        body = {"question": "Who put out the light?", "system": "odd"}
        reply = served.http.post("/api/tomes/novel/ask", json=body, headers={"accept": "text/event-stream"})
        events = events_of(reply.text)
        assert [name for name, _ in events if name != "usage"] == ["started", "odd", "answer_part", "chosen", "answer"]
        number = events[-1][1]["trace"]
        stored = served.http.get(f"/api/tomes/novel/traces/{number}").json()["events"]
        assert [event["name"] for event in stored] == ["odd", "answer_part", "chosen"]
        assert stored[1]["detail"] == {"no": "text"}
        assert served.http.get(f"/api/tomes/novel/traces/{number}/evidence").json() == {"evidence": {}}
