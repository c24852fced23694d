import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tomewise.errors import BadReply
from tomewise.language import roles
from tomewise.language.reply import decode, describe_output, make_lean_schema
from tomewise.run import PART_SKIPPED, PROSE_READ, meter

STORY = Path(__file__).resolve().parents[3] / "shared" / "data" / "story"


@pytest.mark.skipif(not STORY.is_dir(), reason="needs ../shared/data")
def test_every_reply_that_a_strong_model_gave_to_earlier_prompts_is_still_read():
    known = {role.name: role for role in roles.ROLES}
    lines = [line for file in sorted(STORY.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    assert len(lines) == 410
    for row in map(json.loads, lines):
        assert decode(known[row["role"]], json.dumps(row["reply"]))


@pytest.mark.parametrize(
    "text",
    [
        '{"probes": ["a", "b"]}',
        '  \n{"probes": ["a", "b"]}\n',
        '```json\n{"probes": ["a", "b"]}\n```',
        'Sure!\n```\n{"probes": ["a", "b"]}\n```\nAnything else?',
        'Here you are: {"probes": ["a", "b"]} I hope {this} helps.',
        'With {braces} before: {"probes": ["a", "b"]}',
        '{"probes": ["a", "b",],}',
        '["a", "b"]',
        '{"probe1": "a", "probe2": "b"}',
        '{"Probe_1": "a", "probes-2": "b"}',
        '{"ProbeOut": {"probes": ["a", "b"]}}',
        '{"probes": ["a", "b"], "why": "both are new"}',
        '<think>x</think>{"probes": ["x"]}<think>y</think>{"probes": ["a", "b"]}',
        '{"nothing": 1} {"probes": ["a", "b"]}',
        '{"probe": ["a", "b"]}',
        'Text [1] is off.\n```json\n["a", "b"]\n```',
        'x\n</think>\n{"probes": ["a", "b"]}',
    ],
)
def test_what_models_wrap_json_in_is_forgiven(text):
    assert decode(roles.PROBE, text).probes == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("I would search for the clock.", "no JSON object"),
        ('{"queries": ["a"]}', "none of the fields probes"),
        ("{}", "none of the fields"),
        ('{"probe1": "a", "why": "b"}', ""),
        ('{"probing": "a"}', ""),
        ("null", "none of the fields"),
        ('{"probes": 3}', "probes: Input should be a valid list"),
        ('{"probes": [{"query": "a"}]}', "probes.0"),
    ],
)
def test_what_does_not_fit_says_why(text, says):
    with pytest.raises(BadReply) as raised:
        decode(roles.PROBE, text)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ('{"summary": "one\ntwo, ] three,}"}', "one\ntwo, ] three,}"),
        ('{"summary": "one, ] \\" two,}",}', 'one, ] " two,}'),
        ('{"summary": "Ma\\ud83dra"}', "Ma?ra"),
    ],
    ids=["line breaks", "commas before brackets", "half characters"],
)
def test_what_stands_in_strings_survives(text, summary):
    output = decode(roles.SUMMARISE, text)
    assert output.summary == summary
    assert output.model_dump_json()


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]))), st.text(max_size=20))
def test_any_object_survives_its_wrapping(probes, prose):
    written = json.dumps({"probes": probes})
    prose = prose.replace("{", "").replace("[", "").replace("`", "").replace("<", "")
    assert decode(roles.PROBE, f"{prose}x\n```json\n{written}\n```").probes == roles.ProbeOut(probes=probes).probes


def test_the_schema_keeps_what_helps_and_drops_the_rest():
    schema = make_lean_schema(roles.RelationsOut)
    entity = schema["$defs"]["TypedEntity"]
    assert set(entity["properties"]) == {"name", "type", "description"}
    assert "title" not in schema
    assert "Lenient" not in describe_output(roles.TriplesOut)
    assert "each: subject, relation, object" in describe_output(roles.TriplesOut)


def test_null_is_forgiven():
    written = {"answer": "a", "quotes": None, "reasoning": None, "supported": None}
    assert decode(roles.ANSWER, json.dumps(written)) == roles.AnswerOut(answer="a")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *[(word, "full") for word in ("full", "Full", " fully supported.", "**full**")],
        *[(word, "partly") for word in ("partly", "Partially", "PARTIAL", "part of it")],
        *[(word, "partly") for word in ("partly, in November", "fully, not partly")],
        *[(word, "none") for word in ("full or partly or none", "full | none", "fully unsupported", "full is false")],
        *[(word, "none") for word in ("Full support is absent", "full except the date", "full? doubtful")],
        *[(word, "none") for word in ("none", "not at all", "yes", True, "supported", "", 3, {"a": 1}, ["full"], None)],
    ],
)
def test_a_claim_is_read_by_its_first_letters_and_an_unknown_one_is_the_weakest(written, read):
    assert decode(roles.ANSWER, json.dumps({"answer": "a", "supported": written})).claim == read


FIELDS = {
    "quotes": [{"label": "E1", "quote": "Ada Marsh put out the light at nine."}],
    "reasoning": "Somebody put it out.",
    "supported": "full",
    "answer": "Ada Marsh",
    "choice": None,
    "missing": "",
}
WRITTEN = json.dumps(FIELDS)
NEAR = {
    "single quotation marks": str(FIELDS),
    "a remark": WRITTEN.replace('"answer":', '// the answer\n"answer":'),
    "bare marks inside": WRITTEN.replace("Somebody put it out.", 'Somebody said "out".'),
    "curly marks": WRITTEN.replace('"', "”"),
    "cut at its end": WRITTEN[:-15],
    "without the first bracket": WRITTEN[1:],
    "bare names": "{quotes: [{label: 'E1', quote: 'Ada Marsh put out the light at nine.'}], supported: full, "
    'answer: "Ada Marsh"}',
    "a list of one": f"[{WRITTEN}]",
    "a list of one, in a fence": f"```json\n[{WRITTEN}]\n```",
    "a string": json.dumps(WRITTEN),
    "one object more": json.dumps({"response": FIELDS}),
    "names in capitals": json.dumps({name.title(): value for name, value in FIELDS.items()}),
    "names of records in capitals": WRITTEN.replace('"label"', '"LABEL"').replace('"quote"', '"Quote"'),
    "a thought before": f"<think>It was {{her}}</think>{FIELDS!s}",
    "prose around": f"Here {{is}} the reply: {FIELDS} I hope it helps.",
    "a list as answer": WRITTEN.replace('"Ada Marsh",', '["Ada Marsh"],'),
}


@pytest.mark.parametrize("text", NEAR.values(), ids=NEAR)
def test_what_comes_near_to_json_is_read(text):
    output = decode(roles.ANSWER, text)
    assert (output.answer, output.claim) == ("Ada Marsh", "full")
    assert output.quotes == [roles.Quote(**FIELDS["quotes"][0])]


def test_names_inside_of_texts_stay_as_they_are():
    written = {"Quotes": [{"Label": "E1", "quote": 'Answer: "Quotes"'}], "ANSWER": "Answer", "answer_2": "x"}
    output = decode(roles.ANSWER, json.dumps(written))
    assert (output.answer, output.quotes[0].quote) == ("Answer", 'Answer: "Quotes"')


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Ada Marsh put out the light.", "Ada Marsh put out the light."),
        ("answer: Ada Marsh\nsupported: full\nquotes: []", "Ada Marsh"),
        ("I think so.\n\n**Answer:** Ada Marsh", "Ada Marsh"),
        ("<think>Who?</think>\nAda Marsh.", "Ada Marsh."),
        ("```\nAda Marsh\n```", "Ada Marsh"),
        ("Answer: The ship sank\nbecause it hit a rock.", "The ship sank\nbecause it hit a rock."),
        ("Answer: maybe ten\n\nFinal answer: nine\nmissing: the day", "nine"),
        ("[E1] The tide turns. So: Ada Marsh", "[E1] The tide turns. So: Ada Marsh"),
        ("Answer:\n1. The ship\n2. The lamp\nsupported: full", "1. The ship\n2. The lamp"),
        ("answer: >-\n  The ship\n  sank\nchoice: B", "The ship\n  sank"),
        ("answer: |\n  nine", "nine"),
        ("Answer: nine\nAnswer:", "nine"),
        ("The tag </think> ends a thought.", "The tag </think> ends a thought."),
        ("None", "None"),
        ("It is not stated.", "It is not stated."),
    ],
)
def test_prose_is_at_last_an_answer_that_nothing_supports(text, answer):
    with pytest.raises(BadReply):
        decode(roles.ANSWER, text)
    with meter() as used:
        output = decode(roles.ANSWER, text, prose=True)
    assert output == roles.AnswerOut(answer=answer)
    assert (output.claim, output.is_declined(may_decline=True)) == ("none", False)
    assert used.fallbacks == {PROSE_READ: 1}


@pytest.mark.parametrize(
    "text",
    [
        'quotes: []\nsupported: none\nanswer: ""\nmissing: the date',
        "answer:\nsupported: none",
        'answer: "*"',
        "**Answer:** *",
        "answer: null",
        "answer: ~",
        "Answer: -",
        "*",
    ],
)
def test_prose_without_an_answer_declines(text):
    assert decode(roles.ANSWER, text, prose=True).is_declined(may_decline=True)


@pytest.mark.parametrize(
    ("written", "label", "quote"),
    [
        ({"E1": "the tide turns"}, "E1", "the tide turns"),
        (["E1", "the tide turns"], "E1", "the tide turns"),
        ({"label": "E1", "text": "the tide turns"}, "E1", "the tide turns"),
        ({"label": "E1", "quote": ["the tide", "turns"]}, "E1", "the tide … turns"),
        (["the tide", "turns"], "", "the tide … turns"),
        ("the tide turns", "", "the tide turns"),
    ],
)
def test_a_quotation_is_read_in_other_forms(written, label, quote):
    output = decode(roles.ANSWER, json.dumps({"answer": "a", "quotes": [written]}))
    assert output.quotes == [roles.Quote(label=label, quote=quote)]


def test_quotations_may_stand_under_their_labels_or_behind_them():
    quotes = decode(roles.ANSWER, '{"answer": "a", "quotes": {"E1": "a b", "E2": "c d"}}').quotes
    assert quotes == [roles.Quote(label="E1", quote="a b"), roles.Quote(label="E2", quote="c d")]
    assert [each.quote for each in decode(roles.ANSWER, '{"answer": "a", "quotes": ["E1", "a b"]}').quotes] == ["a b"]


@pytest.mark.parametrize(
    "written",
    ["none", "None.", "no quotes", "N/A", "", "*", ["none"], ["[]"], [{"label": "E1", "quote": "none"}]],
)
def test_a_word_for_nothing_is_no_quotation(written):
    assert decode(roles.ANSWER, json.dumps({"answer": "a", "quotes": written})).quotes == []


@pytest.mark.parametrize(
    "written", ["3:30", "10%", "$5", "-5 degrees", "5 (five)", '"not" nine', '"""He did "not" go"""', "007"]
)
def test_a_value_of_which_a_repair_would_keep_a_part_is_not_read(written):
    with pytest.raises(BadReply):
        decode(roles.ANSWER, f'{{"supported": "full", "answer": {written}}}')


def test_an_answer_that_was_cut_claims_nothing():
    whole = '{"supported": "full", "answer": "The ship did not sink", "missing": ""}'
    assert decode(roles.ANSWER, whole).claim == "full"
    assert decode(roles.ANSWER, whole[:-22]).claim == "none"
    assert decode(roles.ANSWER, whole[:-1]).claim == "full", "the answer itself is whole"


def test_a_decimal_stays_as_it_is_written_and_null_is_no_answer():
    assert decode(roles.ANSWER, '{"answer": 1.50}').answer == "1.50"
    assert decode(roles.ANSWER, '{"answer": null}').is_declined(may_decline=True)


@pytest.mark.parametrize(
    "text", ["{broken", "[1, 2", "[]", "[E1]", "[true].", "I'm sorry, but I can't help with that.", "<think>Who?", "``"]
)
def test_broken_json_and_excuses_are_no_answer(text):
    with pytest.raises(BadReply):
        decode(roles.ANSWER, text, prose=True)


@pytest.mark.parametrize("role", roles.ROLES, ids=lambda role: role.name)
def test_prose_is_refused_by_all_roles_but_the_one_that_answers(role):
    if role is not roles.ANSWER:
        with pytest.raises(BadReply):
            decode(role, "Ada Marsh put out the light.", prose=True)


STRENGTH = {"none": 0, "partly": 1, "full": 2}
WORDS = ("not ", " or ", "none", "null", "```", "//", "</think>", "\ud800", "é")
SIGNS = st.sampled_from([*"{}[]\"':,;%$-\\\n`“”<>/*#07", *WORDS])
CHANGES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 12), SIGNS | st.just("")), min_size=1, max_size=6)


def keep_words(text):
    return "".join(filter(str.isalnum, text))


@settings(max_examples=2_000, deadline=None)
@given(st.sampled_from(["partly", "none", "full"]), CHANGES, st.booleans())
def test_no_change_of_a_right_reply_makes_another_error_a_stronger_claim_or_other_words(claim, changes, last):
    text = json.dumps({**FIELDS, "supported": claim})
    for at, length, sign in changes:
        text = text[:at] + sign + text[at + length :]
    assume(not re.search(r"\\[bfnrtu]", text))  # a letter that stands for another sign
    try:
        output = decode(roles.ANSWER, text, prose=last)
    except BadReply:
        return
    assert STRENGTH[output.claim] <= STRENGTH[claim]
    for words in (output.answer, *(quote.quote for quote in output.quotes)):
        assert keep_words(words) in keep_words(text)


@pytest.mark.parametrize("sign", ["{", "[", '"', "'", '{"answer":', '{"answer": "x", ', "`", "//", "<think>", "\\"])
def test_a_long_broken_reply_ends_in_one_error(sign):
    with pytest.raises(BadReply):
        decode(roles.PROBE, sign * 5_000, prose=True)


@pytest.mark.parametrize(
    "quotes", ['"x y"', '["x y"]', '[{"quote": "x y"}]', '[{"label": null, "quote": "x y"}]', '{"quote": "x y"}']
)
def test_a_quotation_may_come_alone(quotes):
    expected = roles.AnswerOut(answer="1911", quotes=[roles.Quote(label="", quote="x y")])
    assert decode(roles.ANSWER, f'{{"answer": 1911, "quotes": {quotes}}}') == expected


# ---------------------------------------------------------------- records of a list

GOOD = {"label": "E1", "quote": "It rained.", "fact": "It rained."}


def test_one_bad_record_of_twenty_is_skipped_and_counted():
    records = [GOOD] * 19 + [{"label": "E2", "fact": "without a quotation"}]
    with meter() as used:
        output = decode(roles.EXTRACT_NOTES, json.dumps({"facts": records}))
    assert len(output.facts) == 19
    assert used.fallbacks == {PART_SKIPPED: 1}


@pytest.mark.parametrize("facts", [[{"label": "E2"}], ["It rained."], "It rained."])
def test_records_of_which_none_fits_are_refused(facts):
    with meter() as used, pytest.raises(BadReply, match="facts"):
        decode(roles.EXTRACT_NOTES, json.dumps({"facts": facts}))
    assert not used.fallbacks


JOINED = {"rests_on": ["F1", "F2"], "inference": "so"}


@pytest.mark.parametrize(
    ("role", "text", "expected"),
    [
        (roles.EXTRACT_NOTES, [GOOD], {"facts": [GOOD]}),
        (roles.EXTRACT_NOTES, {"facts": GOOD}, {"facts": [GOOD]}),
        (roles.INFER_NOTES, [{**JOINED, "rests_on": "F1, F2"}], {"inferences": [{**JOINED, "rests_on": [1, 2]}]}),
        (roles.REFINE_QUESTIONS, {"answered": ["Q2"]}, {"reasoning": "", "answered": [2], "new": []}),
        (roles.SELECT_NODES, {"keep": 3}, {"reasoning": "", "keep": [3]}),
        (roles.EXTRACT_NOTES, {"facts": "none"}, {"facts": []}),
        (roles.PROBE, {"probes": "who left?"}, {"probes": ["who left?"]}),
        (roles.ENCODE, {"cue": None}, {"cue": "", "labels": []}),
    ],
)
def test_lists_are_read_in_the_forms_that_models_write(role, text, expected):
    assert decode(role, json.dumps(text)).model_dump(exclude={"unfinished"}) == expected


def test_records_may_stand_one_in_a_line():
    assert decode(roles.EXTRACT_NOTES, f"{json.dumps(GOOD)}\n" * 2).model_dump(exclude={"unfinished"}) == {
        "facts": [GOOD, GOOD]
    }


def test_a_list_in_a_remark_is_not_taken_for_the_reply():
    assert decode(roles.SELECT_NODES, 'Text [1] is off. {"keep": [2]}').keep == [2]
    assert decode(roles.SELECT_NODES, "I keep [1, 3].").keep == [1, 3]
    assert decode(roles.SELECT_NODES, 'Texts [2, 5] are off. {"reasoning": "none", "keep": []').keep == []
    with pytest.raises(BadReply):
        decode(roles.SELECT_NODES, "I keep [1] and [3].")


READ = [  # role, field, and what is read from what is written
    (roles.WRITE_REPORT, "importance", {"8/10": 8, 11: 10, -2: 0, "high": 0, None: 0, 7.6: 8, "about": 0}),
    (roles.RATE_REPORT, "rating", {"4/5": 4, 4.7: 5, 6: 5, "**3**": 3}),
    (roles.EXPLORE, "score", {85.5: 86, "85%": 85, 120: 100, "?": 50}),
    (roles.EXPLORE, "follow_ups", {"q": ["q"], None: []}),
    (roles.KEYWORDS, "details", {"x": ["x"]}),
    (roles.KEYWORDS, "themes", {"trade": ["trade"]}),
    (roles.WRITE_REPORT, "findings", {"none": []}),
]


@pytest.mark.parametrize(
    ("role", "field", "written", "read"),
    [
        *((role, field, *pair) for role, field, pairs in READ for pair in pairs.items()),
        (roles.EXPLORE, "follow_ups", [None, "q"], ["q"]),
        (roles.EXPLORE, "follow_ups", [{"question": "p"}, "q"], ["q"]),
        (roles.KEYWORDS, "details", [1953, "x"], ["1953", "x"]),
        (roles.WRITE_REPORT, "findings", [{"headline": "only"}], []),
    ],
)
def test_one_wrong_value_does_not_lose_a_reply(role, field, written, read):
    others = {"title": "T", "summary": "S", "answer": "A", "reason": "R", "themes": ["t"], "details": ["d"]}
    known = {name: value for name, value in others.items() if name in role.output.model_fields}
    assert getattr(decode(role, json.dumps(known | {field: written})), field) == read


@given(st.integers() | st.floats() | st.text())
def test_any_score_is_read_within_its_bounds(written):
    (point,) = decode(roles.MAP_REPORTS, json.dumps({"points": [{"description": "a", "score": written}]})).points
    assert 0 <= point.score <= 100


def test_what_is_said_without_a_score_counts_half():
    with pytest.raises(BadReply):
        decode(roles.RATE_REPORT, '{"rating": "high"}')
    (point,) = decode(roles.MAP_REPORTS, '{"points": [{"description": "a"}]}').points
    assert point.score == 50
    assert decode(roles.EXPLORE, '{"answer": "A"}').score == 50
    assert decode(roles.EXPLORE, '{"answer": "", "follow_ups": ["q"]}').score == 0
