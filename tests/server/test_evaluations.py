"""Experiments over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

from tests.server.served import serve

from tomewise.evaluate.experiment import Experiment


def test_tables_questions_and_two_answers_of_an_experiment(tmp_path: Path, command, here: Path):
    out = here / "evals"
    Experiment(["naive", "hybrid"], questions=3, out=out, embedder="hash").run()
    printed = json.loads(command("eval", "report", out, "--json", "--baseline", "naive", "--by", "length").out)
    with serve(tmp_path, "--root", ".", "--evaluations", str(out)) as served:
        (about,) = served.http.get("/api/evaluations").json()["evaluations"]
        url = f"/api/evaluations/{about['name']}"
        shown = served.http.get(url, params={"baseline": "naive", "by": "length", "limit": 0}).json()
        assert shown["table"] == printed
        assert (shown["rows"], shown["total"]) == ([], 6)
        assert "length" in shown["slices"]
        assert len(served.http.get(url).json()["rows"]) == 6
        listed = served.http.get(f"{url}/questions", params={"limit": 2}).json()
        assert (len(listed["questions"]), listed["total"]) == (2, 3)
        assert set(listed["questions"][0]["scores"]) == {"naive", "hybrid"}
        chosen = {"first": "naive", "second": "hybrid", "question": listed["questions"][0]["id"]}
        compared = served.http.get(f"{url}/compare", params=chosen).json()
        assert [side["system"] for side in compared["systems"]] == ["naive", "hybrid"]
        assert compared["systems"][0]["evidence"]
        assert served.http.get(f"{url}/compare", params={**chosen, "second": "nothing"}).status_code == 404
        assert served.http.get(url, params={"by": "nothing"}).status_code == 404
        assert served.http.get(url, params={"baseline": "nothing"}).status_code == 404
