"""What a question names to the letter comes first: codes, in each way of writing them, and quoted words."""

from __future__ import annotations

import random

import pytest

from tomewise import Document, Tome
from tomewise.store.sql.node_rows import find_exact

CODES = ["PPR-9087", "INC0012345", "AB12/34-C", "REQ-4711-42"]
FORMS = {
    "alone": lambda code: code,
    "asked": lambda code: f"What is wrong in {code}?",
    "in a request": lambda code: f"Please tell me who reported ticket {code}, and whether it was closed on Monday.",
    "without signs": lambda code: code.lower().replace("-", "").replace("/", ""),
    "with other signs": lambda code: code.replace("-", ".").replace("/", "_"),
    "in wide letters": lambda code: "".join(chr(ord(letter) + 0xFEE0) for letter in code),
    "quoted, in parts": lambda code: f"Where is \u201c{code.replace('-', ' ')}\u201d?",
}


@pytest.fixture(scope="module", name="tickets")
def fill_tome(tmp_path_factory):
    draw = random.Random(1)
    things, faults = ("The printer", "The door", "The lamp"), ("does not start", "is slow", "lost its settings")
    with Tome.open(tmp_path_factory.mktemp("codes") / "a.tome", embedder="hash") as tome:
        for number in range(80):
            digits = draw.randrange(100_000, 999_999)
            code = CODES[number // 20] if number % 20 == 7 else f"XY-{digits}" if number % 2 else f"ZZ{digits}"
            text = f"Ticket {code}. {draw.choice(things)} {draw.choice(faults)}, as was reported on Monday."
            tome.add(Document(id=str(number), text=text))
        yield tome


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("system", ["hybrid", "bm25"])
def test_the_ticket_of_a_code_comes_first(tickets, form, system):
    for number, code in zip(range(7, 80, 20), CODES, strict=True):
        found = tickets.search(FORMS[form](code), system=system)
        assert found[0].origins[0].document == str(number), code


def test_nothing_beyond_the_scope_comes_first(tickets):
    documents = [str(number) for number in range(8, 40)]
    found = tickets.within(*documents).search("What is wrong in PPR-9087 and INC0012345?")
    assert {piece.origins[0].document for piece in found} <= set(documents)
    assert found[0].origins[0].document == "27"


def test_what_many_hold_decides_nothing(here):
    with Tome.open(here / "a.tome", embedder="hash") as tome:
        for number in range(30):
            tome.add(Document(id=str(number), text=f"The lamp LX-{5 if number else 6} number {number} was lit."))
        first, second = tome.search("LX-5 lamp number 12", limit=30)[:2]
        assert first.origins[0].document == "12"
        assert first.score < 1.5 > second.score
        assert tome.search("LX-6 lamp number 12")[0].origins[0].document == "0"


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What of PPR-9087?", [["ppr 9087", "ppr9087"]]),
        ("ppr 9087", [["ppr 9087", "ppr9087"]]),
        ("AB12/34-C or ab1234c", [["ab12 34 c", "ab1234c"], ["ab1234c"]]),
        ("\uff21\uff11", [["a1"]]),
        ("the 20th of May 1911, 5km from B in the 1990s at 10am, Jean-Luc, mother-in-law, 3.5 and 12-13", []),
        ("in May 2023 or chapter 12", []),
        (
            "\u201cthe grand model\u201d, \u201eDas Haus\u201c, \u00abla mer\u00bb",
            [["the grand model"], ["das haus"], ["la mer"]],
        ),
        ("it's the keeper's", []),
        ("\u201c\u6771\u4eac\u201d", [["\u6771 \u4eac"]]),
        ("a 19th-century house, a 5-year-old, the 24-hour day, 10:30pm, 100km/h, “it”", []),
        ("737-MAX and req-4711", [["737 max", "737max"], ["req 4711", "req4711"]]),
        ('" OR "*', []),
        ("x" * 40 + "1", []),
    ],
)
def test_what_a_query_names_to_the_letter(query, named):
    assert find_exact(query) == named
