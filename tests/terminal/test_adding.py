"""`tome add`, `remove`, `show`, `clean`, `export` and `import`: documents come, are looked at, move, and go."""

from __future__ import annotations

import io
import json

import pytest
from tests.tome.paid_tome import pretend_paid

from tomewise.reading.formats import FORMATS, load_reader

LOG = "The keeper, Ada Marsh, put out the light at nine. Tom Reed met Ada Marsh at the harbour in May."


@pytest.fixture
def files(here):
    """Files, two of them in a folder."""
    (here / "notes").mkdir()
    for name in ("a.txt", "b.txt", "notes/x.txt", "notes/y.txt"):
        (here / name).write_text(f"{name}: {LOG}")
    return here


# ---------------------------------------------------------------- adding


def test_one_source_that_fails_does_not_stop_the_others(command, files, read_json):
    (files / "bad.txt").write_bytes(b"\x00\x01")
    ran = command("add", "a.txt", "bad.txt", "nowhere.txt", "b.txt", "ftp://example.org/page")
    assert ran.code == 3
    assert "added 2 documents: a.txt, b.txt" in ran.out
    *failures, last = ran.err.splitlines()
    parts = ("bad.txt", "nowhere.txt does not exist", "ftp://example.org/page is an address")
    for line, part in zip(failures, parts, strict=True):
        assert line.startswith("tome: failed ")
        assert part in line
    assert last == "tome: 3 of 5 sources failed; the others are added"
    report = read_json("add", "a.txt", "nowhere.txt", "a.txt")
    assert (len(report["unchanged"]), list(report["failed"])) == (1, ["nowhere.txt"])


def test_a_folder_is_synced_and_reports_what_it_passed_over(command, files):
    (files / "notes" / "[bad].txt").write_bytes(b"\0\1\2")
    ran = command("add", "notes")
    assert ran.code == 0
    assert "passed over [bad].txt" in ran.out
    assert "binary" in ran.out
    (files / "notes" / "x.txt").rename(files / "notes" / "z.txt")
    (files / "notes" / "y.txt").unlink()
    ran = command("add", "--sync", "notes")
    assert "moved 1 document: z.txt" in ran.out
    assert "removed 1 document, no longer there: y.txt" in ran.out
    assert "unchanged" not in ran.out


def test_odd_names_and_ids(command, here):
    (here / "f").mkdir()
    for name in ("a\nb.txt", "c\nd.pdf"):
        (here / "f" / name).write_text("Rain fell.")
    lines = command("add", "f").out.splitlines()
    assert [line.split(":")[0] for line in lines][:2] == ["added 1 document", r"passed over c\nd.pdf"]
    assert len(lines) == 4, "a name of two lines is printed on one"
    (here / "rows.jsonl").write_text(json.dumps({"id": "https://example.org/docs/light/", "text": LOG}))
    assert "added 1 document: https://example.org/docs/light/" in command("add", "rows.jsonl").out
    assert "https://example.org/docs/light/, part 1" in command("ask", "Who put out the light?").out


def test_standard_input_is_added_and_asked(command, files, monkeypatch):
    def pipe(text, *words):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return command(*words)

    assert json.loads(pipe(LOG, "add", "-", "--json").out)["added"][0].startswith("stdin-")
    nothing = pipe("", "add", "-")
    assert (nothing.code, "standard input is empty" in nothing.err) == (3, True)
    asked = pipe("Who put out the light?\n", "ask", "-", "--json")
    assert "Ada Marsh" in json.loads(asked.out)["statements"][0]["text"]
    assert "the question is empty" in pipe("  ", "ask", "-").err


def test_the_formats_are_listed_and_each_has_a_reader(command, read_json):
    out, rows = command("add", "--list-formats").out, read_json("add", "--list-formats")
    stated = [suffix for row in rows for suffix in row["suffixes"]]
    assert [suffix for suffix in stated if suffix not in out] == []
    pdf = {"name": "pdf", "suffixes": [".pdf"], "places": "page, chapter of the outline", "extra": "documents"}
    assert pdf in rows
    assert "tomewise[documents]" in out
    assert len(stated) == len(set(stated))
    assert all(callable(load_reader(format.name)) for format in FORMATS if format.reader)


# ---------------------------------------------------------------- looking


def test_documents_are_added_shown_and_removed_as_json(command, files, read_json):
    log, more = str(files / "a.txt"), str(files / "b.txt")
    command("add", log)
    assert read_json("add", "b.txt", log) == {
        "added": [more], "replaced": [], "unchanged": [log], "removed": [], "passages": 1, "skipped": {},
        "moved": [], "failed": {}, "lagging": None, "losses": {}, "kept": {}, "resting": [], "left_out": {},
            "guessed": {},
    }  # fmt: skip
    shown = read_json("show")
    assert [record["id"] for record in shown["documents"]] == [log, more]
    assert shown["embedder"] == "hash"
    assert read_json("show", "b.txt")["text"].startswith("b.txt: The keeper")
    assert all(json.loads(line)["kind"] for line in command("export").out.splitlines())
    assert read_json("remove", "b.txt") == {"document": more, "passages": 1, "derived": 0, "documents": [more]}


def test_clean_deletes_the_caches_and_show_has_their_size(command, files, read_json):
    command("add", "a.txt")
    command("ask", "Who put out the light?")
    size = read_json("show")["cache_bytes"]
    assert size > 0
    assert "of caches" in command("show").out
    assert read_json("clean") == {"freed": size}
    assert read_json("show")["cache_bytes"] == 0
    assert "Ada Marsh" in command("ask", "Who put out the light?").out
    assert "MB of cached arrays" in command("clean").out


def test_facts_passages_and_gists_of_an_entity(command, here, read_json):
    text = "Ada Marsh kept the light on Gull Rock. Ada Marsh wrote a letter to Doctor Finch. Doctor Finch burned it."
    (here / "log.txt").write_text(text)
    command("add", "log.txt")
    command("build", "--system", "cogitorag")
    found = read_json("show", "--entity", "ADA marsh")
    assert found["name"] == "ada marsh"
    assert {fact["graph"] for fact in found["facts"]} == {"gists-triples-in-2-calls"}
    (passage,) = found["passages"]
    assert (passage["text"], "Ada Marsh" in found["gists"][passage["id"]]) == (text, True)
    assert "log.txt, part 1" in command("show", "--entity", "Ada Marsh").out
    ran = command("show", "--entity", "Ada Mrash")
    assert (ran.code, ran.out, "did you mean 'ada marsh'?" in ran.err) == (2, "", True), ran.err


# ---------------------------------------------------------------- removing


@pytest.fixture(name="filled")
def fill_tome(command, files):
    command("add", "a.txt", "b.txt", "notes")
    return files


def count_documents(read_json) -> int:
    return len(read_json("show")["documents"])


def test_whole_names_need_no_question_and_a_part_removes_nothing(command, filled, read_json):
    for name in ("not", "a.tx", "x.txt", "otes/x"):
        for words in ((), ("--yes",)):
            ran = command("remove", name, *words)
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
            assert "did you mean" in ran.err
    assert count_documents(read_json) == 4
    paths = [str(filled / "a.txt"), str(filled / "notes" / "x.txt")]
    ran = command("remove", "a.txt", paths[1], "a.txt", "--json")
    assert [json.loads(line)["document"] for line in ran.out.splitlines()] == paths
    assert count_documents(read_json) == 2


@pytest.mark.parametrize(("name", "count"), [("notes", 2), ("[a]*", 1)])
def test_a_folder_and_a_pattern_need_yes(command, filled, name, count, read_json):
    ran = command("remove", name)
    assert (ran.code, ran.out) == (2, "")
    assert f"this would remove {count} document" in ran.err
    assert "give --yes" in ran.err
    assert count_documents(read_json) == 4
    assert command("remove", name, "--yes").code == 0
    assert count_documents(read_json) == 4 - count


def test_memory_that_was_paid_for_needs_yes(command, filled, read_json):
    command("build", "--system", "read_agent")
    free = command("remove", "a.txt")
    assert (free.code, "derived memor" in free.out) == (0, True)
    pretend_paid(filled / "memory.tome")
    ran = command("remove", "b.txt")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "made by openai:test" in ran.err
    assert count_documents(read_json) == 3
    assert command("remove", "b.txt", "--yes").code == 0


@pytest.mark.parametrize(("reply", "left"), [("y\n", 3), ("n\n", 4), ("", 4)])
def test_a_person_is_shown_what_goes_and_asked(command, filled, type_reply, reply, left, read_json):
    command("build", "--system", "read_agent")
    pretend_paid(filled / "memory.tome")
    type_reply(reply)
    ran = command("remove", "a.txt")
    shown = ran.err + ran.out
    parts = (str(filled / "a.txt"), "This removes 1 document, 1 passage and", "made by openai:test", "Remove it?")
    assert [part for part in parts if part not in shown] == []
    assert count_documents(read_json) == left


# ---------------------------------------------------------------- moving a tome, and one that grows


def test_a_tome_moves_with_its_replies_and_traces(command, here):
    (here / "log.txt").write_text(f"{LOG} \u2028 Nobody asked her why.")
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
    (here / "plain.jsonl").write_text('{"kind": "setting"}\n')
    refused = command("import", here / "plain.jsonl", "-m", "c.tome")
    assert refused.code == 4
    assert "plain.jsonl was not imported: its first line does not name the format of a tome" in refused.err
    assert not (here / "c.tome").exists()
