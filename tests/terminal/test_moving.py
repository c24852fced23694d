"""The commands `tome export`, `tome import` and `tome reembed`."""

from __future__ import annotations

import json


def test_a_tome_moves_with_its_replies_and_traces(command, here):
    (here / "log.txt").write_text("The keeper, Ada Marsh, put out the light at nine. \u2028 Nobody asked her why.")
    assert command("add", here / "log.txt", "--meta", "year=1911").code == 0
    assert command("ask", "Who put out the light?", "--session", "s").code == 0
    plain, everything = command("export").out, command("export", "--all").out
    assert {json.loads(line).get("table") for line in everything.splitlines()} >= {"traces", "calls", "sessions"}
    (here / "all.jsonl").write_text(everything)
    ran = command("import", here / "all.jsonl", "-m", "b.tome")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "imported b.tome")
    assert command("-m", "b.tome", "export").out == plain
    assert command("-m", "b.tome", "export", "--all").out == everything
    assert "Who put out the light?" in command("-m", "b.tome", "log").out


def test_what_cannot_be_imported_is_named_with_its_file(command, here):
    (here / "plain.jsonl").write_text('{"kind": "setting"}\n')
    ran = command("import", here / "plain.jsonl", "-m", "b.tome")
    assert ran.code == 4
    assert "plain.jsonl was not imported: its first line does not name the format of a tome" in ran.err
    assert not (here / "b.tome").exists()
    ran = command("import", here / "none.jsonl")
    assert (ran.code, "cannot be read" in ran.err) == (2, True)
