"""Reading in order: what each role is given, what survives in the ledger, and what happens when a call fails."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from tests.loops.doubles import list_inputs, list_roles
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, ModelUnavailable, UsageError
from tomewise.language.cached import Cache
from tomewise.language.chat import ChatModel
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import Wrapped
from tomewise.loops.read_through import ReadThrough
from tomewise.recall.flat import Lexical
from tomewise.run import meter
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question, run_loop
from tomewise.systems.kit import Kit, System
from tomewise.systems.registry import assemble
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question, Scope
from tomewise.working.lasting_memory import MemoryLoop
from tomewise.working.ledger import Ledger, LedgerMemory

EMBEDDER = HashEmbedder(64)
ASKED = Question(text="Who kept the light?", force=True)
BAD = BadReply("no JSON")
UNCHECKED = "(a reader's note; the words it rests on could not be checked)"
LIVED, LIGHT, RAINED = "Ada lived there.", "The light burned.", "It rained."


class Search(Lexical):
    """Recall by words, which notes its scopes."""

    def __init__(self, store):
        super().__init__(store)
        self.scopes = []

    async def retrieve(self, query, limit, *, within=None):
        self.scopes.append(within)
        return await super().retrieve(query, limit, within=within)


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    yield made
    made.close()


async def estimate_calls(loop):
    """The most calls of a question, by the chunks that would be read."""
    return loop.count_calls(await loop.find_chunks(ASKED))


def quote_all(given):
    """Every passage is a fact in its own words."""
    return {"facts": [{"label": piece.label, "quote": piece.text, "fact": piece.text} for piece in given.evidence]}


def quote_first(text, fact=""):
    return {"facts": [{"label": "E1", "quote": text, "fact": fact}]}


def script(latency=0.0, window=128_000, **replies):
    plain = {
        "plan_reading": lambda _: {"questions": ["Who lived there?"], "nets": ["What is said of lights?"]},
        "extract_notes": quote_all,
        "mark_facts": quote_all,
        "infer_notes": lambda _: {},
        "refine_questions": lambda _: {},
        "update_ledger": lambda _: {},
        "carry_note": lambda given: {"note": f"{given.note} {given.evidence[0].text}".strip()},
        "answer": lambda _: {"answer": "Ada"},
    }
    return ScriptedModel({**plain, **replies}, latency=latency, window=window)


def wire(store, model, chunk=20, search=None, context=6_000, **settings):
    """`read_through` around a search by words. Of `put_texts` every passage is a chunk, as 20 tokens hold one."""
    desk = Kit(store, model, EMBEDDER).fusing_desk.alone
    return System(loop=ReadThrough(desk=desk, recall=search or Search(store), size=chunk, context=context, **settings))


class Notebook(LedgerMemory):
    """A memory that shows the whole ledger of its question, with what does not outlive it."""

    def keep(self, ledger):
        self.whole = ledger
        super().keep(ledger)


LEDGERS: dict[int, Ledger] = {}


async def ask(system, question):
    """The answer of a system, whose ledger `load_ledger` gives."""
    memory = Notebook() if isinstance(system.loop, MemoryLoop) else None
    with meter() as used:
        answer = replace(await run_loop(system, question, used, None, memory), cost=used.measure_cost())
    LEDGERS[id(answer)] = getattr(memory, "whole", None)
    return answer


async def read(store, model, *texts, question=ASKED, **settings):
    """The answer of `read_through` to a question about a story of these texts."""
    if texts:
        put_texts(store, EMBEDDER, "story", *texts)
    return await ask(wire(store, model, **settings), question)


async def hand_on(store, model, *texts, question=ASKED, **settings):
    """The answer of a chain of agents."""
    if texts:
        put_texts(store, EMBEDDER, "story", *texts)
    return await answer_question(assemble("chain_of_agents", Kit(store, model, EMBEDDER), **settings), question)


async def read_once(store, model, *texts, question=ASKED, **settings):
    """The answer of `cosmir`."""
    if texts:
        put_texts(store, EMBEDDER, "story", *texts)
    return await ask(assemble("cosmir", Kit(store, model, EMBEDDER), **settings), question)


READERS = pytest.mark.parametrize(
    ("read_with", "role"),
    [(read, "mark_facts"), (read_once, "extract_notes"), (hand_on, "carry_note")],
    ids=["read_through", "cosmir", "chain_of_agents"],
)


def list_events(answer, name):
    return [event for event in answer.events if event.name == name]


def list_reasons(answer):
    return [event.detail["reason"] for event in list_events(answer, "skipped")]


def load_ledger(answer):
    """The whole ledger of a question that was just answered."""
    return LEDGERS[id(answer)]


def list_facts(answer):
    return [fact.text for fact in load_ledger(answer).facts]


def find_texts(evidence):
    return [piece.text for piece in evidence]


def list_read(model):
    """The first passage of each chunk that was read."""
    return [given.evidence[0].text for given in list_inputs(model, "mark_facts")]


def at_second_sight(reply, otherwise):
    """Replies one way to passages that were read before, and the other way to the rest."""
    seen = set()

    def extract(given):
        texts = {piece.text for piece in given.evidence}
        is_again = bool(texts & seen)
        seen.update(texts)
        return (reply if is_again else otherwise)(given)

    return extract


# ---------------------------------------------------------------- COSMIR, as its section 4.2 says


def play_paper(rng, chunks, budget, count):
    """What a slow reading of the paper calls, and what it replies: each call as its role and what it is shown.

    M = ⟨Q, F_g, F_i, a⟩. The planner fills Q. For each chunk c: Extract(c, q, Q) adds to F_g, whose oldest facts go
    until it has room; Infer(F_g, F_i) adds to F_i; Refine(Q, F_g, F_i) changes Q. The manager sees Q, F_g and F_i.
    """
    focused, wide, gathered, inferred = ["Q a?", "Q b?"], ["N a?"], [], []
    calls = [("plan_reading", {"questions": [*focused], "nets": [*wide]}, None)]
    made, unread = 0, []

    def show():
        return [text for _, text, _ in gathered], [text for _, text in inferred], [*focused], [*wide]

    for number, chunk in enumerate(chunks):
        shown = (chunk, [*focused], [*wide])
        if rng.random() < 0.15 and number:
            calls.append(("extract_notes", BAD, shown))
            unread.append(number)
        else:
            facts = []
            for part in range(rng.randrange(5)):
                made += 1
                words = " ".join(rng.choices(["ada", "lit", "the", "old", "lamp"], k=rng.randint(1, 5)))
                facts.append({"label": "E1", "quote": chunk, "fact": f"{words} {number} {part}"})
                gathered.append((f"F{made}", facts[-1]["fact"], number))
            calls.append(("extract_notes", {"facts": facts}, shown))
        while sum(count([text for _, text, _ in gathered])) > budget:
            gathered.pop(0)
        before, drawn = show(), []
        labels = [label for label, *_ in (*gathered, *inferred)]
        for part in range(rng.randrange(3)):
            grounds = rng.sample(labels, min(len(labels), rng.randrange(3)))
            drawn.append({"rests_on": grounds, "inference": f"so {number} {part}"})
            if grounds:
                made += 1
                inferred.append((f"I{made}", drawn[-1]["inference"]))
        calls.append(("infer_notes", {"inferences": drawn}, before))
        before, asked = show(), [*focused, *wide]
        answered = rng.sample(range(1, len(asked) + 1), min(len(asked), rng.randrange(2)))
        new = [f"Q {number} {part}?" for part in range(rng.randrange(6))]
        calls.append(("refine_questions", {"answered": answered, "new": new}, before))
        gone = {asked[each - 1] for each in answered}
        focused[:] = [text for text in focused if text not in gone] + new
        wide[:] = [text for text in wide if text not in gone]
    calls.append(("answer", {"answer": "Ada"}, show()))
    return calls, unread


def read_shown(role, given):
    """The same of a call that was made."""
    if role == "plan_reading":
        assert (given.limit, given.nets) == (None, None)
        return None
    if role == "extract_notes":
        return given.evidence[0].text, given.questions, given.nets
    if role != "answer":
        return find_texts(given.facts), find_texts(given.inferences), given.questions, given.nets
    assert {piece.kind for piece in given.evidence} <= {"fact"}, "no passage is shown"
    return [line for piece in given.evidence for line in piece.text.split("\n")], given.notes


@pytest.mark.parametrize("seed", range(24))
async def test_cosmir_makes_the_calls_of_its_paper_and_shows_in_each_what_the_ledger_holds(store, seed):
    rng = random.Random(seed)
    chunks = [f"Ada lit the old lamp on day {number} of it." for number in range(rng.randint(1, 7))]
    size, share = 30, rng.choice([0.4, 0.7, 1.0])
    count = Kit(store, ScriptedModel({}), EMBEDDER).count_tokens
    calls, unread = play_paper(rng, chunks, int(share * size), count)
    replies = {}
    for role, reply, _ in calls:
        replies.setdefault(role, []).append(reply)
    model = ScriptedModel(replies)
    put_texts(store, EMBEDDER, "story", *chunks)
    system = assemble("cosmir", Kit(store, model, EMBEDDER), chunk=size, share=share)
    assert await estimate_calls(system.loop) == len(calls) == 2 + 3 * len(chunks)
    answer = await answer_question(system, ASKED)
    *expected, (_, _, (facts, inferred, focused, wide)) = calls
    notes = [f"This part of the text could not be read: story, part {each + 1} of {len(chunks)}." for each in unread]
    notes += [f"Still open after the reading: {' '.join([*focused, *wide])}"] * bool(focused or wide)
    expected = [(role, shown) for role, _, shown in expected] + [("answer", (facts, [*notes, *inferred]))]
    assert [(call.role, read_shown(call.role, call.given)) for call in model.calls] == expected
    assert answer.text == "Ada"


async def test_a_fact_of_cosmir_is_cited_where_its_words_stand_in_the_text(store):
    facts = [{"label": "E1", "quote": LIVED, "fact": "Ada lived there."}, {"label": "E1", "quote": "no", "fact": "So."}]
    reply = {"answer": "Ada", "quotes": [{"label": "E1", "quote": "Ada lived"}]}
    answer = await read_once(store, script(extract_notes=[{"facts": facts}], answer=[reply]), LIVED)
    assert [cited.text for cited in answer.quotes] == ["Ada lived"]
    assert [piece.text for piece in answer.evidence] == [f"Ada lived there.\nSo. {UNCHECKED}"]


# ---------------------------------------------------------------- what the last prompt shows, in all three

STORY = [
    f"On day {number} of the storm Ada lit lamp {number} in the tower, and {'the wind rose ' * 12}."
    for number in range(24)
]


def infer_each(given):
    """An inference for each new fact, long enough that not all have room in 1,200 tokens."""
    new = [fact for fact in given.facts if fact.is_new]
    so = [{"rests_on": [fact.label], "inference": f"So {fact.label}: {'the lamp was lit ' * 8}."} for fact in new]
    return {"inferences": so}


@pytest.mark.parametrize("most", [1_200, 6_000])
@pytest.mark.parametrize("system", ["cosmir", "read_through", "chain_of_agents"])
async def test_every_inference_is_in_the_last_prompt_or_it_says_how_much_had_no_room(store, system, most):
    put_texts(store, EMBEDDER, "story", *STORY)
    carried = {"note": " ".join(f"So ends day {number} of the long storm." for number in range(400))}
    window = 768 + 2048 + most if system == "cosmir" else 128_000
    model = script(
        window=max(window, 8_000),
        infer_notes=infer_each,
        update_ledger=infer_each,
        carry_note=lambda _: carried,
    )
    settings = {"cosmir": {"chunk": 300}, "read_through": {"chunk": 300, "context": most}}
    settings["chain_of_agents"] = {"chunk": 3_000, "words": most // 2}
    answer = await ask(assemble(system, Kit(store, model, EMBEDDER), **settings[system]), ASKED)
    (given,) = list_inputs(model, "answer")
    remarks = " ".join(given.notes)
    if system == "chain_of_agents":
        every = all(f"So ends day {number} " in remarks for number in range(400))
        assert every != ("notes a part had no room" in remarks)
        assert "So ends day 399" in remarks, "the end of a note concludes"
        return
    ledger = load_ledger(answer)
    shown = [each for each in ledger.inferences if each.text in remarks]
    facts = [fact for fact in ledger.facts if any(fact.text in piece.text for piece in given.evidence)]
    lost = len(ledger.inferences) + len(ledger.facts) - len(shown) - len(facts)
    if system == "cosmir":
        assert shown == list(ledger.inferences[-len(shown) :]), "the latest stay"
    assert (f"{lost} of what was noted had no room here." in remarks) == bool(lost)
    if system == "read_through":
        assert (most == 1_200) == bool(lost)
        count = Kit(store, model, EMBEDDER).count_tokens
        assert sum(count([*(piece.text for piece in given.evidence), *given.notes])) <= most
        assert list_events(answer, "answered")[0].detail["cut"] == answer.coverage.dropped == lost


# ---------------------------------------------------------------- read_through: the order of calls


async def test_plan_then_mark_and_update_chunk_by_chunk_then_answer(store):
    updated = {
        "inferences": [{"rests_on": ["[f1]", "F9"], "inference": "So it was Ada."}],
        "answered": [1, 7],
        "new": ["Who lit it?", "what is said of LIGHTS?"],
    }
    model = script(update_ledger=[updated, {}])
    answer = await read(store, model, LIVED, LIGHT)
    assert list_roles(model) == ["plan_reading", *["mark_facts", "update_ledger"] * 2, "answer"]
    first, second = list_inputs(model, "mark_facts")
    assert (first.questions, first.nets) == (["Who lived there?"], ["What is said of lights?"])
    assert second.questions == ["Who lit it?", "what is said of LIGHTS?"]
    assert find_texts(second.evidence) == [LIGHT]
    assert [(each.label, each.text) for each in second.known] == [("F1", LIVED)]
    (_, update) = list_inputs(model, "update_ledger")
    assert [(entry.label, entry.is_new, entry.place) for entry in update.facts] == [
        ("F1", False, "story, part 1 of 2"),
        ("F3", True, "story, part 2 of 2"),
    ]
    assert find_texts(update.inferences) == ["So it was Ada."]
    (given,) = list_inputs(model, "answer")
    assert [(piece.kind, piece.text) for piece in given.evidence] == [("passage", f"{LIVED} {LIGHT}")]
    assert given.notes == ["So it was Ada."], "facts stand among the evidence only"
    assert (answer.text, answer.resolved) == ("Ada", True)
    assert load_ledger(answer).settled == ("Who lived there?",)


async def test_a_fact_is_the_sentences_of_its_quotation_and_without_one_it_is_a_note(store):
    facts = [
        {"label": "E7", "quote": "lived  there"},
        {"label": "E1", "quote": "Tom lived there"},
        {"label": "E7", "quote": "ada lived elsewhere"},
    ]
    model = script(mark_facts=[{"facts": facts}])
    answer = await read(store, model, f"It rained. {LIVED} The end.")
    kept = load_ledger(answer).facts
    assert [(fact.text, fact.start, fact.end, bool(fact.passages[0])) for fact in kept] == [
        (LIVED, 11, 27, True),
        ("Tom lived there", 0, 0, True),
        ("ada lived elsewhere", 0, 0, False),
    ]
    (given,) = list_inputs(model, "answer")
    assert [piece.text for piece in given.evidence] == [f"It rained. {LIVED} The end."], "its passage is shown whole"
    assert given.notes == [f"Tom lived there {UNCHECKED}", f"ada lived elsewhere {UNCHECKED}"]
    assert list_events(answer, "extracted")[0].detail["not_found"] == 2


async def test_a_chunk_without_a_new_fact_needs_no_update(store):
    model = script(mark_facts=lambda given: quote_all(given) if "Ada" in given.evidence[0].text else {})
    await read(store, model, LIVED, RAINED)
    assert list_roles(model).count("update_ledger") == 1


async def test_known_facts_are_named_by_their_first_words_and_new_ones_in_full(store):
    long = f"Ada lit {'one more lamp and ' * 20}slept."
    model = script()
    await read(store, model, long, RAINED, chunk=90)
    old, new = list_inputs(model, "update_ledger")[1].facts
    assert (len(old.text), new.text) == (len("Ada lit one more lamp and one more lamp and one more …"), RAINED)
    assert list_inputs(model, "update_ledger")[0].facts[0].text == long


async def test_what_is_overtaken_leaves_and_the_last_prompt_says_what_took_its_place(store):
    updates = [
        {"inferences": [{"rests_on": [1], "inference": "Probably Tom lit it."}]},
        {"inferences": [{"rests_on": [1, 3], "inference": "So Eve lit it.", "replaces": ["I2"]}]},
        {"inferences": [{"rests_on": ["F5"], "inference": "It has twelve wicks.", "replaces": ["I4", "F1", "F77"]}]},
    ]
    model = script(update_ledger=updates)
    answer = await read(store, model, "The lamp has nine wicks.", "Eve lit it.", "It has twelve wicks now.")
    last = list_inputs(model, "update_ledger")[2]
    assert find_texts(last.inferences) == ["So Eve lit it."]
    (note,) = list_inputs(model, "answer")[0].notes
    assert note.startswith(
        "It has twelve wicks. (in place of: So Eve lit it.; Probably Tom lit it.; The lamp has nine wicks.)"
    )
    ledger = load_ledger(answer)
    assert [each.replaced_by for each in ledger.inferences] == ["I4", "I6", ""]
    assert [fact.replaced_by for fact in ledger.facts] == ["I6", "", ""]
    (row, *_) = [each for each in list_events(answer, "ledger updated")[-1].detail["pool"] if each["kind"] == "fact"]
    assert row["replaced_by"] == "I6"


# ---------------------------------------------------------------- read_through: what the answering role sees


async def test_passages_of_facts_come_first_then_their_neighbours_then_what_is_found(store):
    texts = ["Ada kept the light.", "She slept.", *["It snowed."] * 3, "The light was bright, the light was kept."]
    shown = {}
    put_texts(store, EMBEDDER, "story", *texts)
    for context in (18, 24, 60):
        model = script(mark_facts=[quote_first("Ada kept the light.")])
        await read(store, model, chunk=1000, context=context)
        shown[context] = find_texts(list_inputs(model, "answer")[0].evidence)
    assert (shown[18], shown[24]) == (texts[:1], [" ".join(texts[:2])])
    assert [shown[60][0], shown[60][1].endswith(texts[-1])] == [" ".join(texts[:2]), True]


async def test_passages_on_which_inferences_rest_come_first_then_those_with_most_facts_then_the_latest(store):
    """As far as the words of the other facts leave room for whole passages."""
    first = [f"Lamp {number} was lit." for number in range(4)]
    texts = [f"{lit} {' '.join(f'The wind rose over the sea {n} times.' for n in range(6))}" for lit in first]
    facts = [{"label": f"E{number}", "quote": text} for number, text in enumerate(first, 1)]
    facts.insert(2, {"label": "E2", "quote": "The wind rose over the sea 4 times."})
    put_texts(store, EMBEDDER, "story", *texts)
    wholes = []
    for context in range(60, 320, 10):
        updated = {"inferences": [{"rests_on": [1], "inference": "So one."}]}
        model = script(mark_facts=[{"facts": facts}], update_ledger=[updated])
        await read(store, model, chunk=1000, context=context)
        (given,) = list_inputs(model, "answer")
        shown = " ".join(find_texts(given.evidence))
        wholes.append([number for number, text in enumerate(texts) if text in shown])
        assert all(text in shown for text in first) == (not any("had no room" in note for note in given.notes))
    steps = [*dict.fromkeys(tuple(each) for each in wholes if 0 in each)]
    assert steps == [(0,), (0, 1), (0, 1, 3), (0, 1, 2, 3)]


async def test_all_entries_of_a_register_reach_the_last_prompt_where_it_holds_them(store):
    """300 entries among other lines, and a reader that replies with as many facts as a reply may have."""
    entries = [f"Tender {number} was awarded to the firm of yard {number}." for number in range(300)]
    texts = [f"{entry} {'Nothing else was said of it. ' * 4}".strip() for entry in entries]

    def mark_most(given):
        facts = [(piece.label, line) for piece in given.evidence for line in [f"{piece.text.split('.')[0]}."]]
        start = next((n for n, (_, line) in enumerate(facts, 1) if line == given.after), 0)
        return {"facts": [{"label": label, "quote": line} for label, line in facts[start:]][: given.limit]}

    question = Question(text="List all tenders that were awarded.", form="list", force=True)
    model = script(mark_facts=mark_most)
    answer = await read(store, model, *texts, question=question, chunk=8_000, context=12_000)
    (given,) = list_inputs(model, "answer")
    shown = " ".join(find_texts(given.evidence))
    assert [entry for entry in entries if entry not in shown] == []
    assert (given.notes, answer.coverage.dropped) == ([], 0)
    assert list_roles(model).count("mark_facts") <= 300 // 40 + 3
    model = script(mark_facts=mark_most)
    answer = await read(store, model, question=question, chunk=8_000, context=3_000)
    (given,) = list_inputs(model, "answer")
    shown = " ".join(find_texts(given.evidence))
    lost = sum(entry not in shown for entry in entries)
    assert given.notes == [f"{lost} of what was noted had no room here."]
    assert 0 < lost < 300
    assert answer.coverage.dropped == lost
    assert f"{lost} pieces of what was found had no room in the prompt." in answer.remarks


# ---------------------------------------------------------------- a reply that is full


@pytest.mark.parametrize(("read_with", "role"), [(read, "mark_facts"), (read_once, "extract_notes")])
async def test_a_reply_that_is_full_is_continued_behind_its_last_fact(store, read_with, role):
    texts = [f"Lamp {number} was lit." for number in range(100)]

    def mark(given):
        facts = [{"label": piece.label, "quote": piece.text, "fact": piece.text} for piece in given.evidence]
        return {"facts": facts[bool(given.after) :][: given.limit]}

    model = script(**{role: mark})
    answer = await read_with(store, model, *texts, chunk=10_000)
    given = list_inputs(model, role)
    assert [(each.after, len(each.evidence)) for each in given] == [("", 100), (texts[39], 61), (texts[79], 21)]
    assert list_facts(answer) == texts
    assert (len(list_events(answer, "extracted")), answer.missing) == (1, "")


@pytest.mark.parametrize("then", [BAD, "the same"], ids=["fails", "repeats itself"])
async def test_what_is_behind_the_last_fact_is_not_read_if_nothing_more_comes(store, then):
    texts = [f"Lamp {number} was lit." for number in range(60)]

    def mark(given):
        if given.after and then is BAD:
            return BAD
        return {"facts": [{"label": "E1", "quote": text} for text in texts[:40]]}

    model = script(mark_facts=mark)
    answer = await read(store, model, *texts, chunk=10_000)
    assert list_facts(answer) == texts[:40]
    assert answer.missing == "not read: story, parts 40 to 60 of 60"
    assert "could not be read: story, parts 40 to 60 of 60" in list_inputs(model, "answer")[0].notes[0]


# ---------------------------------------------------------------- the end of the reading

SETTLED = {"answered": [1], "settled": True}


@pytest.mark.parametrize(
    ("plan", "question", "settings", "update", "read_chunks"),
    [
        ({}, ASKED, {}, SETTLED, 1),
        ({}, ASKED, {}, {"settled": True}, 4),  # a question is open
        ({}, ASKED, {}, {"answered": [1]}, 4),
        ({"needs_all": True}, ASKED, {}, SETTLED, 4),
        ({}, Question(text="Which?", form="list", force=True), {}, SETTLED, 4),
        ({}, ASKED, {"to_end": True}, SETTLED, 4),
        ({}, ASKED, {"wave": 3, "by_relevance": True}, SETTLED, 3),
    ],
)
async def test_the_reading_ends_once_the_question_is_settled(store, plan, question, settings, update, read_chunks):
    planned = {"questions": ["Who lived there?"], "needs_all": False, **plan}
    model = script(plan_reading=lambda _: planned, update_ledger=lambda _: update)
    answer = await read(store, model, LIVED, *["It rained on the sea."] * 3, question=question, **settings)
    assert len(list_inputs(model, "mark_facts")) == read_chunks
    left = 4 - read_chunks
    remarks = " ".join(list_inputs(model, "answer")[0].notes)
    assert ("The reading ended early" in remarks) == bool(left) == bool(answer.coverage.unread)
    if left:
        assert answer.coverage.unread[0].count == left
        assert list_events(answer, "stopped")


# ---------------------------------------------------------------- questions and their places


async def test_nets_stand_beside_the_questions_and_what_has_no_place_is_reported(store):
    asked, nets = [f"Q{n}?" for n in range(5)], [f"N{n}?" for n in range(3)]
    model = script(
        plan_reading=lambda _: {"questions": asked, "nets": nets},
        update_ledger=[{"answered": [1, 6], "new": [f"R{n}?" for n in range(9)]}, {}],
    )
    answer = await read(store, model, LIVED, RAINED)
    (plan,) = list_inputs(model, "plan_reading")
    assert (plan.limit, plan.nets) == (5, 4)
    _, second = list_inputs(model, "mark_facts")
    assert list_inputs(model, "update_ledger")[0].limit == 10
    assert second.questions == [*asked[1:5], *(f"R{n}?" for n in range(6))], "an answered question gives up its place"
    assert second.nets == nets[1:], "number 6 is the first net"
    assert list_reasons(answer)[0] == "no place is left for the question 'R6?' (places: 10)"


async def test_a_question_that_was_settled_is_not_asked_again(store):
    model = script(update_ledger=[{"answered": [1]}, {"new": ["who lived THERE"]}, {}])
    await read(store, model, LIVED, RAINED, "It snowed.")
    assert list_inputs(model, "mark_facts")[2].questions == []


# ---------------------------------------------------------------- what fails


@pytest.mark.parametrize(
    ("read_with", "role", "calls"),
    [
        (read, "plan_reading", 1),
        (read, "update_ledger", 2),
        (read_once, "infer_notes", 2),
        (read_once, "refine_questions", 2),
    ],
)
async def test_a_step_whose_reply_cannot_be_used_is_skipped_and_reported(store, read_with, role, calls):
    settings = {"share": 1.0} if read_with is read_once else {}
    answer = await read_with(store, script(**{role: lambda _: BAD}), LIVED, RAINED, chunk=20, **settings)
    assert (answer.text, answer.missing) == ("Ada", "")
    assert list_reasons(answer) == ["no JSON"] * calls
    assert len(list_facts(answer)) == 2


@READERS
async def test_a_chunk_whose_call_fails_is_named_in_the_answer(store, read_with, role):
    def fail_in_the_rain(given):
        return BAD if "rained" in given.evidence[0].text else {"facts": [], "note": "so"}

    model = script(**{role: fail_in_the_rain})
    settings = {"context": 0} if read_with is read else {}
    answer = await read_with(store, model, LIVED, RAINED, "The end.", chunk=20, **settings)
    assert answer.missing == "not read: story, part 2 of 3"
    assert answer.coverage.read == 2
    assert list_inputs(model, "answer")[0].notes[0] == "This part of the text could not be read: story, part 2 of 3."
    assert [event.detail["chunk"] for event in list_events(answer, "unread")] == ["story, part 2 of 3"]
    assert list_events(answer, "skipped")


@READERS
async def test_where_no_chunk_could_be_read_or_has_room_nobody_is_asked_to_answer(store, read_with, role):
    model = script(**{role: [BAD]})
    with pytest.raises(BadReply, match="no JSON"):
        await read_with(store, model, LIVED)
    assert not list_inputs(model, "answer")
    model = script(window=2_000)
    with pytest.raises(UsageError, match="takes 2,000 tokens, too few"):
        await read_with(store, model)
    assert not model.calls


async def test_a_model_that_is_away_ends_the_reading_and_what_was_read_is_not_asked_again(store):
    texts = [f"On day {n} it rained." for n in range(6)]

    def stop(given):
        return ModelUnavailable("away") if "day 3" in given.evidence[0].text else quote_all(given)

    broken, whole = script(mark_facts=stop), script()
    with pytest.raises(ModelUnavailable):
        await read(store, Wrapped(broken, Cache(Prompts(), store.calls)), *texts)
    answer = await read(store, Wrapped(whole, Cache(Prompts(), store.calls)))
    done = len(broken.calls) - 1
    assert done == 1 + 2 * 3
    assert len(whole.calls) == 1 + 2 * 6 + 1 - done
    assert answer.cost.calls == len(whole.calls)


# ---------------------------------------------------------------- texts


async def test_a_text_of_one_chunk_and_of_none(store):
    model = script()
    nothing = await read(store, model)
    assert (nothing.resolved, nothing.missing, model.calls) == (False, "no text to read was found", [])
    await read(store, model, LIVED, RAINED, chunk=1000)
    assert [len(given.evidence) for given in list_inputs(model, "mark_facts")] == [2]


async def test_neighbouring_documents_share_a_chunk_each_under_its_own_heading(store):
    for name, texts in {"a": (LIVED, LIGHT), "b": (RAINED,), "c": (LIVED,)}.items():
        put_texts(store, EMBEDDER, name, *texts)
    facts = [{"label": "E4", "quote": LIVED}, {"label": "E3", "quote": f"{RAINED} {LIVED}"}]
    model = script(mark_facts=[{"facts": facts}])
    answer = await read(store, model, chunk=1000, context=20)
    (given,) = list_inputs(model, "mark_facts")
    shown = [(piece.document, piece.text) for piece in given.evidence]
    assert shown == [("a", LIVED), ("a", LIGHT), ("b", RAINED), ("c", LIVED)]
    assert list_events(answer, "extracted")[0].detail["chunk"] == "a, parts 1 to 2 of 2 to c (3 documents)"
    own, joined = load_ledger(answer).facts
    (passage,) = store.passages(documents=["c"]).values()
    assert [piece.sources for piece in answer.evidence] == [own.passages] == [(passage.id,)]
    assert not joined.end, "no words are cited across two documents"


async def test_only_documents_in_the_scope_are_read(store):
    put_texts(store, EMBEDDER, "b", RAINED)
    model = script()
    await read(store, model, LIVED, question=Question(text="Who?", within=Scope(documents=frozenset({"b"}))))
    assert list_read(model) == [RAINED]


async def test_order_by_relevance_reads_the_best_chunk_first(store):
    model = script()
    await read(store, model, RAINED, "It snowed.", "Ada kept the light.", "The light was kept.", by_relevance=True)
    assert {*list_read(model)[:2]} == {"Ada kept the light.", "The light was kept."}
    assert list_read(model)[2:] == [RAINED, "It snowed."], "what is not found stays in document order"


@pytest.mark.parametrize(("read_with", "role"), [(read, "update_ledger"), (read_once, "infer_notes")])
async def test_a_ledger_that_exceeds_the_window_shows_what_fits_the_latest_first(store, read_with, role):
    model = script(window=9_000)
    texts = [f"On day {n} it rained {'and rained ' * 30}." for n in range(100)]
    settings = {"share": 1.0} if read_with is read_once else {"context": 9_000}
    answer = await read_with(store, model, *texts, chunk=4_000, **settings)
    (given,) = list_inputs(model, "answer")
    assert 0 < len(given.evidence) < 100
    assert model.window >= model.count_input_tokens(None, given) + 768
    assert answer.coverage.dropped > 0
    last = list_inputs(model, role)[-1]
    assert last.facts[-1].text.startswith("On day 99 ")
    remarks = any("had no room in a call" in each for each in list_reasons(answer))
    assert remarks == (read_with is read and len(last.facts) < 100), "what COSMIR forgets is counted at the end"


# ---------------------------------------------------------------- waves and recovery


async def test_waves_of_8_read_32_chunks_in_a_fifth_of_the_depth_with_fewer_calls(store):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained." for n in range(32)))
    alone, together = [(await read(store, script(latency=0.005), wave=wave)).cost for wave in (1, 8)]
    assert (alone.depth, alone.calls) == (2 + 2 * 32, 2 + 2 * 32)
    assert together.depth <= 0.2 * alone.depth
    assert together.calls == 2 + 32 + 4


async def test_recovery_finds_what_was_missed_and_reads_little_again(store):
    planted = {7 + 10 * n: f"The keeper {word} hid the brass key of day {n}." for n, word in enumerate("abcdefghij")}
    texts = [planted.get(n, f"On day {n} it rained over the fields and nobody came by at all.") for n in range(100)]
    model = script(
        mark_facts=at_second_sight(quote_all, lambda _: {}),
        plan_reading=lambda _: {"questions": ["Which keeper hid the brass key?"]},
    )
    answer = await read(store, model, *texts, chunk=600, recovery=0.2)
    assert [fact.replaced_by for fact in load_ledger(answer).facts].count("") >= 0.8 * len(planted)
    shown = " ".join(find_texts(list_inputs(model, "answer")[0].evidence))
    assert sum(text in shown for text in planted.values()) >= 0.8 * len(planted)
    (recovered,), (divided,) = list_events(answer, "recovered"), list_events(answer, "divided")
    assert 0 < recovered.detail["tokens"] <= 0.2 * divided.detail["tokens"]


@pytest.mark.parametrize(
    ("chunks", "settings", "calls"),
    [
        (1, {"recovery": 0.2}, 4),
        (4, {"recovery": 0.0}, 2 + 2 * 4),
        (10, {"recovery": 0.2}, 2 + 2 * 10 + 2 * 2),
        (10, {"recovery": 0.2, "wave": 4}, 2 + 10 + 3 + 2 + 1),
    ],
)
async def test_the_calls_are_known_before(store, chunks, settings, calls):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained there." for n in range(chunks)))
    seen = set()

    def note_second_reading(given):
        """Facts that no search excludes: what was read first has no passage."""
        new = [piece.text for piece in given.evidence if piece.text not in seen]
        seen.update(new)
        return {"facts": [{"label": "", "quote": f"{text} again"} for text in new]} if new else quote_all(given)

    asks = {"questions": ["On which day did it rain?"]}
    system = wire(store, script(mark_facts=note_second_reading, plan_reading=lambda _: asks), **settings)
    assert await estimate_calls(system.loop) == calls
    assert (await answer_question(system, ASKED)).cost.calls == calls


async def test_recovery_ends_once_no_question_is_open(store):
    model = script(
        plan_reading=lambda _: {"questions": ["Where did the key hang?"]},
        mark_facts=at_second_sight(lambda given: quote_first(given.evidence[0].text), lambda _: {}),
        update_ledger=lambda _: {"answered": [1]},
    )
    texts = [f"The key of day {n} hung by the door of the keeper." for n in range(12)]
    answer = await read(store, model, *texts, chunk=40, recovery=1.0)
    (divided,) = list_events(answer, "divided")
    given = list_inputs(model, "mark_facts")
    assert len(given) == divided.detail["chunks"] + 1, "one chunk is read again, and it settles the question"
    assert all(each.questions for each in given)


async def test_what_fails_when_it_is_read_again_was_read_before(store):
    model = script(mark_facts=at_second_sight(lambda _: BAD, lambda _: quote_first("Tom lived there.")))
    answer = await read(store, model, LIVED, "Who lived there is unknown.", recovery=1.0)
    assert (answer.text, answer.missing) == ("Ada", "")
    assert list_events(answer, "unread"), "the trace has the call that failed"
    assert {*list_facts(answer)} == {"Tom lived there."}


async def test_what_was_not_read_is_not_named_once_it_is_read_again(store):
    plain = at_second_sight(quote_all, lambda given: BAD if LIVED in given.evidence[0].text else quote_all(given))
    model = script(mark_facts=plain)
    answer = await read(store, model, LIVED, RAINED, "It snowed.", recovery=1.0)
    assert list_read(model) == [LIVED, RAINED, "It snowed.", LIVED]
    assert answer.missing == ""
    assert not any("could not be read" in note for note in list_inputs(model, "answer")[0].notes)
    assert LIVED in list_facts(answer)


async def test_a_fact_that_was_overtaken_is_not_counted_as_lost(store):
    old, new = f"The lamp has nine wicks, as {'the clerk of the harbour wrote, and as ' * 6}it seems.", "It has ten."
    update = {"inferences": [{"rests_on": ["F2"], "inference": "It has ten wicks.", "replaces": ["F1"]}]}
    model = script(mark_facts=[quote_first(old), quote_first(new)], update_ledger=[{}, update])
    answer = await read(store, model, old, new, chunk=90, context=90)
    (given,) = list_inputs(model, "answer")
    assert find_texts(given.evidence) == [new]
    assert (len(given.notes), answer.coverage.dropped) == (1, 0)


async def test_recovery_searches_within_the_scope_and_skips_what_is_cited(store):
    search, unknown = Search(store), "Who lived there is unknown."
    model = script(mark_facts=[{}, quote_first(unknown), {}, {}])
    question = Question(text="Who lived there?", force=True, within=Scope())
    await read(store, model, LIVED, unknown, RAINED, question=question, search=search, recovery=1.0)
    assert search.scopes == [question.within] * 2, "one for the open question, which is that of the last prompt too"
    assert list_read(model)[3:] == [LIVED]


# ---------------------------------------------------------------- what fits into a window


@READERS
async def test_a_window_that_is_too_small_is_refused_with_what_is_needed(store, read_with, role):
    put_texts(store, EMBEDDER, "story", LIVED)
    pattern = r"openai:test takes 2,500 tokens, .* needs ([\d,]+): .* set `window`"

    async def estimate(window):
        model = ChatModel("openai:test", window=window)
        name = {read: "read_through", read_once: "cosmir", hand_on: "chain_of_agents"}[read_with]
        return await estimate_calls(assemble(name, Kit(store, model, EMBEDDER)).loop)

    with pytest.raises(UsageError, match=pattern) as error:
        await estimate(2_500)
    needed = int(re.search(r"needs ([\d,]+)", str(error.value))[1].replace(",", ""))
    assert await estimate(needed) > 1
    with pytest.raises(UsageError, match="too few"):
        await estimate(needed - 10)


# ---------------------------------------------------------------- Chain of Agents


async def test_each_reader_gets_the_note_of_the_one_before(store):
    model = script()
    answer = await hand_on(store, model, "One.", "Two.", "Six.", chunk=15, words=50)
    given = [(each.note, each.words) for each in list_inputs(model, "carry_note")]
    assert given == [("", 50), ("One.", 50), ("One. Two.", 50)]
    (last,) = list_inputs(model, "answer")
    assert (last.evidence, last.notes) == ([], ["One. Two. Six."])
    assert answer.cost.depth == 4


async def test_a_note_that_lost_a_part_is_counted_and_told(store):
    long = " ".join(f"Lamp {number} was lit." for number in range(60))
    model = script(carry_note=[{"note": long}, {"note": "So.", "unfinished": "too long"}, {"note": "Ada did."}])
    answer = await hand_on(store, model, "One.", "Two.", "Six.", chunk=15, words=50)
    _, second, _ = list_inputs(model, "carry_note")
    assert second.note.endswith("was lit. … Lamp 59 was lit.")
    assert long.startswith(second.note.removesuffix(" … Lamp 59 was lit."))
    assert list_inputs(model, "answer")[0].notes == [
        "Of 2 readers' notes a part had no room.",
        "Ada did.",
    ]
    assert answer.coverage.dropped == 2


GARDEN = "In the garden a pale young gentleman asked Pip to fight."
JOURNEY = "Pip went to London by coach with a heavy heart."
REVEALED = "Herbert Pocket cried that he was that pale young gentleman."
WHO = Question(text="Where had Pip met Herbert Pocket before London?", force=True)


@pytest.mark.parametrize("settings", [{}, {"wave": 2, "recovery": 0.5}, {"by_relevance": True}])
async def test_the_extractive_model_reads_a_text_to_its_end(store, settings):
    put_texts(store, EMBEDDER, "story", GARDEN, JOURNEY, REVEALED, "The clerk slept.")
    model = ExtractiveModel(EMBEDDER)
    answer = await check_loop(wire(store, model, **settings).loop, WHO)
    assert {GARDEN, REVEALED} <= {piece.text for piece in answer.evidence}
    for system in ("chain_of_agents", "cosmir"):
        await check_loop(assemble(system, Kit(store, model, EMBEDDER), chunk=20).loop, WHO)
