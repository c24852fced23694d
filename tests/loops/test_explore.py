"""A model that looks into documents with tools: what it is shown, what is refused, and what its answer rests on."""

from __future__ import annotations

import pytest
from tests.loops.doubles import converse, list_inputs, list_roles, make_desk

from tomewise import Document, Tome
from tomewise.errors import BadReply, ModelUnavailable
from tomewise.language.roles import LookOut
from tomewise.loops.explore import Explore
from tomewise.loops.looks import Tools
from tomewise.systems.registry import assemble
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Node, Question, Scope

CHAPTERS = [
    f"## Chapter {number}\n\n" + " ".join(f"Scrooge counted heap {number}.{line} of his coins." for line in range(9))
    for number in range(1, 7)
]
CAROL = "# Carol\n\n" + "\n\n".join(CHAPTERS) + "\n\nThe goose was bought by Bob."
LETTERS = "Ada wrote to Scrooge (known as Ebenezer). Ebenezer never answered."
SECRET = "Scrooge hid the key."
ASKED = "How many times is Scrooge mentioned?"
ANSWERED = {"answer": "55", "quotes": [{"label": "E1", "quote": "Scrooge counted heap 1.0"}], "supported": "full"}


@pytest.fixture(scope="module")
def tome(tmp_path_factory):
    path = tmp_path_factory.mktemp("explore")
    with Tome.open(path / "a.tome", embedder="hash", settings={"passage_tokens": 64, "overlap": 0}) as opened:
        (path / "carol.md").write_text(CAROL)
        opened.add(path / "carol.md")
        opened.add(Document(id="letters", text=LETTERS), Document(id="secret", text=SECRET, metadata={"closed": True}))
        yield opened


@pytest.fixture
def play(tome):
    """Answers a question with these replies. Returns the model, the events and the answer."""

    async def ask(*replies, system="explore", asked=ASKED, answer=ANSWERED, within=None, window=128_000, **settings):
        model = ScriptedModel({"choose_looks": replies, "answer": [answer]}, window=window)
        kit = type(tome.kit)(tome.store, model, tome.kit.embedder)
        question = Question(text=asked, within=within or Scope(documents=frozenset(list_ids(tome) - {"secret"})))
        return model, *(await converse(assemble(system, kit, **settings).loop, question))

    return ask


def list_ids(tome):
    return {record.id for record in tome.documents()}


def look(tool, what="", document="", kind=""):
    return {"tool": tool, "what": what, "document": document, "kind": kind}


def list_details(events, name):
    return [event.detail for event in events if event.name == name]


def get_reason(events):
    return list_details(events, "stopped")[0]["reason"]


# ---------------------------------------------------------------- a whole run


async def test_looks_notes_and_what_is_kept_lead_to_the_answer(play):
    first = {"looks": [look("outline", document="carol"), look("find", "goose"), look("read", "part 1", "letters")]}
    second = {"note": "Bob bought the goose.", "keep": ["E1"], "looks": [look("search", "Who bought it?")]}
    model, events, answer = await play(first, second, {"finished": True}, asked="Who bought the goose?")
    assert list_roles(model) == ["choose_looks"] * 3 + ["answer"]
    begun, after, last = list_inputs(model, "choose_looks")
    assert [each.what for each in begun.results] == ["(the question)"], "the question is searched before any call"
    assert begun.evidence
    assert any(line.startswith("carol.md, ") and "; Carol; Chapter 1; " in line for line in begun.documents)
    assert (begun.tools, begun.left, begun.tried) == (["find", "search", "read", "outline"], 5, [])
    assert [each.tool for each in after.results] == ["outline", "find", "read"]
    assert "Chapter 2" in after.results[0].result.splitlines()[3]
    assert after.results[1].result.startswith("1 place in 1 document; by document: carol.md 1; by chapter: Chapter 6 1")
    assert after.evidence[0].text.endswith("The goose was bought by Bob."), "a passage whole, where all have room"
    assert after.evidence[1].text == LETTERS
    assert [each.result.count("\n") for each in last.tried] == [0] * 4, "a line each of the looks before"
    assert last.notes == ["Bob bought the goose."]
    given = model.calls[-1].given
    assert given.notes == [
        next(note for note in given.notes if note.startswith("find words 'goose': 1 place")),
        *last.notes,
    ]
    assert any("goose was bought" in piece.text for piece in given.evidence)
    assert [event.name for event in events] == [
        *("looked", "noted", "looked", "looked", "looked", "noted", "looked", "noted", "stopped", "retrieved")
    ]
    assert get_reason(events) == "the question can be answered"
    assert answer.coverage.read >= len(answer.evidence)


async def test_a_count_is_exact_in_a_note_and_its_places_can_be_cited(play, tome):
    model, _, answer = await play({"looks": [look("find", "Scrooge")]}, {"keep": ["E1"], "finished": True})
    (note,) = model.calls[-1].given.notes
    total = tome.within("carol.md", "letters").find("Scrooge").total
    assert total == 55
    assert note.startswith("find words 'Scrooge': 55 places in 2 documents; by document: carol.md 54, letters 1; ")
    assert answer.quotes[0].text == "Scrooge counted heap 1.0"
    shown = list_inputs(model, "choose_looks")[1]
    assert shown.results[0].result.endswith("shown: 20"), "the first of them"
    assert "Scrooge counted heap 1.0" in shown.evidence[0].text


@pytest.mark.parametrize("keep", [["E1"], []])
async def test_what_is_kept_comes_first_where_little_has_room(play, keep):
    replies = {"looks": [look("read", "chapter 6", "carol")]}, {"keep": keep, "finished": True}
    _, _, answer = await play(*replies, asked="What of heap 1.1?", context=95)
    assert any("Chapter 6" in piece.text for piece in answer.evidence) is bool(keep)


async def test_results_that_no_reply_has_seen_are_shown_to_the_answer(play):
    model, events, _ = await play({"looks": [look("read", "", "letters")]}, looks=1, context=60)
    assert [piece.text for piece in model.calls[-1].given.evidence] == [LETTERS]
    assert get_reason(events) == "no reply is left (allowed: 1)"


async def test_what_a_window_does_not_hold_is_counted(play):
    model, events, _ = await play({"looks": [look("read", "", "carol")]}, {"finished": True}, window=1500)
    given, looked = list_inputs(model, "choose_looks")[1], list_details(events, "looked")[1]
    assert given.cut == len(looked["evidence"]) - len(given.evidence) > 0


async def test_without_looks_one_search_answers(play):
    model, events, _ = await play(looks=0)
    assert list_roles(model) == ["answer"]
    assert [event.name for event in events] == ["stopped", "retrieved"]


async def test_an_agent_with_grep_has_find_and_read_and_what_it_kept(play):
    replies = [
        {"looks": [look("find", "Eb.*r", kind="pattern"), look("search", "x")]},
        {"keep": ["E1"], "finished": True},
    ]
    model, _, answer = await play(*replies, system="grep_agent")
    begun, after = list_inputs(model, "choose_looks")
    assert (begun.tools, begun.evidence, begun.results) == (["find", "read"], [], [])
    assert not any("Chapter" in line for line in begun.documents)
    assert "no tool is named 'search': find, read" in after.results[1].result
    assert [piece.text for piece in answer.evidence] == [LETTERS], "no search adds to it"


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (look("grep", "x"), "no tool is named 'grep': find, search, read, outline"),
        (look("find"), "`what` has 0 characters: 1 to 500 can be looked for"),
        (look("search", "x" * 501), "`what` has 501 characters"),
        (look("find", "(", kind="pattern"), "cannot read the pattern '('"),
        (look("find", "x", kind="vector"), "no kind is named 'vector': words, name, value, pattern"),
        (look("find", "?!"), "has no letter and no figure"),
        (look("read", "chapter 99", "carol"), "has no chapter '99'"),
        (look("read", "the end", "carol"), "cannot read the part 'the end'"),
        (look("read", "", "nowhere"), "no document is named 'nowhere'"),
        (look("read", "", "D9"), "no document is named 'D9'"),
        (look("outline"), "'' fits 2 documents"),
        (look("find", "x", "r"), "'r' fits 2 documents: give more of the name of one, or a label"),
        (look("read", "", "secret"), "no document is named 'secret'"),
    ],
)
async def test_a_look_that_no_tool_takes_is_told_and_counted(play, wanted, problem):
    model, events, answer = await play({"looks": [wanted]}, {"finished": True})
    (result,) = list_inputs(model, "choose_looks")[1].results
    assert result.result.startswith("not taken: ")
    assert problem in result.result
    assert len(list_details(events, "skipped")) == 1
    assert answer.resolved


async def test_looks_beyond_the_scope_find_nothing(play):
    model, _, _ = await play({"looks": [look("find", "key"), look("search", SECRET), look("read", "", "D3")]}, {})
    results = list_inputs(model, "choose_looks")[1].results
    assert [each.result.partition(";")[0] for each in results[:1]] == ["0 places in 0 documents"]
    assert results[-1].result.startswith("not taken: ")
    assert not any(SECRET in piece.text for call in model.calls for piece in call.given.evidence)


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([BadReply("no JSON")], "the reply was not usable"),
        ([{}], "no look was chosen"),
        ([{"looks": [look("find", "goose")], "finished": True}], "the question can be answered"),
        ([{"looks": [look("x")]}, {"looks": [look("y")]}], "2 replies in a row chose no look that can be taken"),
        (
            [{"looks": [look("find", "goose")] * 2}, {"looks": [look("find", " GOOSE")]}, {"looks": [look("y")]}],
            "2 replies in a row chose no look that can be taken",
        ),
        (
            [{"looks": [look("x")]}, {"looks": [look("find", "goose")]}, {"looks": [look("x")]}, {"finished": True}],
            "the question can be answered",
        ),
    ],
)
async def test_the_loop_ends_and_the_question_is_answered(play, replies, reason):
    model, events, answer = await play(*replies)
    assert get_reason(events) == reason
    assert list_roles(model) == ["choose_looks"] * len(replies) + ["answer"]
    assert answer.resolved


async def test_of_four_looks_three_are_taken(play):
    wanted = [look("find", word) for word in ("goose", "Bob", "Ada", "coins")]
    model, events, _ = await play({"looks": wanted}, {"finished": True})
    assert [each.what for each in list_inputs(model, "choose_looks")[1].results] == ["goose", "Bob", "Ada"]
    assert "no room for the look find 'coins'" in list_details(events, "skipped")[0]["reason"]


async def test_what_every_call_would_meet_is_raised(play):
    with pytest.raises(ModelUnavailable):
        await play(ModelUnavailable("no server"))


# ---------------------------------------------------------------- tools


@pytest.fixture
def tools(tome):
    records = tome.store.documents()
    names = ("find", "read", "outline")
    return Tools(make_desk(tome.store, ScriptedModel({})), None, names, None, records)


async def take(tools, *wanted, room=4000):
    written = LookOut(**look(*wanted))
    return await tools.take(tools.read_look(written), room, ())


@pytest.mark.parametrize(
    ("wanted", "room", "line", "texts"),
    [
        (("read", "", "letters"), 4000, "parts 1 to 1 of 1", [LETTERS]),
        (("read", "part 1", "Letters "), 5, "no part has room", []),
        (("find", "Ebenezer", "letters", "name"), 4000, "3 places in 1 document (found as: Ebenezer, Scrooge)", None),
        (("find", "key", "secret"), 4000, "1 place in 1 document; by document: secret 1; shown: 1", [SECRET]),
        (("find", "Marley"), 4000, "0 places in 0 documents; shown: 0", []),
    ],
)
async def test_a_look_has_a_line_and_evidence(tools, wanted, room, line, texts):
    result = await take(tools, *wanted, room=room)
    assert result.line.startswith(line)
    assert texts is None or [piece.text for piece in result.shown] == texts


async def test_a_reading_says_where_it_goes_on_and_can_be_continued(tools):
    text, part = "", "characters 0-99999"
    for _ in range(40):
        result = await take(tools, "read", part, "carol", room=150)
        text += " ".join(piece.text for piece in result.shown) + " "
        if "it goes on with part" not in result.line:
            break
        part = f"parts {result.line.rsplit(' ', 1)[1]}-999"
    assert text.split() == CAROL.split()


async def test_places_show_their_lines_where_they_have_no_room_whole(tools):
    result = await take(tools, "find", "counted", room=500)
    assert 0 < len(result.shown) < 20
    assert all(piece.text in CAROL for piece in result.shown)


# ---------------------------------------------------------------- the contract


def test_it_states_how_many_calls_it_makes_at_most(tome):
    loop = assemble("explore", tome.kit, looks=4).loop
    assert (loop.calls.most, loop.calls.formula) == (5, "1 for up to 3 looks, at most 4 + 1")
    assert assemble("grep_agent", tome.kit, looks=0).loop.calls.most == 1


@pytest.mark.parametrize("system", ["explore", "grep_agent"])
@pytest.mark.parametrize("documents", [{"letters"}, set()])
async def test_the_contract_of_loops_holds(tome, system, documents):
    replies = {
        "choose_looks": [{"looks": [look("find", "Ada")]}, {"keep": ["E1"], "finished": True}],
        "answer": lambda given: {"answer": "Ada" if given.evidence else "*"},
    }
    kit = type(tome.kit)(tome.store, ScriptedModel(replies), tome.kit.embedder)
    loop = assemble(system, kit).loop
    assert isinstance(loop, Explore)
    answer = await check_loop(loop, Question(text="Who wrote?", within=Scope(documents=frozenset(documents))))
    assert answer.resolved is bool(documents)


@pytest.mark.parametrize("system", ["explore", "grep_agent"])
def test_without_a_model_it_finds_the_names_of_a_question_and_quotes(tome, system):
    answer = tome.ask("Who wrote to Ebenezer?", system=system)
    found = [event.detail for event in answer.events if event.name == "looked" and event.detail["tool"] == "find"]
    assert [each["what"] for each in found] == ["Ebenezer"]
    assert answer.quotes[0].text.startswith("Ada wrote to Scrooge")
    assert answer.cost.calls == 3


# ---------------------------------------------------------------- names, scopes and windows


@pytest.mark.parametrize(
    ("name", "found"),
    [("Part 2", "c"), ("part 2 ", "c"), ("D1", "a"), ("1", "a"), ("2", "b"), ("1984", "d"), ("document 3", "c")],
)
def test_a_name_with_a_number_is_no_label(tmp_path, name, found):
    titles = {"a": "Part 7", "b": "Part 1", "c": "Part 2", "d": "1984"}
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        tome.add(*(Document(id=id, title=title, text=f"The text of {title}.") for id, title in titles.items()))
        tools = Tools(make_desk(tome.store), None, ("read",), None, tome.store.documents())
        assert tools.read_look(LookOut(**look("read", "", name))).record.id == found


@pytest.mark.parametrize("pair", [("x.", "x"), (r"\w+", r"\W+")])
async def test_patterns_that_differ_in_a_sign_are_two_looks(play, pair):
    wanted = [look("find", pattern, kind="pattern") for pattern in pair]
    model, events, _ = await play({"looks": wanted}, {"finished": True})
    assert not list_details(events, "skipped")
    assert all("place" in each.result for each in list_inputs(model, "choose_looks")[1].results)


async def test_a_reading_numbers_parts_by_their_place_in_the_document(tmp_path):
    with Tome.open(tmp_path / "a.tome", embedder="hash", settings={"passage_tokens": 32, "overlap": 0}) as tome:
        tome.add(Document(id="a", text="one two three four five. " * 60))
        passages = list(tome.store.passages().values())
        seen = tuple(passages[at].id for at in (2, 4, 5))
        with tome.store.write() as change:
            layer = "entities:passages-triples"
            change.put_nodes([Node(id="ada", layer=layer, text="Ada", sources=seen)], lifetime="any")
        scope = Scope(entities=frozenset({"ada"}))
        tools = Tools(make_desk(tome.store), None, ("read", "find"), scope, tome.store.documents())
        assert len(passages) > 6
        result = await take(tools, "read")
        assert result.line == f"parts 3 to 6 of {len(passages)}, without 1 beyond the scope"
        assert [piece.id for piece in result.shown] == list(seen)
        assert (await take(tools, "read", room=60)).line.endswith("; it goes on with part 5")
        assert (await take(tools, "read", "part 1")).line == "no part of this is within the scope"
        counted = sum(passages[at].text.count("three") for at in (2, 4, 5))
        assert (await take(tools, "find", "three")).line.startswith(f"{counted} places in 1 document")


async def test_what_a_window_did_not_hold_counts_as_unread_and_can_be_found_again(play):
    cut = {"looks": [look("read", "", "carol")]}
    again = {"looks": [look("search", "Scrooge counted heap 6.8 of his coins.", "carol")]}
    model, events, answer = await play(cut, again, {"finished": True}, window=1500, context=60)
    inputs, looked = list_inputs(model, "choose_looks"), list_details(events, "looked")
    seen = {piece.text for given in inputs for piece in given.evidence}
    assert inputs[1].cut
    assert answer.coverage.read <= len(seen) + len(answer.evidence)
    assert not looked[-1]["result"].endswith("now: 0")


async def test_counts_without_room_are_told_and_counted(play):
    words = [["Scrooge", "goose", "Bob"], ["Ada", "coins", "heap"], ["his", "counted", "bought"]]
    replies = [{"looks": [look("find", word) for word in three]} for three in words]
    model, _, answer = await play(*replies, {"finished": True}, context=400)
    *notes, remark = model.calls[-1].given.notes
    counts = [note for note in notes if note.startswith("find words")]
    assert 0 < len(counts) < 9
    assert remark.endswith("had no room here, whole or in part.")
    assert answer.coverage.dropped >= 9 - len(counts)
    model, _, _ = await play(*replies, {"finished": True})
    assert len(model.calls[-1].given.notes) == 9, "all where they have room"


async def test_a_count_that_is_cut_keeps_its_number(tmp_path):
    heads = [f"Who goes there? The guard {number}. Halt! Now" for number in range(5)]
    text = "\n\n".join(f"## {head}\n\nThe lamp." for head in heads)
    with Tome.open(tmp_path / "a.tome", embedder="hash") as tome:
        (tmp_path / "a.md").write_text(text)
        tome.add(tmp_path / "a.md")
        desk = make_desk(tome.store)
        result = await take(Tools(desk, None, ("find",), None, tome.store.documents()), "find", "lamp")
    assert result.line.startswith("5 places in 1 document; by document: a.md 5; by chapter: Who goes there The guard")
    assert desk.layout.shorten(result.count, 25).startswith("find words 'lamp': 5 places in 1 document")
