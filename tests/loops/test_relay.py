"""Reading in order: what each role is given, what survives in the ledger, and what happens when a call fails."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from tests.stories import put_texts

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import BadReply, ModelUnavailable, UsageError
from tomewise.language.cached import Cached
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.prompts import Prompts
from tomewise.recall.flat import Lexical
from tomewise.store.sql.sql_store import SqlStore
from tomewise.systems.answer import answer_question
from tomewise.systems.cosmir import chain_of_agents, relay
from tomewise.systems.kit import Kit, Recall
from tomewise.systems.registry import assemble, parse_variant
from tomewise.testing import check_loop
from tomewise.testing.scripted import ScriptedModel
from tomewise.types import Answer, Question, Scope
from tomewise.working.ledger import load

EMBEDDER = HashEmbedder(64)
ASKED = Question(text="Who kept the light?", force=True)
BAD = BadReply("no JSON")
UNCHECKED = "(a reader's note; the words it rests on could not be checked)"


class Search:
    """Recall by words, which takes a scope and notes which it got."""

    def __init__(self, store: SqlStore) -> None:
        self._inner = Lexical(store)
        self.scopes: list[Scope | None] = []

    async def retrieve(self, query: str, limit: int, *, within: Scope | None = None) -> list[Any]:
        self.scopes.append(within)
        return await self._inner.retrieve(query, limit)


@pytest.fixture
def store(tmp_path):
    made = SqlStore.open(tmp_path / "a.tome")
    yield made
    made.close()


def quote_all(given: Any) -> dict[str, object]:
    """Every passage is a fact in its own words."""
    return {"facts": [{"label": piece.label, "quote": piece.text, "fact": piece.text} for piece in given.evidence]}


def script(latency: float = 0.0, **replies: Any) -> ScriptedModel:
    plain = {
        "plan_reading": lambda _: {"questions": ["Who lived there?"], "nets": ["What is said of lights?"]},
        "extract_notes": quote_all,
        "infer_notes": lambda _: {},
        "refine_questions": lambda _: {},
        "carry_note": lambda given: {"note": f"{given.note} {given.evidence[0].text}".strip()},
        "answer": lambda _: {"answer": "Ada"},
    }
    return ScriptedModel({**plain, **replies}, latency=latency)


def wire(store: SqlStore, model: Any, chunk: int = 20, **settings: Any) -> Any:
    """Of `put_texts` every passage is a chunk of its own, as 20 tokens hold one with its label."""
    kit = Kit(store, model, EMBEDDER)
    return relay(
        kit, Recall(retriever=Search(store)), chunk=chunk, **{"recovery": 0.0, "memory": 0, "context": 0, **settings}
    )


async def ask(system: Any, question: Question = ASKED) -> Answer:
    return await answer_question(system, question)


def inputs(model: ScriptedModel, role: str) -> list[Any]:
    return [call.given for call in model.calls if call.role == role]


def events(answer: Answer, name: str) -> list[Any]:
    return [event for event in answer.events if event.name == name]


def final_ledger(answer: Answer) -> Any:
    ledger = load(events(answer, "answered")[-1].detail["ledger"])
    assert ledger.answer == answer.text
    return ledger


# ---------------------------------------------------------------- the order of calls


async def test_plan_then_extract_infer_and_refine_chunk_by_chunk_then_answer(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "The light burned.")
    drawn = {"inferences": [{"rests_on": ["[f1]", "F9"], "inference": "So it was Ada."}]}
    refined = {"answered": [1, 7], "new": ["Who lit it?", "what is said of LIGHTS?"]}
    model = script(infer_notes=[drawn, {}], refine_questions=[refined])
    answer = await ask(wire(store, model))
    steps = ["extract_notes", "infer_notes"]
    assert [call.role for call in model.calls] == ["plan_reading", *steps, "refine_questions", *steps, "answer"]
    first, second = inputs(model, "extract_notes")
    assert (first.questions, first.nets) == (["Who lived there?"], ["What is said of lights?"])
    assert second.questions == ["Who lit it?", "what is said of LIGHTS?"]
    assert [piece.text for piece in second.evidence] == ["The light burned."]
    assert [(entry.label, entry.is_new, entry.place) for entry in inputs(model, "infer_notes")[1].facts] == [
        ("F1", False, "story, part 1 of 2"),
        ("F3", True, "story, part 2 of 2"),
    ]
    assert [entry.text for entry in inputs(model, "refine_questions")[0].inferences] == ["So it was Ada."]
    (given,) = inputs(model, "answer")
    assert [(piece.kind, piece.text) for piece in given.evidence] == [
        ("passage", "Ada lived there."),
        ("passage", "The light burned."),
    ]
    assert given.notes == ["So it was Ada. (follows from E1)"], "facts stand among the evidence only"
    assert (answer.text, answer.resolved) == ("Ada", True)
    assert final_ledger(answer).settled == ("Who lived there?",)


async def test_only_what_was_written_down_reaches_the_answering_role(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there. It rained.")
    fact = {"label": "E1", "quote": "Ada lived there.", "fact": "Ada lived in the tower."}
    reply = {"answer": "Ada", "quotes": [{"label": "E1", "quote": "Ada lived"}, {"label": "E1", "quote": "It rained"}]}
    model = script(extract_notes=[{"facts": [fact]}], answer=[reply])
    answer = await ask(wire(store, model))
    (given,) = inputs(model, "answer")
    assert [piece.text for piece in given.evidence] == [
        "Ada lived there. (a reader's note, not to be quoted: Ada lived in the tower.)"
    ]
    assert given.notes == []
    assert [(cited.start, cited.quote) for cited in answer.citations][:1] == [(0, "Ada lived")]


async def test_a_quote_that_is_not_in_the_text_is_marked(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there.")
    facts = [
        {"label": "E1", "quote": "Tom lived there", "fact": "Tom lived there."},
        {"label": "E7", "quote": "ada lived elsewhere"},
        {"label": "E7", "quote": "lived there"},
    ]
    model = script(extract_notes=[{"facts": facts}])
    answer = await ask(wire(store, model))
    kept = final_ledger(answer).facts
    assert [(fact.in_text, bool(fact.passage)) for fact in kept] == [(False, True), (False, False), (True, True)]
    assert inputs(model, "answer")[0].notes == [f"Tom lived there. {UNCHECKED}", f"ada lived elsewhere {UNCHECKED}"]
    assert events(answer, "extracted")[0].detail["not_found"] == 2


async def test_a_chunk_without_a_new_fact_needs_no_inference(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "It rained.")
    model = script(extract_notes=lambda given: quote_all(given) if "Ada" in given.evidence[0].text else {})
    await ask(wire(store, model))
    assert Counter(call.role for call in model.calls)["infer_notes"] == 1


@pytest.mark.parametrize(
    ("settings", "role"), [({"inference": "none"}, "infer_notes"), ({"refinement": "none"}, "refine_questions")]
)
async def test_a_step_that_is_left_out_makes_no_call(store, settings, role):
    put_texts(store, EMBEDDER, "story", "Ada lived there.")
    model = script()
    await ask(wire(store, model, **settings))
    assert not inputs(model, role)


async def test_passages_fill_what_the_ledger_leaves_and_repeat_no_fact(store):
    texts = ["Ada kept the light.", "The light was bright.", "She slept.", "It rained over the bay for a week."]
    put_texts(store, EMBEDDER, "story", *texts)
    keep_first = {"facts": [{"label": "E1", "quote": "Ada kept the light.", "fact": "Ada was the keeper."}]}
    drawn = {"inferences": [{"rests_on": ["F1"], "inference": "So she was on the island."}]}
    model = script(extract_notes=[keep_first], infer_notes=[drawn])
    answer = await ask(wire(store, model, chunk=1000, context=76))
    (given,) = inputs(model, "answer")
    assert [piece.text for piece in given.evidence] == [
        "Ada kept the light. (a reader's note, not to be quoted: Ada was the keeper.)",
        "The light was bright. She slept.",
    ]
    assert given.notes == ["So she was on the island. (follows from E1)"]
    assert (given.evidence[1].place, len(answer.evidence)) == ("parts 2 to 3 of 4", 3)
    assert events(answer, "answered")[0].detail["cut"] == 0, "what has no room was not written down"


async def test_a_quotation_that_overlaps_another_one_is_shown_once(store):
    put_texts(store, EMBEDDER, "story", "Ada kept the light of Skerry until the war began.")
    facts = [
        {"label": "E1", "quote": "the light of Skerry until the war began", "fact": "That ended with the war."},
        {"label": "E1", "quote": "Ada kept the light of Skerry", "fact": "Ada kept a light."},
    ]
    model = script(extract_notes=[{"facts": facts}])
    await ask(wire(store, model))
    assert [piece.text for piece in inputs(model, "answer")[0].evidence] == [
        "Ada kept the light of Skerry until the war began (a reader's note, not to be quoted: Ada kept a light.) "
        "(a reader's note, not to be quoted: That ended with the war.)"
    ]


# ---------------------------------------------------------------- the example of the paper

GARDEN = "In the garden a pale young gentleman asked Pip to fight."
JOURNEY = "Pip went to London by coach with a heavy heart."
REVEALED = "Herbert Pocket cried that he was that pale young gentleman."
WHO = Question(text="Where had Pip met Herbert Pocket before London?", force=True)


def keep_people(given: Any) -> dict[str, object]:
    """What a wide question about people catches, whether it matters yet or not."""
    return quote_all(given) if re.search("gentleman|Herbert", given.evidence[0].text) else {}


def join_descriptions(given: Any) -> dict[str, object]:
    alike = [entry.label for entry in given.facts if "pale young gentleman" in entry.text]
    if len(alike) < 2:
        return {}
    return {"inferences": [{"rests_on": alike, "inference": "Pip had met Herbert Pocket in the garden."}]}


def keep_what_names_the_question(given: Any) -> dict[str, object]:
    """A note for the question as it is: until the last chunk, nobody knows who the gentleman was."""
    texts = f"{given.note} {given.evidence[0].text}"
    return {"note": " ".join(s for s in re.findall(r"[^.]+\.", texts) if "Herbert" in s or "London" in s).strip()}


async def test_a_fact_that_matters_only_later_survives_in_the_ledger_and_is_lost_in_the_note(store):
    put_texts(store, EMBEDDER, "story", GARDEN, JOURNEY, REVEALED)
    model = script(extract_notes=keep_people, infer_notes=join_descriptions, carry_note=keep_what_names_the_question)
    await ask(wire(store, model), WHO)
    await ask(assemble("chain_of_agents", Kit(store, model, EMBEDDER), chunk=20), WHO)
    with_ledger, with_note = inputs(model, "answer")
    assert with_ledger.notes == ["Pip had met Herbert Pocket in the garden. (follows from E1, E2)"]
    assert [piece.text for piece in with_ledger.evidence] == [GARDEN, REVEALED]
    assert "garden" not in with_note.model_dump_json()
    assert any("Herbert" in note for note in with_note.notes)


async def test_the_same_with_a_text_of_our_own_and_a_model_that_is_not_scripted(store):
    hidden = "That night Jonas Varn laid something of brass under the millstone."
    asked = [f"On day {n} the brother of Tom Hale was asked where he would hide the brass key." for n in range(4)]
    revealed = "In his own village the brother of Tom Hale was called Jonas Varn."
    put_texts(store, EMBEDDER, "story", hidden, "At home Jonas Varn said that he had no key.", *asked, revealed)
    question = Question(text="Where did the brother of Tom Hale hide the brass key?", force=True)
    answered: list[Any] = []

    class Recorded(ExtractiveModel):
        async def ask(self, role: Any, given: Any) -> Any:
            output = await super().ask(role, given)
            answered.append(given)
            return output

    model = Recorded(EMBEDDER)
    await ask(wire(store, model, memory=40), question)  # as many tokens as the note has
    with_ledger = answered[-1]
    await ask(assemble("chain_of_agents", Kit(store, model, EMBEDDER), chunk=20, words=28), question)
    assert {hidden, revealed} <= {piece.text for piece in with_ledger.evidence}
    assert "millstone" not in answered[-1].model_dump_json(), "what is near to the question has displaced it"


async def test_the_grounds_of_an_inference_stay_when_the_ledger_forgets(store):
    later = [f"On the quay the old convict gave Pip gold watch number {number}." for number in range(3)]
    put_texts(store, EMBEDDER, "story", GARDEN, REVEALED, *later)
    model = script(infer_notes=join_descriptions)
    answer = await ask(wire(store, model, memory=44), WHO)  # room for three facts
    ledger = final_ledger(answer)
    assert [fact.text for fact in ledger.facts] == [GARDEN, REVEALED, later[-1]]
    (given,) = inputs(model, "answer")
    assert {GARDEN, REVEALED} <= {piece.text for piece in given.evidence}


async def test_an_inference_survives_a_ledger_that_has_forgotten_its_facts(store):
    put_texts(store, EMBEDDER, "story", GARDEN, REVEALED)
    answer = await ask(wire(store, script(infer_notes=join_descriptions), memory=18), WHO)  # room for one fact
    ledger = final_ledger(answer)
    assert [fact.text for fact in ledger.facts] == [REVEALED]
    assert [fact.text for fact in ledger.inferences[0].grounds] == [GARDEN, REVEALED]
    assert {piece.text for piece in answer.evidence} == {GARDEN, REVEALED}, "what it rests on can be cited"


async def test_a_fact_larger_than_the_budget_is_cut(store):
    put_texts(store, EMBEDDER, "story", GARDEN)
    answer = await ask(wire(store, script(), memory=4), WHO)
    (fact,) = final_ledger(answer).facts
    assert fact.is_cut
    assert fact.tokens <= 4
    assert GARDEN.startswith(fact.quote)


# ---------------------------------------------------------------- questions and their places


async def test_nets_have_places_of_their_own_and_the_plan_leaves_room(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "It rained.")
    asked, nets = [f"Q{n}?" for n in range(7)], [f"N{n}?" for n in range(5)]
    model = script(
        plan_reading=lambda _: {"questions": asked, "nets": nets},
        refine_questions=[{"answered": [1, 6], "new": [f"R{n}?" for n in range(9)]}],
    )
    answer = await ask(wire(store, model))
    (plan,) = inputs(model, "plan_reading")
    assert (plan.limit, plan.nets) == (5, 4)
    first, second = inputs(model, "extract_notes")
    assert (first.questions, first.nets) == (asked[:5], nets[:4])
    assert inputs(model, "refine_questions")[0].limit == 10
    assert second.questions == [*asked[1:5], *(f"R{n}?" for n in range(6))], "an answered question gives up its place"
    assert second.nets == nets[1:4], "number 6 is the first net"
    lost = [*asked[5:], nets[4], *(f"R{n}?" for n in range(6, 9))]
    places = [5, 5, 4, 10, 10, 10]
    assert [event.detail["reason"] for event in events(answer, "skipped")] == [
        f"no place is left for the question {text!r} (places: {number})"
        for text, number in zip(lost, places, strict=True)
    ]


async def test_a_question_that_was_settled_is_not_asked_again(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "It rained.", "It snowed.")
    model = script(refine_questions=[{"answered": [1]}, {"new": ["who lived THERE"]}])
    await ask(wire(store, model))
    assert inputs(model, "extract_notes")[2].questions == []


# ---------------------------------------------------------------- what fails


@pytest.mark.parametrize("role", ["plan_reading", "infer_notes", "refine_questions"])
async def test_a_step_whose_reply_cannot_be_used_is_skipped_and_reported(store, role):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "It rained.")
    model = script(**{role: lambda _: BAD})
    answer = await ask(wire(store, model))
    assert (answer.text, answer.missing) == ("Ada", "")
    assert [event.detail["reason"] for event in events(answer, "skipped")] == ["no JSON"] * (
        1 + (role == "infer_notes")
    )
    assert len(final_ledger(answer).facts) == 2


@pytest.mark.parametrize("name", ["cosmir", "chain_of_agents"])
async def test_a_chunk_whose_call_fails_is_named_in_the_answer(store, name):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "It rained.", "The end.")

    def fail_in_the_rain(given: Any) -> Any:
        return BAD if "rained" in given.evidence[0].text else {"facts": [], "note": "so"}

    model = script(extract_notes=fail_in_the_rain, carry_note=fail_in_the_rain)
    settings = {"recovery": 0.0} if name == "cosmir" else {}
    answer = await ask(assemble(name, Kit(store, model, EMBEDDER), chunk=20, **settings))
    assert answer.missing == "not read: story, part 2 of 3"
    assert inputs(model, "answer")[0].notes[0] == "This part of the text could not be read: story, part 2 of 3."
    assert [event.detail["chunk"] for event in events(answer, "unread")] == ["story, part 2 of 3"]
    assert events(answer, "skipped")


@pytest.mark.parametrize("name", ["cosmir", "chain_of_agents"])
async def test_a_window_without_room_for_a_chunk_is_an_error(store, name):
    put_texts(store, EMBEDDER, "story", "Ada lived there.")
    model = script()
    model.window = 2_000
    with pytest.raises(UsageError, match="takes 2,000 tokens, too few"):
        await ask(assemble(name, Kit(store, model, EMBEDDER)))
    assert not model.calls


@pytest.mark.parametrize("name", ["cosmir", "chain_of_agents"])
async def test_where_no_chunk_could_be_read_nobody_is_asked_to_answer(store, name):
    put_texts(store, EMBEDDER, "story", "Ada lived there.")
    model = script(extract_notes=[BAD], carry_note=[BAD])
    settings = {"recovery": 0.0} if name == "cosmir" else {}
    with pytest.raises(BadReply, match="no JSON"):
        await ask(assemble(name, Kit(store, model, EMBEDDER), **settings))
    assert not inputs(model, "answer")


async def test_a_model_that_is_away_ends_the_reading(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "It rained.")
    model = script(extract_notes=[ModelUnavailable("away")])
    with pytest.raises(ModelUnavailable):
        await ask(wire(store, model))
    with pytest.raises(BadReply):
        await ask(wire(store, script(answer=[BAD])))


async def test_a_reading_that_was_interrupted_repeats_no_call(store):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained." for n in range(6)))
    broken, whole = script(), script()
    left = iter(range(9))

    def stop(given: Any) -> Any:
        return quote_all(given) if next(left, None) is not None else ModelUnavailable("away")

    broken = script(extract_notes=lambda given: stop(given) if "day 3" in given.evidence[0].text else quote_all(given))
    left = iter(())
    with pytest.raises(ModelUnavailable):
        await ask(wire(store, Cached(broken, Prompts(), store.calls)))
    answer = await ask(wire(store, Cached(whole, Prompts(), store.calls)))
    done = len(broken.calls) - 1
    assert done == 1 + 3 * 3
    assert len(whole.calls) == 3 * 6 + 1 - done
    assert answer.usage.total.calls == len(whole.calls)


# ---------------------------------------------------------------- texts


async def test_a_text_of_one_chunk_and_of_none(store):
    model = script()
    nothing = await ask(wire(store, model))
    assert (nothing.resolved, nothing.missing, model.calls) == (False, "no text to read was found", [])
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "It rained.")
    await ask(wire(store, model, chunk=1000))
    assert [len(given.evidence) for given in inputs(model, "extract_notes")] == [2]


async def test_neighbouring_documents_share_a_chunk_each_under_its_own_heading(store):
    put_texts(store, EMBEDDER, "a", "Ada lived there.", "The light burned.")
    put_texts(store, EMBEDDER, "b", "It rained.")
    put_texts(store, EMBEDDER, "c", "Ada lived there.")
    facts = [{"label": "E4", "quote": "Ada lived there."}, {"label": "E3", "quote": "It rained. Ada lived there."}]
    model = script(extract_notes=[{"facts": facts}])
    answer = await ask(wire(store, model, chunk=1000))
    (read,) = inputs(model, "extract_notes")
    assert [(piece.document, piece.text) for piece in read.evidence] == [
        ("a", "Ada lived there."),
        ("a", "The light burned."),
        ("b", "It rained."),
        ("c", "Ada lived there."),
    ]
    assert events(answer, "extracted")[0].detail["chunk"] == "a, parts 1 to 2 of 2 to c (3 documents)"
    own, joined = final_ledger(answer).facts
    (cited,) = [evidence.sources for evidence in answer.evidence]
    assert (own.passage,) == cited
    assert answer.evidence[0].sources == tuple(
        store.passages(documents=["c"])[key].id for key in store.passages(documents=["c"])
    )
    assert not joined.in_text, "no words are cited across two documents"


@pytest.mark.parametrize(("name", "calls"), [("cosmir", 4), ("chain_of_agents", 2)])
async def test_60_short_documents_are_one_chunk(store, name, calls):
    for number in range(60):
        put_texts(store, EMBEDDER, f"d{number:02}", f"On day {number} it rained.")
    model = script()
    answer = await ask(assemble(name, Kit(store, model, EMBEDDER)))
    assert answer.usage.total.calls == calls


async def test_a_chunk_is_as_long_as_the_window_allows(store):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained." for n in range(200)))
    model = script()
    model.window = 5_000
    await ask(wire(store, model, chunk=64_000))
    assert len(inputs(model, "extract_notes")) > 1


async def test_only_documents_in_the_scope_are_read(store):
    put_texts(store, EMBEDDER, "a", "Ada lived there.")
    put_texts(store, EMBEDDER, "b", "It rained.")
    model = script()
    await ask(wire(store, model), Question(text="Who?", within=Scope(documents=frozenset({"b"}))))
    assert [given.evidence[0].text for given in inputs(model, "extract_notes")] == ["It rained."]


async def test_order_by_relevance_reads_the_best_chunk_first(store):
    put_texts(store, EMBEDDER, "story", "It rained.", "It snowed.", "Ada kept the light.", "The light was kept.")
    model = script()
    await ask(wire(store, model, order="relevance"))
    read = [given.evidence[0].text for given in inputs(model, "extract_notes")]
    assert {*read[:2]} == {"Ada kept the light.", "The light was kept."}
    assert read[2:] == ["It rained.", "It snowed."], "what is not found stays in document order"


async def test_a_ledger_that_exceeds_the_window_shows_what_fits(store):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained {'and rained ' * 30}." for n in range(100)))
    model = script()
    model.window = 8_000
    answer = await ask(wire(store, model, chunk=4_000))
    given = inputs(model, "answer")[0]
    assert 0 < len(given.evidence) < 100
    assert model.window >= model.count_input_tokens(None, given) + 768  # type: ignore[arg-type]
    assert events(answer, "answered")[0].detail["cut"] == 100 - len(given.evidence)
    assert len(answer.evidence) == len(given.evidence)


# ---------------------------------------------------------------- waves and recovery


async def test_waves_of_8_read_32_chunks_in_a_fifth_of_the_depth_with_fewer_calls(store):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained." for n in range(32)))
    runs = {}
    for wave in (1, 8):
        runs[wave] = (await ask(wire(store, script(latency=0.01), wave=wave))).usage
    assert (runs[1].depth, runs[1].total.calls) == (1 + 3 * 32, 1 + 3 * 32)
    assert runs[8].depth <= 0.2 * runs[1].depth
    assert runs[8].total.calls == 1 + 32 + 2 * 4


async def test_recovery_finds_what_was_missed_and_reads_little_again(store):
    planted = {7 + 10 * n: f"The keeper {word} hid the brass key of day {n}." for n, word in enumerate("abcdefghij")}
    texts = [planted.get(n, f"On day {n} it rained over the fields and nobody came by at all.") for n in range(100)]
    put_texts(store, EMBEDDER, "story", *texts)

    seen: set[str] = set()

    def overlook(given: Any) -> dict[str, object]:
        """A key is overlooked when it is read first, and seen when it is read again."""
        facts = [piece for piece in given.evidence if "key" in piece.text and piece.text in seen]
        seen.update(piece.text for piece in given.evidence)
        return {"facts": [{"label": piece.label, "quote": piece.text} for piece in facts]}

    model = script(extract_notes=overlook, plan_reading=lambda _: {"questions": ["Which keeper hid the brass key?"]})
    missed = await ask(wire(store, model, chunk=600))
    assert not inputs(model, "answer")[0].evidence
    whole = sum(len(given.evidence) for given in inputs(model, "extract_notes"))
    assert whole == 100
    assert not events(missed, "recovered")
    model.calls.clear()
    seen.clear()
    answer = await ask(wire(store, model, chunk=600, recovery=0.2))
    found = {piece.text for piece in inputs(model, "answer")[0].evidence}
    assert len(found & {*planted.values()}) >= 0.8 * len(planted)
    (recovered,) = events(answer, "recovered")
    (divided,) = events(answer, "divided")
    assert 0 < recovered.detail["tokens"] <= 0.2 * divided.detail["tokens"]


@pytest.mark.parametrize(
    ("chunks", "settings", "calls"),
    [
        (1, {}, 4),
        (1, {"recovery": 0.2}, 4),
        (4, {}, 1 + 3 * 4 - 1 + 1),
        (4, {"inference": "none"}, 1 + 2 * 4 - 1 + 1),
        (4, {"recovery": 0.2, "questions": 0}, 1 + 2 * 4 + 1),
        (10, {"recovery": 0.2}, 1 + 3 * 10 + 3 * 2 - 1 + 1),
        (10, {"recovery": 0.2, "wave": 4}, 1 + 10 + 2 * 3 + 2 + 1 + 1),
    ],
)
async def test_the_calls_are_known_before(store, chunks, settings, calls):
    put_texts(store, EMBEDDER, "story", *(f"On day {n} it rained there." for n in range(chunks)))
    seen: set[str] = set()

    def note_second_reading(given: Any) -> dict[str, object]:
        """Facts that no search excludes: what was read first has no passage."""
        texts = [piece.text for piece in given.evidence if piece.text not in seen]
        seen.update(texts)
        return {
            "facts": [{"label": "", "quote": f"{text}!!", "fact": text} for text in texts] or quote_all(given)["facts"]
        }

    model = script(
        extract_notes=note_second_reading, plan_reading=lambda _: {"questions": ["On which day did it rain?"]}
    )
    system = wire(store, model, chunk=20, **settings)
    assert await system.loop.estimate_calls(ASKED) == calls
    assert (await ask(system)).usage.total.calls == calls


async def test_recovery_does_not_push_out_grounds(store):
    later = [f"The rain of day {n} wet the gentleman of the quay." for n in range(8)]
    put_texts(store, EMBEDDER, "story", GARDEN, REVEALED, *later)
    seen: set[str] = set()

    def overlook_rain(given: Any) -> dict[str, object]:
        (text,) = {piece.text for piece in given.evidence}
        is_again = text in seen
        seen.add(text)
        return quote_all(given) if is_again or text in (GARDEN, REVEALED) else {}

    model = script(
        extract_notes=overlook_rain,
        infer_notes=join_descriptions,
        plan_reading=lambda _: {"questions": ["Which gentleman of the quay was wet?"]},
    )
    answer = await ask(wire(store, model, memory=60, recovery=0.8), WHO)  # room for four facts
    assert events(answer, "recovered")
    kept = [fact.text for fact in final_ledger(answer).facts]
    assert kept[:2] == [GARDEN, REVEALED]
    assert set(kept[2:]) & {*later}


async def test_recovery_ends_once_no_question_is_open(store):
    put_texts(store, EMBEDDER, "story", *(f"The key of day {n} hung by the door of the keeper." for n in range(12)))
    seen: list[str] = []

    def note_second_reading(given: Any) -> dict[str, object]:
        texts = [piece.text for piece in given.evidence]
        facts = [{"label": "E1", "quote": texts[0]}] if texts[0] in seen else []
        seen.extend(texts)
        return {"facts": facts}

    model = script(
        plan_reading=lambda _: {"questions": ["Where did the key hang?"]},
        extract_notes=note_second_reading,
        refine_questions=lambda _: {"answered": [1]},
    )
    answer = await ask(wire(store, model, chunk=40, recovery=1.0))
    read = inputs(model, "extract_notes")
    (divided,) = events(answer, "divided")
    assert len(read) == divided.detail["chunks"] + 1, "one chunk is read again, and it settles the question"
    assert all(given.questions for given in read)


async def test_what_fails_when_it_is_read_again_was_read_before(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "Who lived there is unknown.")
    seen: set[str] = set()

    def fail_at_second_sight(given: Any) -> Any:
        texts = {piece.text for piece in given.evidence}
        again = bool(texts & seen)
        seen.update(texts)
        return BAD if again else {"facts": [{"label": "E1", "quote": "Tom did", "fact": "Tom lived there."}]}

    model = script(extract_notes=fail_at_second_sight)
    answer = await ask(wire(store, model, recovery=1.0))
    assert (answer.text, answer.missing) == ("Ada", "")
    assert events(answer, "unread"), "the trace has the call that failed"
    assert inputs(model, "answer")[0].notes == [f"Tom lived there. {UNCHECKED}"]


async def test_recovery_searches_within_the_scope_and_skips_what_is_cited(store):
    put_texts(store, EMBEDDER, "story", "Ada lived there.", "Who lived there is unknown.", "It rained.")
    search, model = Search(store), script(extract_notes=[{}, quote_all_of("Who lived there is unknown."), {}])
    system = relay(
        Kit(store, model, EMBEDDER), Recall(retriever=search), chunk=20, context=0, recovery=1.0, refinement="none"
    )
    scope = Scope()
    await ask(system, Question(text="Who lived there?", force=True, within=scope))
    assert search.scopes == [scope], "one search for each focused question"
    again = [given.evidence[0].text for given in inputs(model, "extract_notes")[3:]]
    assert again == ["Ada lived there."]


def quote_all_of(text: str) -> dict[str, object]:
    return {"facts": [{"label": "E1", "quote": text}]}


@pytest.mark.parametrize("settings", [{"wave": 0}, {"recovery": 1.5}])
def test_settings_that_read_nothing_or_too_much_are_refused(store, settings):
    with pytest.raises(UsageError, match=r"0|1\.5"):
        wire(store, script(), **settings)


@pytest.mark.parametrize("spec", ["cosmir chunk=0", "cosmir wave=0", "cosmir recovery=2", "chain_of_agents words=0"])
def test_settings_of_a_system_that_read_nothing_or_too_much_are_refused(spec):
    with pytest.raises(UsageError, match=r"must be (greater|less) than or equal to 1"):
        parse_variant(spec)


# ---------------------------------------------------------------- Chain of Agents


async def test_each_reader_gets_the_note_of_the_one_before(store):
    put_texts(store, EMBEDDER, "story", "One.", "Two.", "Six.")
    model = script()
    answer = await ask(assemble("chain_of_agents", Kit(store, model, EMBEDDER), chunk=15, words=50))
    assert [(given.note, given.words) for given in inputs(model, "carry_note")] == [
        ("", 50),
        ("One.", 50),
        ("One. Two.", 50),
    ]
    (given,) = inputs(model, "answer")
    assert (given.evidence, given.notes) == ([], ["One. Two. Six."])
    assert answer.usage.depth == 4


async def test_both_ways_are_read_side_by_side_and_answered_together(store):
    put_texts(store, EMBEDDER, "story", "One.", "Two.")
    model = script(latency=0.05)
    answer = await ask(assemble("chain_of_agents", Kit(store, model, EMBEDDER), chunk=15, direction="both"))
    assert inputs(model, "answer")[0].notes == ["One. Two.", "Two. One."]
    assert answer.usage.depth < 5, "one after the other there would be 5"


async def test_the_answer_of_most_runs_is_taken(store):
    put_texts(store, EMBEDDER, "story", "One.")
    replies = [{"answer": text} for text in ("*", "Tom.", "Ada", "ada", "Sam")]
    model = script(latency=0.4, answer=replies)
    question = Question(text="Who?")
    answer = await ask(assemble("chain_of_agents", Kit(store, model, EMBEDDER), runs=5), question)
    assert answer.text.lower() == "ada"
    assert answer.usage.depth < 5, "runs are side by side"
    declined = script(answer=lambda _: {"answer": "*"})
    assert not (await ask(assemble("chain_of_agents", Kit(store, declined, EMBEDDER), runs=2), question)).resolved
    with pytest.raises(UsageError, match="0 runs"):
        chain_of_agents(Kit(store, model, EMBEDDER), runs=0)


async def test_a_run_that_fails_has_no_vote(store):
    put_texts(store, EMBEDDER, "story", "One.")
    model = script(answer=[BAD, {"answer": "Tom"}, {"answer": "Ada"}, {"answer": "Ada"}, BAD])
    answer = await ask(assemble("chain_of_agents", Kit(store, model, EMBEDDER), runs=5))
    assert answer.text == "Ada"
    assert [event.detail["reason"] for event in events(answer, "skipped")] == ["no JSON"] * 2
    with pytest.raises(BadReply):
        await ask(assemble("chain_of_agents", Kit(store, script(answer=lambda _: BAD), EMBEDDER), runs=2))
    away = script(answer=[{"answer": "Ada"}, ModelUnavailable("away")])
    with pytest.raises(ModelUnavailable):
        await ask(assemble("chain_of_agents", Kit(store, away, EMBEDDER), runs=2))


@pytest.mark.parametrize("settings", [{}, {"wave": 2, "recovery": 0.5}, {"order": "relevance"}])
async def test_the_extractive_model_reads_a_text_to_its_end(store, settings):
    put_texts(store, EMBEDDER, "story", GARDEN, JOURNEY, REVEALED, "The clerk slept.")
    model = ExtractiveModel(EMBEDDER)
    await check_loop(wire(store, model, memory=60, **settings).loop, WHO)
    await check_loop(assemble("chain_of_agents", Kit(store, model, EMBEDDER), chunk=20).loop, WHO)
