"""Tables of what documents say: every passage is asked about, each cell is proved, what is one thing is one row."""

import csv
import io
import re

import pytest
from tests.texts import prose

from tomewise import Document, Tome
from tomewise.errors import BadReply, BudgetExceeded, NotBuilt, UsageError
from tomewise.language.roles import Batch
from tomewise.testing.scripted import ScriptedModel

TENDER = re.compile(r"Tender (\S+) of ([^,]+), was awarded to ([^,]+), for ([^,]+),\.?")
COLUMNS = ("tender", "paid:number", "day:date")
FIRMS = ("Reed", "Marsh", "Moy", "Thorle")


def write_register(entries: int, words: int = 25) -> str:
    """A text with so many tenders, each between sentences that say nothing."""
    return " ".join(
        f"Tender {number} of {number % 28 + 1} May 1911, was awarded to {FIRMS[number % 4]}, for £{number * 10}, "
        f"in all. {' '.join(prose(number, 2).split()[:words])}."
        for number in range(1, entries + 1)
    )


def collect_tenders(given):
    """What a reader who misses nothing takes from passages."""

    def read(passage):
        rows = [
            {"quote": found[0], "cells": [f"Tender {found[1]}", found[4], found[2]]}
            for found in TENDER.finditer(passage.text)
        ]
        return {"rows": rows}

    if isinstance(given, Batch):
        return {"passages": [{"label": f"P{n}", **read(each)} for n, each in enumerate(given.passages, 1)]}
    return read(given)


def open_tome(here, model, *documents, **settings):
    here.mkdir(exist_ok=True)
    tome = Tome.open(here / "a.tome", embedder="hash", model=model, settings=settings)
    if documents:
        tome.add(*documents)
    return tome


def test_all_of_three_hundred_entries_are_in_the_table(here):
    model = ScriptedModel({"collect": collect_tenders, "same_rows": lambda _: {"same": []}})
    with open_tome(here, model, Document(id="register", text=write_register(300))) as tome:
        table = tome.collect("all tenders", columns=COLUMNS, figures=["sum paid", "first day"])
    assert [row.cells[0].text for row in table.rows] == [f"Tender {number}" for number in range(1, 301)]
    assert {cell.support for row in table.rows for cell in row.cells} == {"quoted"}
    assert [str(each) for each in table.figures] == [
        "count: 300 (300 rows)",
        "sum of paid: 451,500 pound (300 rows)",
        "first of day: 1 May 1911 (300 rows)",
    ]
    assert table.all_read
    assert table.coverage.read == table.coverage.passages > 20


def test_a_document_that_is_added_costs_its_own_passages(here):
    model = ScriptedModel({"collect": collect_tenders})
    with open_tome(here, model, Document(id="a", text=write_register(20))) as tome:
        tome.collect("all tenders", columns=COLUMNS)
        asked = len(model.calls)
        assert tome.collect("all tenders", columns=COLUMNS).cost.calls == 0
        assert len(model.calls) == asked
        tome.add(Document(id="b", text=write_register(25).partition("Tender 21")[2].join(["Tender 21", ""])))
        table = tome.collect("all tenders", columns=COLUMNS)
        shown = [given.text for call in model.calls[asked:] for given in getattr(call.given, "passages", [call.given])]
        own = {passage.text for passage in tome.store.passages(documents=["b"]).values()}
    assert set(shown) == own
    assert len(table.rows) == 25
    with open_tome(here / "fresh", ScriptedModel({"collect": collect_tenders})) as fresh:
        fresh.add(Document(id="a", text=write_register(20)))
        fresh.add(Document(id="b", text=write_register(25).partition("Tender 21")[2].join(["Tender 21", ""])))
        assert fresh.collect("all tenders", columns=COLUMNS).rows == table.rows


def test_what_several_passages_say_of_one_thing_is_one_row(here):
    texts = ("The Reed boat cost £1,200.", "The boat of Reed was sold in May 1911. Reed boat!", "The big boat cost £5.")
    cells = {
        texts[0]: [["Reed boat", "£1,200", ""]],
        texts[1]: [["The Reed boat", "", "May 1911"]],
        texts[2]: [["the big boat", "£5", ""]],
    }

    def reply(given):
        return {"rows": [{"quote": given.text, "cells": row} for row in cells[given.text]]}

    model = ScriptedModel({"collect": reply, "same_rows": lambda _: {"same": []}})
    documents = [Document(id=f"d{number}", text=text) for number, text in enumerate(texts)]
    with open_tome(here, model, *documents) as tome:
        table = tome.collect("boats", columns=("boat", "cost:number", "sold:date"))
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["Reed boat", "£1,200", "May 1911"],
        ["the big boat", "£5", ""],
    ]
    assert table.rows[0].places == 2
    assert {quote.document for quote in table.rows[0].quotes} == {"d0", "d1"}


@pytest.mark.parametrize("verdict", ["same", "apart", "unusable"])
def test_likely_pairs_are_judged_or_named(here, verdict):
    texts = ("Ada Marsh kept the light.", "Miss Ada Marsh of Skerry left.")
    names = {texts[0]: "Ada Marsh", texts[1]: "Ada Marsh of Skerry"}
    replies = {"same": {"same": [1]}, "apart": {"same": []}, "unusable": BadReply("no")}
    script = {
        "collect": lambda given: {"rows": [{"quote": given.text, "cells": [names[given.text]]}]},
        "same_rows": lambda _: replies[verdict],
    }
    documents = [Document(id=f"d{number}", text=text) for number, text in enumerate(texts)]
    with open_tome(here, ScriptedModel(script), *documents) as tome:
        table = tome.collect("keepers", columns=("name",))
    assert len(table.rows) == (1 if verdict == "same" else 2)
    assert table.doubtful == (((0, 1),) if verdict == "unusable" else ())


def test_a_short_name_is_likely_the_long_one_though_the_date_is_spelt_otherwise(here):
    rows = {
        "Ines Quill had £40 on 3 May 1851.": ["Ines Quill", "£40", "3 May 1851"],
        "Quill was paid on the 3rd of May, 1851.": ["Quill", "", "3rd of May, 1851"],
        "Quill was paid on the 4th of May, 1851.": ["Quill", "", "4th of May, 1851"],
    }
    asked = []

    def judge(given):
        asked.extend((pair.first, pair.second) for pair in given.pairs)
        return {"same": [1]}

    script = {
        "collect": lambda given: {"rows": [{"quote": given.text, "cells": rows[given.text]}]},
        "same_rows": judge,
    }
    documents = [Document(id=f"d{number}", text=text) for number, text in enumerate(rows)]
    with open_tome(here, ScriptedModel(script), *documents) as tome:
        table = tome.collect("payments", columns=("payee", "paid:number", "day:date"), key=("payee", "day"))
    assert asked == [("payee: Ines Quill; paid: £40; day: 3 May 1851", "payee: Quill; day: 3rd of May, 1851")]
    assert [row.cells[1].text for row in table.rows] == ["£40", ""]


def test_cells_that_the_passage_does_not_state_are_marked_and_rows_without_any_ground_dropped(here):
    text = "The clerk paid twelve pounds to Reed. Nobody saw it."
    rows = [
        {"quote": "The clerk paid twelve pounds to Reed.", "cells": ["Reed", "£12", "1911"]},
        {"quote": "The clerk sold the boat.", "cells": ["Marsh", "£50", ""]},
        {"quote": "Reed was paid", "cells": ["Reed", "£13", ""]},
    ]
    with open_tome(here, ScriptedModel({"collect": lambda _: {"rows": rows}}), Document(id="a", text=text)) as tome:
        table = tome.collect("payments", columns=("who", "paid:number", "year:date"), key=("who", "paid"))
    assert table.dropped_quotes == 1
    supports = [[cell.support for cell in row.cells] for row in table.rows]
    assert supports[0] == ["quoted", "inferred", "none"]
    assert supports[1][0] == "quoted"
    assert supports[1][1] in ("contradicted", "none")


def test_a_view_forgets_a_failure_that_was_mended(here):
    replies = [BadReply("no"), {"rows": []}]
    with open_tome(here, ScriptedModel({"collect": replies}), Document(id="a", text="Reed came.")) as tome:
        part = tome.within("a")
        part.collect("guests", columns=("name",))
        assert [each.what for each in part.coverage.unread] == ["failed step"]
        part.collect("guests", columns=("name",))
        assert (part.coverage.all_read, part.coverage.unread) == (True, ())


def test_what_was_not_read_is_said_and_all_is_not_claimed(here):
    def reply(given):
        passages = getattr(given, "passages", [given])
        if any("Tender 7 " in each.text for each in passages):
            return BadReply("no JSON")
        return collect_tenders(given)

    with open_tome(here, ScriptedModel({"collect": reply}), Document(id="a", text=write_register(20))) as tome:
        table = tome.collect("all tenders", columns=COLUMNS)
        assert not table.all_read
        assert table.coverage.read == table.coverage.passages - 1
        assert "1 passage without a usable reply (no JSON" in table.coverage.remark
        assert 0 < len(table.rows) < 20


def test_nothing_that_was_paid_is_lost_where_a_budget_ends(here):
    model = ScriptedModel({"collect": collect_tenders})
    register = Document(id="a", text=write_register(120))
    with open_tome(here, model, register, budget="2 calls") as tome, pytest.raises(BudgetExceeded):
        tome.collect("all tenders", columns=COLUMNS)
    done = len(model.calls)
    assert done >= 1
    with Tome.open(here / "a.tome", embedder="hash", model=model) as tome:
        assert len(tome.collect("all tenders", columns=COLUMNS).rows) == 120
        whole = tome.collect("all tenders", columns=COLUMNS, fresh=True).cost.calls
    assert len(model.calls) - done - whole == whole - done


def test_one_call_plans_the_columns_where_none_are_given(here):
    plan = {
        "item": "a tender that was awarded",
        "columns": [
            {"name": "tender"},
            {"name": "paid", "kind": "number", "about": "the price"},
            {"name": "day", "kind": "date"},
        ],
        "key": ["tender", "nonsense"],
    }
    model = ScriptedModel({"plan_table": [plan], "collect": collect_tenders})
    with open_tome(here, model, Document(id="a", text=write_register(5))) as tome:
        table = tome.collect("Which tenders were awarded, for how much?")
    assert (table.item, table.key) == ("a tender that was awarded", ("tender",))
    assert [(column.name, column.kind, column.about) for column in table.columns][1] == ("paid", "number", "the price")
    assert len(table.rows) == 5


@pytest.mark.parametrize(
    ("asked", "how", "problem"),
    [
        (" ", {}, "the question is empty"),
        ("a", {"columns": ("b:nonsense",)}, "cannot read the column 'b:nonsense'"),
        ("a", {"columns": ("b", "B")}, "two columns have one name"),
        ("a", {"columns": ("b",), "key": ("c",)}, "no column is called 'c': the key is one or more of b"),
        ("a", {"columns": ("b",), "figures": ("median b",)}, "cannot read the figure 'median b'"),
        ("a", {"columns": ("b",), "figures": ("sum c",)}, "the table has no column 'c'"),
        ("a", {"columns": ("b",), "figures": ("sum",)}, "a sum needs a column: name one of b"),
    ],
)
def test_what_cannot_be_collected_is_refused(here, asked, how, problem):
    model = ScriptedModel({"collect": collect_tenders})
    with open_tome(here, model, Document(id="a", text="A text.")) as tome, pytest.raises(UsageError, match=problem):
        tome.collect(asked, **how)
    assert not model.calls


def test_without_a_model_nothing_is_collected(here):
    problem = "a model has to read, and none is set"
    with open_tome(here, None, Document(id="a", text="A text.")) as tome, pytest.raises(UsageError, match=problem):
        tome.collect("all tenders")
    with open_tome(here / "empty", ScriptedModel({})) as empty, pytest.raises(NotBuilt, match="holds no document yet"):
        empty.collect("all tenders", columns=("a",))


def test_a_table_is_written_as_markdown_with_footnotes_and_as_csv(here):
    text = "Tender 1 of 2 May 1911, was awarded to Reed, for £10, in all."
    with open_tome(here, ScriptedModel({"collect": collect_tenders}), Document(id="a", title="Log", text=text)) as tome:
        table = tome.collect("all tenders", columns=COLUMNS)
    markdown = table.to_markdown().splitlines()
    assert markdown[0] == "| tender | paid | day |"
    assert markdown[2] == "| Tender 1[^1] | £10[^1] | 2 May 1911[^1] |"
    assert markdown[-1].startswith("[^1]: “Tender 1 of 2 May 1911, was awarded to Reed, for £10,”")
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows == [
        ["tender", "paid", "day", "support", "source"],
        ["Tender 1", "£10", "2 May 1911", "quoted", "Log, part 1"],
    ]


def test_a_scope_is_all_that_is_read(here):
    documents = [Document(id="a", text=write_register(3)), Document(id="b", text="Nothing here.")]
    with open_tome(here, ScriptedModel({"collect": collect_tenders}), *documents) as tome:
        table = tome.within("b").collect("all tenders", columns=COLUMNS)
    assert (table.rows, table.all_read, table.coverage.passages) == ((), True, 1)
