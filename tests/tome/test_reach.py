"""What a question asks about: a part of a text, all of it, all things of a kind, or how often a word stands."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.language.openai_server import OpenAIServer, fail_with, in_turn, reply_with, stream_with
from tests.texts import prose
from tests.tome.test_collecting import collect_tenders, write_register

from tomewise import Document, Question, Scope, Tome
from tomewise.errors import BadReply, UsageError
from tomewise.language.chat import ChatModel
from tomewise.loops import escalate
from tomewise.systems import auto
from tomewise.terminal.render import describe_choices
from tomewise.testing.scripted import ScriptedModel

WORDS = "Scrooge counted. Nobody asked Scrooge’s clerk. SCROOGE slept; the screw did not."
HOW_OFTEN = "Wie oft wird Scrooge erwähnt?"
LIST = "Welche Aufträge wurden vergeben?"
PLAN = {"item": "a tender", "columns": [{"name": "tender"}, {"name": "paid"}, {"name": "day"}], "key": ["tender"]}


def answer_with(reach, item="", **reply):
    """Replies that quote the first sentence of what is shown, and claim full support."""

    def answer(given):
        first = given.evidence[0]
        text = first.text.split(".")[0]
        quotes = [{"label": first.label, "quote": text}]
        return {"answer": text, "supported": "full", "quotes": quotes, "reach": reach, "item": item, **reply}

    return answer


@pytest.fixture(name="open_tome")
def make_opener(here):
    """Opens a tome with a scripted model, and with one document unless it is long."""

    def open_tome(answer, text=WORDS, **replies):
        model = ScriptedModel({"answer": answer, **replies})
        tome = Tome.open(here / "a.tome", embedder="hash", model=model)
        tome.add(Document(id="log", text=text))
        return tome, model

    return open_tome


@pytest.fixture(name="nothing_is_short")
def make_all_long(monkeypatch):
    monkeypatch.setattr(auto, "_SHORT", 0)
    monkeypatch.setattr(auto, "_FAIR", 0)


def test_a_text_that_fits_is_read_at_once(open_tome):
    tome, model = open_tome(answer_with("list"), prose(1, 300))
    with tome:
        answer = tome.ask("Which boats were lost?", effort="auto")
    assert [call.role for call in model.calls] == ["answer"]
    assert (answer.coverage.all_read, answer.support) == (True, "quoted")
    assert answer.coverage.read == answer.coverage.passages > 10
    shown = model.calls[0].given.evidence
    assert 2 < len(shown) < answer.coverage.passages
    assert shown[1].place.startswith("parts ")


@pytest.mark.parametrize(("reach", "last"), [("part", "hybrid"), ("whole", "read_through")])
def test_of_a_long_text_all_is_read_where_the_question_asks_for_all(open_tome, reach, last, nothing_is_short):
    replies = {
        "plan_reading": {"questions": ["what is lost"], "nets": [], "needs_all": False},
        "mark_facts": {"facts": [{"label": "E1", "quote": "nowhere", "fact": "A boat was lost."}]},
        "update_ledger": {"settled": True, "answered": [1]},
    }
    tome, model = open_tome(
        answer_with(reach), prose(1, 3000), **{name: lambda _, reply=reply: reply for name, reply in replies.items()}
    )
    model.window = 20_000
    with tome:
        answer = tome.ask("What is lost?", effort="auto")
    assert [event.detail["chosen"] for event in answer.events if event.name == "chosen"] == (
        ["hybrid"] if reach == "part" else ["hybrid", "whole"]
    )
    assert answer.coverage.read == answer.coverage.passages or reach == "part"
    assert answer.reach == reach


def test_what_claims_all_of_a_part_is_inferred_at_most_and_says_what_was_read(open_tome, nothing_is_short, monkeypatch):
    monkeypatch.setattr(escalate, "_TOKENS", 10)
    tome, _ = open_tome(answer_with("list"), prose(1, 3000))
    with tome:
        systems = ("hybrid context=500", "naive context=500", "auto context=500")
        answers = [tome.ask("Which boats were lost?", system=system) for system in systems]
    for answer in answers:
        assert (answer.claimed, answer.support, answer.coverage.all_read) == ("full", "inferred", False)
        remark = f"The question asks for all, and {answer.coverage} were read."
        assert answer.remarks.count(remark) == 1
        assert remark in str(answer)
    stopped, chosen = answers[-1].events[-2:]
    assert stopped.detail["reason"] == (
        "hybrid: the question asks for all (list); answered, and its weakest statement is quoted"
    )
    assert chosen.detail["passed_over"] == {"whole": "more than 10 tokens would be read (`--effort whole` does)"}
    assert "passed over: whole (more than 10 tokens would be read" in describe_choices(answers[-1])[1]
    tome, _ = open_tome(answer_with("part"), prose(1, 3000))
    with tome:
        answer = tome.ask("Which boat was lost?", system="naive context=500")
    assert (answer.support, answer.remarks) == ("quoted", ())


NOTED = {"facts": [{"label": "E1", "quote": "nowhere", "fact": "Heron went on."}]}


def write_minutes(number):
    text = prose(number, 900)
    return Document(id=f"{number}.md", title=f"Minutes of day {number}", text=text + "\n\nAda Marsh spoke of herons.")


@pytest.mark.parametrize(
    ("question", "heron", "named"),
    [
        ("Summarise Project Heron.", "Project Heron began in May.", "Project Heron"),
        ("What was said of “The Long Heron” in all?", "“The Long Heron” was read out.", "The Long Heron"),
        ("Was wurde über Projekt Heron gesagt?", "Das Projekt Heron begann im Mai.", "Projekt Heron"),
        ("What did Ada Marsh say of Heron, all in all?", "They called it Heron.", "Heron"),
        ("Summarise Minutes of day 2.", "Nothing.", "Minutes of day 2"),
        ("What does 2.md hold?", "Nothing.", "2.md"),
        ("Was wurde über Reiher gesagt, und wer sprach?", "Ein Reiher flog.", ""),  # each noun has a capital
        ("Summarise what was said of herons.", "Project Heron began in May.", ""),
        ("Summarise what Ada Marsh said.", "Project Heron began in May.", ""),
        ("Summarise Project Crane.", "Project Heron began in May.", ""),
        ("Summarise the minutes of day 2.", "Nothing.", ""),
    ],
)
def test_what_stands_in_one_document_alone_is_read_there(here, question, heron, named, nothing_is_short):
    replies = {"mark_facts": NOTED, "plan_reading": {"questions": []}, "update_ledger": {}}
    model = ScriptedModel(
        {"answer": answer_with("whole"), **{name: lambda _, reply=reply: reply for name, reply in replies.items()}}
    )
    with Tome.open(here / "a.tome", embedder="hash", model=model) as tome:
        documents = [write_minutes(number) for number in range(1, 4)]
        documents[1] = replace(documents[1], text=f"{documents[1].text}\n\n{heron}")
        tome.add(*documents)
        answer = tome.ask(question, effort="auto")
        assert answer.named == ((named,) if named else ())
        assert answer.coverage.all_read
        assert (f"Only 2.md was read, since “{named}” stands nowhere else." in answer.remarks) is bool(named)
        if named:
            assert answer.within == Scope(documents=frozenset(["2.md"]))
            assert answer.coverage.passages < sum(each.passages for each in tome.documents) / 2
            assert tome.traces[answer.trace].answer.within == answer.within
        else:
            assert (answer.within, answer.coverage.passages) == (None, sum(each.passages for each in tome.documents))


SHELF = {
    "a.md": (
        "",
        "Project Heron began in September, in English. Résume the work. Entscheidungen: SWOT. Ada Marsh went.",
    ),
    "b.md": ("", "The project went on. Ada saw a crane by the marsh. See also The Long Report."),
    "x/minutes.md": ("The Long Report", "Nothing."),
    "y/minutes.md": ("The Long Report of May", "Nothing."),
    "c.md": ("Crane and costs", "It was dear."),
    "d.md": ("", "Egret: a project."),
}


@pytest.mark.parametrize(
    ("question", "documents", "named"),
    [
        ("Summarise Project Heron.", "a.md", "Project Heron"),
        ("Summarise what was said in English.", "", ""),
        ("What was decided after September?", "", ""),
        ("Résume tout.", "", ""),
        ("Nenne alle Entscheidungen.", "", ""),
        ("Give a SWOT of all.", "", ""),
        ("What did Ada Marsh do, all in all?", "", ""),  # one holds both words, and another one "Ada" alone
        ("What was said of Egret?", "d.md", "Egret"),
        ("What was said of Crane?", "", ""),  # a title of one, and a word of another
        ("Summarise The Long Report of May.", "y/minutes.md", "The Long Report of May"),
        ("Summarise The Long Report.", "b.md x/minutes.md y/minutes.md", "The Long Report"),
        ("Summarise x/minutes.md.", "x/minutes.md", "x/minutes.md"),
        ("Summarise minutes.md.", "x/minutes.md y/minutes.md", "minutes.md"),
        (
            "Compare The Long Report of May with Project Heron.",
            "a.md y/minutes.md",
            "The Long Report of May, Project Heron",
        ),
        ("Summarise " + "Heron " * 5_000, "", ""),
    ],
    ids=lambda given: given[:40],
)
def test_what_a_question_names_leaves_out_no_document_that_has_it(here, question, documents, named, nothing_is_short):
    model = ScriptedModel({"answer": answer_with("whole")})
    with Tome.open(here / "a.tome", embedder="hash", model=model) as tome:
        tome.add(*(Document(id=name, title=title, text=text) for name, (title, text) in SHELF.items()))
        answer = tome.ask(question, effort="auto")
        assert ", ".join(answer.named) == named
        assert sorted(answer.within.documents if answer.within else ()) == documents.split()
        assert (" were read, since" in " ".join(answer.remarks)) is (" " in documents)


def test_a_reach_that_means_nothing_is_a_part(open_tome):
    for reach in ("", "everything", None, 7):
        tome, _ = open_tome(answer_with(reach))
        with tome:
            assert tome.ask("Who slept?", system="naive", fresh=True).reach == "part"


@pytest.mark.parametrize("short", [True, False])
def test_how_often_a_word_stands_is_counted_by_code(open_tome, short, request):
    if not short:
        request.getfixturevalue("nothing_is_short")
    tome, model = open_tome(answer_with("count", "Scrooge"), WORDS + "\n\n" + prose(1, 40))
    with tome:
        answer = tome.ask(HOW_OFTEN, effort="auto")
    assert answer.text == "“Scrooge” stands 3 times in 1 document"
    assert (answer.support, answer.coverage.all_read, len(model.calls)) == ("quoted", True, 1)
    assert [quote.text for quote in answer.quotes] == ["Scrooge", "Scrooge", "SCROOGE"]
    assert answer.evidence


@pytest.mark.parametrize(
    ("question", "item", "text"),
    [
        ("How often does Marley come up?", "Marley", "“Marley” stands 0 times in 1 document"),
        ("How often does Scrooge come up?", '"Ebenezer Scrooge"', "“Scrooge” stands 3 times in 1 document"),
        ("Wie oft kommen Scrooges vor?", "Scrooge.", "“Scrooge” stands 3 times in 1 document"),
        ("How many clerks were there?", "Scrooge", "Scrooge counted"),
        ("How often are Scrooge and the clerk named?", "Scrooge, clerk", "Scrooge counted"),
    ],
)
def test_only_words_of_the_question_are_counted(open_tome, question, item, text):
    tome, _ = open_tome(answer_with("count", item))
    with tome:
        answer = tome.ask(question, effort="auto")
    assert (answer.text, answer.remarks) == (text, ())


def test_nothing_beyond_the_scope_is_counted(open_tome):
    tome, _ = open_tome(answer_with("count", "Scrooge"))
    with tome:
        tome.add(Document(id="late", text="Scrooge again."))
        for scope, text in (
            (Scope(documents=frozenset(["late"])), "“Scrooge” stands 1 time in 1 document"),
            (Scope(without_entities=frozenset(["nobody"])), "Scrooge again"),
        ):
            assert tome.ask(Question(text=HOW_OFTEN, within=scope), effort="auto").text == text


def test_a_list_of_facts_is_collected_and_counted_by_code(open_tome, nothing_is_short):
    replies = {"collect": collect_tenders, "plan_table": lambda _: PLAN, "same_rows": lambda _: {"same": []}}
    tome, model = open_tome(answer_with("list", "a tender"), write_register(60), **replies)
    with tome:
        answer = tome.ask(LIST, effort="auto")
        assert answer.text.startswith("60:\n- Tender 1, £10, 2 May 1911\n- Tender 2, ")
        assert [answer.text[each.start : each.end] for each in answer.statements] == [
            each.text for each in answer.statements
        ]
        assert len(answer.statements) == 60
        assert (answer.support, answer.coverage.all_read, answer.reach) == ("quoted", True, "list")
        assert {call.role for call in model.calls} == {"answer", "plan_table", "collect"}


@pytest.mark.parametrize(("form", "last"), [("list", "collect"), ("table", "whole"), ("account", "whole")])
def test_a_form_that_is_no_list_is_not_collected(open_tome, form, last, nothing_is_short):
    replies = {"collect": collect_tenders, "plan_table": lambda _: PLAN, "same_rows": lambda _: {"same": []}}
    tome, _ = open_tome(answer_with("list", "a tender"), write_register(9), **replies)
    with tome:
        answer = tome.ask(LIST, effort="auto", form=form)
    assert [event.detail["chosen"] for event in answer.events if event.name == "chosen"] == ["hybrid", last]


TOO_LONG = fail_with(400, "This model's maximum context length is 3000 tokens, however you requested 9000 tokens")


@pytest.mark.filterwarnings("ignore:asked again")
@pytest.mark.parametrize(
    ("before", "reach", "supported", "taken_back"),
    [([], "Listing them", "full", 0), ([], None, "full", 0), ([TOO_LONG], "part", "partly", 1)],
    ids=["odd word", "written last", "cut"],
)
def test_nothing_is_left_to_see_of_an_answer_that_is_replaced(here, before, reach, supported, taken_back, request):
    """A prompt that the server refuses is cut: then what was shown as the last answer is not."""
    if not before:
        request.getfixturevalue("nothing_is_short")
    first = {"reach": reach} if reach else {}
    first |= {"quotes": [], "supported": supported, "answer": "The first one.", "missing": "", "item": ""}
    first |= {} if reach else {"reach": "whole"}
    second = {**first, "reach": "part", "supported": "full", "answer": "The second one."}
    texts = [[text[at : at + 5] for at in range(0, len(text), 5)] for text in map(json.dumps, (first, second))]
    events = []
    with OpenAIServer(in_turn(*before, *(stream_with(*text) for text in texts))) as server:
        model = ChatModel("openai:test", base_url=server.url)
        with Tome.open(here / "a.tome", embedder="hash", model=model) as tome:
            tome.add(Document(id="log", text=prose(1, 600)))
            answer = tome.ask("What is lost?", effort="auto", on_event=events.append)
    seen = ""
    parts = [event.detail for event in events if event.name == "answer_part"]
    for part in parts:
        seen = part["text"] if part["replace"] else seen + part["text"]
    assert seen == answer.text == "The second one."
    assert sum(part["replace"] for part in parts) == taken_back


def test_what_collecting_lost_is_said_and_makes_its_answer_inferred(open_tome, nothing_is_short):
    def collect(given):
        return BadReply("no") if "Tender 60 of" in given.model_dump_json() else collect_tenders(given)

    replies = {"collect": collect, "plan_table": lambda _: PLAN, "same_rows": lambda _: {"same": []}}
    tome, _ = open_tome(answer_with("list", "a tender"), write_register(60), **replies)
    with tome:
        answer = tome.ask(LIST, effort="auto")
    assert 50 < len(answer.statements) < 60
    assert (answer.support, answer.coverage.all_read) == ("inferred", False)
    assert "passage without a usable reply" in answer.coverage.remark
    assert f"The question asks for all, and {answer.coverage} were read." in answer.remarks


def test_what_cannot_be_planned_is_read(open_tome, nothing_is_short):
    replies = {
        "plan_table": lambda _: BadReply("no"),
        "plan_reading": lambda _: {"questions": ["which"], "nets": []},
        "mark_facts": lambda _: {"facts": []},
        "update_ledger": lambda _: {"settled": True},
    }
    tome, _ = open_tome(answer_with("list", "a tender"), write_register(9), **replies)
    with tome:
        answer = tome.ask(LIST, effort="auto")
    chosen = [event.detail["chosen"] for event in answer.events if event.name == "chosen"]
    assert chosen == ["hybrid", "collect", "whole"]


def test_two_questions_of_one_text_have_one_beginning(here):
    def reply(request):
        return reply_with(json.dumps({"quotes": [], "supported": "none", "answer": "*"}))

    with OpenAIServer(reply) as server:
        model = ChatModel("openai:test", base_url=server.url)
        here.mkdir(exist_ok=True)
        with Tome.open(here / "a.tome", embedder="hash", model=model) as tome:
            tome.add(Document(id="log", text=prose(1, 400)), Document(id="late", text=WORDS))
            for asked in ({}, {"form": "list"}, {"force": True, "instructions": "In Latin."}, {"options": ("a", "b")}):
                tome.ask(f"Who slept {len(asked)}?", effort="whole", **asked)
        first, *others = server.prompts
    text_ends = first.index("the screw did not.") + 20
    for prompt in others:
        assert prompt[:text_ends] == first[:text_ends]
    rules = [request["messages"][0] for request in server.requests]
    assert rules.count(rules[0]) == len(server.requests) == 4


def test_what_does_not_fit_is_refused_by_name(open_tome):
    tome, model = open_tome(answer_with("part"), prose(1, 400))
    model.window = 5_000
    with tome:
        with pytest.raises(UsageError, match=r"this does not fit: .* about \d,\d+ tokens, and scripted takes 5,000"):
            tome.ask("Who slept?", system="full_context")
        answer = tome.ask("Who slept?", system="full_context cut=true")
        assert 0 < answer.coverage.read < answer.coverage.passages
        assert answer.coverage.dropped == answer.coverage.passages - answer.coverage.read
        model.window = 50_000
        assert tome.ask("Who slept?", system="full_context").coverage.all_read
