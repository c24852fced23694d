import json

from tomewise.reading.formats import FORMATS, load_reader


def test_the_formats_are_listed(command):
    out = command("add", "--list-formats").out
    rows = json.loads(command("add", "--list-formats", "--json").out)
    suffixes = {suffix for row in rows for suffix in row["suffixes"]}
    for suffix in (".pdf .docx .pptx .xlsx .epub .html .md .srt .vtt .csv .tsv .ipynb .eml .mbox .py .json .yaml .log "
                   ".rst .org .tex .jsonl").split():  # fmt: skip
        assert suffix in suffixes
        assert suffix in out
    assert next(row for row in rows if row["name"] == "pdf") == {
        "name": "pdf", "suffixes": [".pdf"], "places": "page, chapter of the outline", "extra": "documents",
    }  # fmt: skip
    assert "tomewise[documents]" in out


def test_each_suffix_has_one_format_and_each_reader_exists():
    suffixes = [suffix for format in FORMATS for suffix in format.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(callable(load_reader(format.name)) for format in FORMATS if format.reader)


def test_nothing_to_add_is_an_error(command):
    ran = command("add")
    assert (ran.code, "no PATH is given" in ran.err) == (2, True)


def test_places_of_formats_reach_citations(command, here):
    (here / "talk.srt").write_text("1\n00:12:04,000 --> 00:12:09,000\nANNA: The keeper forged the letter.\n")
    (here / "boats.csv").write_text("Name,Owner\nGull,The doctor of the town owns this boat\n")
    assert command("add", "talk.srt", "boats.csv").code == 0
    assert "12:04, ANNA" in command("search", "Who forged the letter?").out
    assert "row 2" in command("search", "Who owns the boat Gull?").out


def test_a_name_of_two_lines_is_printed_on_one(command, here):
    (here / "f").mkdir()
    (here / "f" / "a\nb.txt").write_text("Rain fell.")
    (here / "f" / "c\nd.pdf").write_text("Rain fell.")
    lines = command("add", "f").out.splitlines()
    assert [line.split(":")[0] for line in lines][:2] == ["added 1 document", r"passed over c\nd.pdf"]
    assert len(lines) == 4
