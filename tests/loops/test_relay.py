"""Reading in order: what each role is given, what survives in the ledger, and what happens when a call fails."""

from __future__ import annotations

import random
import re

import pytest
from tests.loops.doubles import list_inputs, list_roles, make_desk
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, ModelUnavailable, UsageError
from tomewise.language.cached import Cache
from tomewise.language.chat import ChatModel
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.language.wrapped import Wrapped
from tomewise.loops.chunking import Chunking
from tomewise.loops.ledger_notes import Cycle, LedgerReading
from tomewise.loops.notes import NoteReading
from tomewise.loops.relay import LedgerRelay
from tomewise.recall.flat import Lexical
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.kit import Kit, System
from tomewise.systems.registry import assemble
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Question, Scope
from tomewise.working.ledger import load

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


def quote_all(given):
    """Every passage is a fact in its own words."""
    return {"facts": [{"label": piece.label, "quote": piece.text, "fact": piece.text} for piece in given.evidence]}


def quote_first(text, fact=""):
    return {"facts": [{"label": "E1", "quote": text, "fact": fact}]}


def script(latency=0.0, window=128_000, **replies):
    plain = {
        "plan_reading": lambda _: {"questions": ["Who lived there?"], "nets": ["What is said of lights?"]},
        "extract_notes": quote_all,
        "infer_notes": lambda _: {},
        "refine_questions": lambda _: {},
        "carry_note": lambda given: {"note": f"{given.note} {given.evidence[0].text}".strip()},
        "answer": lambda _: {"answer": "Ada"},
    }
    return ScriptedModel({**plain, **replies}, latency=latency, window=window)


def wire(store, model, chunk=20, search=None, order="document", context=0, **cycle):
    """`read_through` around a search by words. Of `put_texts` every passage is a chunk, as 20 tokens hold one."""
    search, desk = search or Search(store), Kit(store, model, EMBEDDER).fusing_desk
    chunking = Chunking(desk, size=chunk, order=order, recall=search)
    reading = LedgerReading(desk, chunking, Cycle(**{"published": False, "questions": 10, **cycle}))
    return System(loop=LedgerRelay(desk, chunking, reading, context))


async def read(store, model, *texts, question=ASKED, **settings):
    """The answer of `read_through` to a question about a story of these texts."""
    if texts:
        put_texts(store, EMBEDDER, "story", *texts)
    return await answer_question(wire(store, model, **settings), question)


async def hand_on(store, model, *texts, question=ASKED, **settings):
    """The answer of a chain of agents."""
    if texts:
        put_texts(store, EMBEDDER, "story", *texts)
    return await answer_question(assemble("chain_of_agents", Kit(store, model, EMBEDDER), **settings), question)


async def read_once(store, model, *texts, question=ASKED, **settings):
    """The answer of `cosmir`."""
    if texts:
        put_texts(store, EMBEDDER, "story", *texts)
    return await answer_question(assemble("cosmir", Kit(store, model, EMBEDDER), **settings), question)


READERS = pytest.mark.parametrize(
    ("read_with", "role"),
    [(read, "extract_notes"), (read_once, "extract_notes"), (hand_on, "carry_note")],
    ids=["read_through", "cosmir", "chain_of_agents"],
)


def list_events(answer, name):
    return [event for event in answer.events if event.name == name]


def list_reasons(answer):
    return [event.detail["reason"] for event in list_events(answer, "skipped")]


def load_ledger(answer):
    ledger = load(list_events(answer, "answered")[-1].detail["ledger"])
    assert ledger.answer == answer.text
    return ledger


def list_facts(answer):
    return [fact.text for fact in load_ledger(answer).facts]


def find_texts(evidence):
    return [piece.text for piece in evidence]


def list_read(model):
    """The first passage of each chunk that was read."""
    return [given.evidence[0].text for given in list_inputs(model, "extract_notes")]


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
    assert await system.loop.estimate_calls(ASKED) == len(calls) == 2 + 3 * len(chunks)
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


# ---------------------------------------------------------------- read_through: the order of calls


async def test_plan_then_extract_infer_and_refine_chunk_by_chunk_then_answer(store):
    drawn = {"inferences": [{"rests_on": ["[f1]", "F9"], "inference": "So it was Ada."}]}
    refined = {"answered": [1, 7], "new": ["Who lit it?", "what is said of LIGHTS?"]}
    model = script(infer_notes=[drawn, {}], refine_questions=[refined])
    answer = await read(store, model, LIVED, LIGHT)
    steps = ["extract_notes", "infer_notes"]
    assert list_roles(model) == ["plan_reading", *steps, "refine_questions", *steps, "answer"]
    first, second = list_inputs(model, "extract_notes")
    assert (first.questions, first.nets) == (["Who lived there?"], ["What is said of lights?"])
    assert second.questions == ["Who lit it?", "what is said of LIGHTS?"]
    assert find_texts(second.evidence) == [LIGHT]
    assert [(entry.label, entry.is_new, entry.place) for entry in list_inputs(model, "infer_notes")[1].facts] == [
        ("F1", False, "story, part 1 of 2"),
        ("F3", True, "story, part 2 of 2"),
    ]
    assert find_texts(list_inputs(model, "refine_questions")[0].inferences) == ["So it was Ada."]
    (given,) = list_inputs(model, "answer")
    assert [(piece.kind, piece.text) for piece in given.evidence] == [("passage", LIVED), ("passage", LIGHT)]
    assert given.notes == ["So it was Ada. (follows from E1)"], "facts stand among the evidence only"
    assert (answer.text, answer.resolved) == ("Ada", True)
    assert load_ledger(answer).settled == ("Who lived there?",)


async def test_only_what_was_written_down_reaches_the_answering_role(store):
    reply = {"answer": "Ada", "quotes": [{"label": "E1", "quote": "Ada lived"}, {"label": "E1", "quote": "It rained"}]}
    model = script(extract_notes=[quote_first(LIVED, "Ada lived in the tower.")], answer=[reply])
    answer = await read(store, model, f"{LIVED} {RAINED}")
    (given,) = list_inputs(model, "answer")
    assert find_texts(given.evidence) == [f"{LIVED} (a reader's note, not to be quoted: Ada lived in the tower.)"]
    assert given.notes == []
    assert [(cited.start, cited.text) for cited in answer.quotes][:1] == [(0, "Ada lived")]


async def test_a_quote_that_is_not_in_the_text_is_marked(store):
    facts = [
        {"label": "E1", "quote": "Tom lived there", "fact": "Tom lived there."},
        {"label": "E7", "quote": "ada lived elsewhere"},
        {"label": "E7", "quote": "lived there"},
    ]
    model = script(extract_notes=[{"facts": facts}])
    answer = await read(store, model, LIVED)
    kept = load_ledger(answer).facts
    assert [(fact.in_text, bool(fact.passage)) for fact in kept] == [(False, True), (False, False), (True, True)]
    notes = list_inputs(model, "answer")[0].notes
    assert notes == [f"Tom lived there. {UNCHECKED}", f"ada lived elsewhere {UNCHECKED}"]
    assert list_events(answer, "extracted")[0].detail["not_found"] == 2


async def test_a_chunk_without_a_new_fact_needs_neither_inference_nor_refinement(store):
    model = script(extract_notes=lambda given: quote_all(given) if "Ada" in given.evidence[0].text else {})
    await read(store, model, LIVED, RAINED)
    assert [list_roles(model).count(role) for role in ("infer_notes", "refine_questions")] == [1, 1]


async def test_passages_fill_what_the_ledger_leaves_and_repeat_no_fact(store):
    texts = ["Ada kept the light.", "The light was bright.", "She slept.", "It rained over the bay for a week."]
    drawn = {"inferences": [{"rests_on": ["F1"], "inference": "So she was on the island."}]}
    model = script(extract_notes=[quote_first("Ada kept the light.", "Ada was the keeper.")], infer_notes=[drawn])
    answer = await read(store, model, *texts, chunk=1000, context=76)
    (given,) = list_inputs(model, "answer")
    assert find_texts(given.evidence) == [
        "Ada kept the light. (a reader's note, not to be quoted: Ada was the keeper.)",
        "The light was bright. She slept.",
    ]
    assert given.notes == ["So she was on the island. (follows from E1)"]
    assert (given.evidence[1].place, len(answer.evidence)) == ("parts 2 to 3 of 4", 3)
    assert list_events(answer, "answered")[0].detail["cut"] == 0, "what has no room was not written down"


async def test_a_quotation_that_overlaps_another_one_is_shown_once(store):
    facts = [
        {"label": "E1", "quote": "the light of Skerry until the war began", "fact": "That ended with the war."},
        {"label": "E1", "quote": "Ada kept the light of Skerry", "fact": "Ada kept a light."},
    ]
    model = script(extract_notes=[{"facts": facts}])
    await read(store, model, "Ada kept the light of Skerry until the war began.")
    assert find_texts(list_inputs(model, "answer")[0].evidence) == [
        "Ada kept the light of Skerry until the war began (a reader's note, not to be quoted: Ada kept a light.) "
        "(a reader's note, not to be quoted: That ended with the war.)"
    ]


# ---------------------------------------------------------------- what the ledger keeps

GARDEN = "In the garden a pale young gentleman asked Pip to fight."
JOURNEY = "Pip went to London by coach with a heavy heart."
REVEALED = "Herbert Pocket cried that he was that pale young gentleman."
WHO = Question(text="Where had Pip met Herbert Pocket before London?", force=True)


def join_descriptions(given):
    alike = [entry.label for entry in given.facts if "pale young gentleman" in entry.text]
    inference = {"rests_on": alike, "inference": "Pip had met Herbert Pocket in the garden."}
    return {"inferences": [inference]} if len(alike) > 1 else {}


LATER = [f"On the quay the old convict gave Pip gold watch number {number}." for number in range(3)]


@pytest.mark.parametrize(
    ("texts", "memory", "kept"),
    [
        ([GARDEN, REVEALED, *LATER], 44, [GARDEN, REVEALED, LATER[-1]]),  # room for three: the grounds stay
        ([GARDEN, REVEALED], 18, [REVEALED]),  # room for one: the inference survives its facts
    ],
)
async def test_the_grounds_of_an_inference_can_be_cited_whatever_the_ledger_forgets(store, texts, memory, kept):
    model = script(infer_notes=join_descriptions)
    answer = await read(store, model, *texts, question=WHO, memory=memory)
    assert list_facts(answer) == kept
    assert [fact.text for fact in load_ledger(answer).inferences[0].grounds] == [GARDEN, REVEALED]
    assert {GARDEN, REVEALED} <= {*find_texts(list_inputs(model, "answer")[0].evidence)}


# ---------------------------------------------------------------- questions and their places


async def test_nets_have_places_of_their_own_and_the_plan_leaves_room(store):
    asked, nets = [f"Q{n}?" for n in range(7)], [f"N{n}?" for n in range(5)]
    model = script(
        plan_reading=lambda _: {"questions": asked, "nets": nets},
        refine_questions=[{"answered": [1, 6], "new": [f"R{n}?" for n in range(9)]}],
    )
    answer = await read(store, model, LIVED, RAINED)
    (plan,) = list_inputs(model, "plan_reading")
    assert (plan.limit, plan.nets) == (5, 4)
    first, second = list_inputs(model, "extract_notes")
    assert (first.questions, first.nets) == (asked[:5], nets[:4])
    assert list_inputs(model, "refine_questions")[0].limit == 10
    assert second.questions == [*asked[1:5], *(f"R{n}?" for n in range(6))], "an answered question gives up its place"
    assert second.nets == nets[1:4], "number 6 is the first net"
    assert list_reasons(answer)[0] == "no place is left for the question 'Q5?' (places: 5)"


async def test_a_question_that_was_settled_is_not_asked_again(store):
    model = script(refine_questions=[{"answered": [1]}, {"new": ["who lived THERE"]}])
    await read(store, model, LIVED, RAINED, "It snowed.")
    assert list_inputs(model, "extract_notes")[2].questions == []


# ---------------------------------------------------------------- what fails


@pytest.mark.parametrize(("role", "calls"), [("plan_reading", 1), ("infer_notes", 2), ("refine_questions", 1)])
async def test_a_step_whose_reply_cannot_be_used_is_skipped_and_reported(store, role, calls):
    answer = await read(store, script(**{role: lambda _: BAD}), LIVED, RAINED)
    assert (answer.text, answer.missing) == ("Ada", "")
    assert list_reasons(answer) == ["no JSON"] * calls
    assert len(list_facts(answer)) == 2


@READERS
async def test_a_chunk_whose_call_fails_is_named_in_the_answer(store, read_with, role):
    def fail_in_the_rain(given):
        return BAD if "rained" in given.evidence[0].text else {"facts": [], "note": "so"}

    model = script(**{role: fail_in_the_rain})
    answer = await read_with(store, model, LIVED, RAINED, "The end.", chunk=20)
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

    broken, whole = script(extract_notes=stop), script()
    with pytest.raises(ModelUnavailable):
        await read(store, Wrapped(broken, Cache(Prompts(), store.calls)), *texts)
    answer = await read(store, Wrapped(whole, Cache(Prompts(), store.calls)))
    done = len(broken.calls) - 1
    assert done == 1 + 3 * 3
    assert len(whole.calls) == 3 * 6 + 1 - done
    assert answer.cost.calls == len(whole.calls)


# ---------------------------------------------------------------- texts


async def test_a_text_of_one_chunk_and_of_none(store):
    model = script()
    nothing = await read(store, model)
    assert (nothing.resolved, nothing.missing, model.calls) == (False, "no text to read was found", [])
    await read(store, model, LIVED, RAINED, chunk=1000)
    assert [len(given.evidence) for given in list_inputs(model, "extract_notes")] == [2]


async def test_neighbouring_documents_share_a_chunk_each_under_its_own_heading(store):
    for name, texts in {"a": (LIVED, LIGHT), "b": (RAINED,), "c": (LIVED,)}.items():
        put_texts(store, EMBEDDER, name, *texts)
    facts = [{"label": "E4", "quote": LIVED}, {"label": "E3", "quote": f"{RAINED} {LIVED}"}]
    model = script(extract_notes=[{"facts": facts}])
    answer = await read(store, model, chunk=1000)
    (given,) = list_inputs(model, "extract_notes")
    shown = [(piece.document, piece.text) for piece in given.evidence]
    assert shown == [("a", LIVED), ("a", LIGHT), ("b", RAINED), ("c", LIVED)]
    assert list_events(answer, "extracted")[0].detail["chunk"] == "a, parts 1 to 2 of 2 to c (3 documents)"
    own, joined = load_ledger(answer).facts
    (passage,) = store.passages(documents=["c"]).values()
    assert [piece.sources for piece in answer.evidence] == [(own.passage,)] == [(passage.id,)]
    assert not joined.in_text, "no words are cited across two documents"


async def test_only_documents_in_the_scope_are_read(store):
    put_texts(store, EMBEDDER, "b", RAINED)
    model = script()
    await read(store, model, LIVED, question=Question(text="Who?", within=Scope(documents=frozenset({"b"}))))
    assert list_read(model) == [RAINED]


async def test_order_by_relevance_reads_the_best_chunk_first(store):
    model = script()
    await read(store, model, RAINED, "It snowed.", "Ada kept the light.", "The light was kept.", order="relevance")
    assert {*list_read(model)[:2]} == {"Ada kept the light.", "The light was kept."}
    assert list_read(model)[2:] == [RAINED, "It snowed."], "what is not found stays in document order"


async def test_a_ledger_that_exceeds_the_window_shows_what_fits(store):
    model = script(window=8_000)
    texts = [f"On day {n} it rained {'and rained ' * 30}." for n in range(100)]
    answer = await read(store, model, *texts, chunk=4_000)
    (given,) = list_inputs(model, "answer")
    assert 0 < len(given.evidence) < 100
    assert model.window >= model.count_input_tokens(None, given) + 768
    assert list_events(answer, "answered")[0].detail["cut"] == 100 - len(given.evidence)
    assert len(answer.evidence) == len(given.evidence)


# ---------------------------------------------------------------- waves and recovery


async def test_waves_of_8_read_32_chunks_in_a_fifth_of_the_depth_with_fewer_calls(store):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained." for n in range(32)))
    alone, together = [(await read(store, script(latency=0.005), wave=wave)).cost for wave in (1, 8)]
    assert (alone.depth, alone.calls) == (1 + 3 * 32, 1 + 3 * 32)
    assert together.depth <= 0.2 * alone.depth
    assert together.calls == 1 + 32 + 2 * 4


async def test_recovery_finds_what_was_missed_and_reads_little_again(store):
    planted = {7 + 10 * n: f"The keeper {word} hid the brass key of day {n}." for n, word in enumerate("abcdefghij")}
    texts = [planted.get(n, f"On day {n} it rained over the fields and nobody came by at all.") for n in range(100)]
    model = script(
        extract_notes=at_second_sight(quote_all, lambda _: {}),
        plan_reading=lambda _: {"questions": ["Which keeper hid the brass key?"]},
    )
    answer = await read(store, model, *texts, chunk=600, recovery=0.2)
    shown = " ".join(find_texts(list_inputs(model, "answer")[0].evidence))
    assert sum(text in shown for text in planted.values()) >= 0.8 * len(planted)
    (recovered,), (divided,) = list_events(answer, "recovered"), list_events(answer, "divided")
    assert 0 < recovered.detail["tokens"] <= 0.2 * divided.detail["tokens"]


@pytest.mark.parametrize(
    ("chunks", "settings", "calls"),
    [
        (1, {"recovery": 0.2}, 4),
        (4, {"recovery": 0.0}, 1 + 3 * 4 - 1 + 1),
        (10, {"recovery": 0.2}, 1 + 3 * 10 + 3 * 2 - 1 + 1),
        (10, {"recovery": 0.2, "wave": 4}, 1 + 10 + 2 * 3 + 2 + 1 + 1),
    ],
)
async def test_the_calls_are_known_before(store, chunks, settings, calls):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained there." for n in range(chunks)))
    seen = set()

    def note_second_reading(given):
        """Facts that no search excludes: what was read first has no passage."""
        new = [piece.text for piece in given.evidence if piece.text not in seen]
        seen.update(new)
        return (
            {"facts": [{"label": "", "quote": f"{text} again", "fact": text} for text in new]}
            if new
            else quote_all(given)
        )

    asks = {"questions": ["On which day did it rain?"]}
    system = wire(store, script(extract_notes=note_second_reading, plan_reading=lambda _: asks), **settings)
    assert await system.loop.estimate_calls(ASKED) == calls
    assert (await answer_question(system, ASKED)).cost.calls == calls


async def test_recovery_ends_once_no_question_is_open(store):
    model = script(
        plan_reading=lambda _: {"questions": ["Where did the key hang?"]},
        extract_notes=at_second_sight(lambda given: quote_first(given.evidence[0].text), lambda _: {}),
        refine_questions=lambda _: {"answered": [1]},
    )
    texts = [f"The key of day {n} hung by the door of the keeper." for n in range(12)]
    answer = await read(store, model, *texts, chunk=40, recovery=1.0)
    (divided,) = list_events(answer, "divided")
    given = list_inputs(model, "extract_notes")
    assert len(given) == divided.detail["chunks"] + 1, "one chunk is read again, and it settles the question"
    assert all(each.questions for each in given)


async def test_what_fails_when_it_is_read_again_was_read_before(store):
    extract = at_second_sight(lambda _: BAD, lambda _: quote_first("Tom did", "Tom lived there."))
    model = script(extract_notes=extract)
    answer = await read(store, model, LIVED, "Who lived there is unknown.", recovery=1.0)
    assert (answer.text, answer.missing) == ("Ada", "")
    assert list_events(answer, "unread"), "the trace has the call that failed"
    assert list_inputs(model, "answer")[0].notes == [f"Tom lived there. {UNCHECKED}"]


async def test_recovery_searches_within_the_scope_and_skips_what_is_cited(store):
    search, unknown = Search(store), "Who lived there is unknown."
    model = script(extract_notes=[{}, quote_first(unknown), {}])
    question = Question(text="Who lived there?", force=True, within=Scope())
    await read(store, model, LIVED, unknown, RAINED, question=question, search=search, recovery=1.0)
    assert search.scopes == [question.within], "one search for each focused question"
    assert list_read(model)[3:] == [LIVED]


# ---------------------------------------------------------------- what fits into a window


def make_parts(window):
    desk = make_desk(None, ChatModel("openai:test", window=window))
    cycle = Cycle(published=False, questions=10, memory=8_000)
    return LedgerReading(desk, Chunking(desk, size=64_000), cycle)


def test_a_window_that_is_too_small_is_refused_with_what_is_needed():
    with pytest.raises(UsageError, match=r"openai:test takes 4,096 tokens, .* needs [\d,]+: .* set `window`") as error:
        make_parts(4_096).measure_room(ASKED)
    needed = int(re.search(r"needs ([\d,]+)", str(error.value))[1].replace(",", ""))
    assert make_parts(needed).measure_ledger(ASKED, 1000) >= 990
    with pytest.raises(UsageError, match="too few"):
        make_parts(needed - 10).measure_room(ASKED)
    with pytest.raises(UsageError, match="3,000 tokens, too few"):
        NoteReading(make_desk(None, ChatModel("openai:test", window=3_000)), words=400).measure_room(ASKED)


# ---------------------------------------------------------------- Chain of Agents


async def test_each_reader_gets_the_note_of_the_one_before(store):
    model = script()
    answer = await hand_on(store, model, "One.", "Two.", "Six.", chunk=15, words=50)
    given = [(each.note, each.words) for each in list_inputs(model, "carry_note")]
    assert given == [("", 50), ("One.", 50), ("One. Two.", 50)]
    (last,) = list_inputs(model, "answer")
    assert (last.evidence, last.notes) == ([], ["One. Two. Six."])
    assert answer.cost.depth == 4


def script_runs(*texts):
    return script(answer=[text if isinstance(text, Exception) else {"answer": text} for text in texts])


@pytest.mark.parametrize(
    ("replies", "text", "skipped"),
    [
        (["*", "Tom.", "Ada", "ada", "Sam"], "Ada", 0),
        ([BAD, "Tom", "Ada", "Ada", BAD], "Ada", 2),  # a run that fails has no vote
        (["*", "Tom", "*"], "Tom", 0),  # nor has one that declines
        (["*", "*"], "", 0),
    ],
)
async def test_the_answer_of_most_runs_is_taken(store, replies, text, skipped):
    answer = await hand_on(store, script_runs(*replies), "One.", question=Question(text="Who?"), runs=len(replies))
    assert answer.text.lower() == text.lower()
    assert answer.resolved is bool(text)
    assert list_reasons(answer) == ["no JSON"] * skipped


@pytest.mark.parametrize("replies", [[BAD, BAD], ["Ada", ModelUnavailable("away")]], ids=["all fail", "away"])
async def test_runs_without_a_usable_reply_or_a_model_are_an_error(store, replies):
    with pytest.raises(type(replies[-1]), match=str(replies[-1])):
        await hand_on(store, script_runs(*replies), "One.", runs=2)


@pytest.mark.parametrize("settings", [{}, {"wave": 2, "recovery": 0.5}, {"order": "relevance"}])
async def test_the_extractive_model_reads_a_text_to_its_end(store, settings):
    put_texts(store, EMBEDDER, "story", GARDEN, JOURNEY, REVEALED, "The clerk slept.")
    model = ExtractiveModel(EMBEDDER)
    await check_loop(wire(store, model, memory=60, **settings).loop, WHO)
    await check_loop(assemble("chain_of_agents", Kit(store, model, EMBEDDER), chunk=20).loop, WHO)
