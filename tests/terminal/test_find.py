"""`tome find`: each place with its line, counts of all, and what is refused."""


def test_each_place_is_printed_with_its_line_and_all_are_counted(command, log_in_tome):
    ran = command("find", "the light", "--limit", 1)
    assert ran.code == 0
    assert "Ada Marsh, put out the light at nine." in ran.out
    assert ", characters " in ran.out
    assert "read, all in scope" in ran.out
    assert command("find", "penguin").out.startswith("0 places in 0 documents")


def test_programs_get_the_hits(read_json, log_in_tome):
    hits = read_json("find", "light", "--limit", 1)
    assert (len(hits["quotes"]), hits["kind"], hits["wanted"]) == (1, "words", ["light"])
    assert hits["total"] == sum(count for _, count in hits["counts"]["document"])


def test_what_cannot_be_looked_for_is_one_line(command, log_in_tome):
    for arguments, problem in (
        (("(", "--kind", "pattern"), "cannot read the pattern '(': missing )"),
        (("a", "--kind", "regex"), "kind must be one of words, name, value, pattern, not 'regex'"),
        (("?",), "'?' has no letter and no figure to look for"),
    ):
        ran = command("find", *arguments)
        assert ran.code == 2
        assert problem in ran.err


def test_a_document_is_outlined_and_shown_in_part(command, read_json, log_in_tome):
    assert command("show", "log.txt", "--part", "characters 0-10").out == log_in_tome.read_text()[:10] + "\n"
    assert read_json("show", "log.txt", "--part", "line 1")["start"] == 0
    assert "1 line" in command("show", "log.txt", "--outline").out
    assert read_json("show", "log.txt", "--outline")["characters"] == len(log_in_tome.read_text())
    assert command("show", "--part", "page 1").code == 2
    assert "log.txt has no page 3" in command("show", "log.txt", "--part", "page 3").err
