"""Answers of the form that is wanted, and as long as they are: a reply that is cut goes on, and nothing is lost."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.language.openai_server import Behaviour, OpenAIServer, fail_with, open_chat, reply_with, stream_with

from tomewise import Answer, Document, Tome
from tomewise.errors import BudgetExceeded, UsageError
from tomewise.language.roles import ANSWER, AnswerIn
from tomewise.run import Request, change_run
from tomewise.types import Cost, Event, Question

pytestmark = pytest.mark.usefixtures("here")  # no key, no proxy
NAMES = "Ada Boris Clara Dmitri Edith Farid Greta Hugo Irina Jonas".split()
FACTS = [
    f"Lamp {number} of the harbour was lit by {NAMES[number % 10]} with {number + 3} cups of oil from the lower store."
    for number in range(300)
]
LIST = "\n".join(f"- {fact} [E{number // 30 + 1}]" for number, fact in enumerate(FACTS))
WHOLE = {"quotes": [], "reasoning": "Each lamp is written of.", "supported": "full", "answer": LIST, "missing": ""}
QUESTION = "Who lit each lamp?"

Rest = Callable[[str, int], str]


def go_on(text: str, at: int) -> str:
    """The rest of the text, as a good model writes it."""
    return text[at:]


class Writer:
    """Writes one text, in replies of as many tokens as the request allows, of four characters each."""

    def __init__(self, text: str, rest: Rest = go_on, most: int = 10**6) -> None:
        self.text = text
        self._rest = rest
        self._most = most  # characters of a reply
        self.bounds: list[int] = []

    def __call__(self, request: dict[str, Any]) -> Behaviour:
        written = "".join(each["content"] for each in request["messages"] if each["role"] == "assistant")
        if written:
            assert self.text.startswith(written)
            assert "response_format" not in request, "no schema: the rest alone fits none"
        self.bounds.append(request["max_tokens"])
        text = self._rest(self.text, len(written)) if written else self.text
        most = min(self._most, 4 * request["max_tokens"])
        finish = "stop" if len(text) <= most else "length"
        if request.get("stream"):
            pieces = [text[start : start + 50] for start in range(0, min(len(text), most), 50)]
            return stream_with(*(piece[: most - 50 * n] for n, piece in enumerate(pieces)), finish=finish)
        return reply_with(text[:most], finish=finish)


@contextmanager
def open_tome(here: Path, writer: Callable[[dict[str, Any]], Behaviour], **settings: Any) -> Iterator[Tome]:
    """A tome with ten documents of thirty facts, and a model that writes the text."""
    with OpenAIServer(writer) as server, warnings.catch_warnings():
        settings = {"base_url": server.url, "window": 100_000, **settings}
        model = settings.pop("model", "openai:large")
        with Tome.open(here / "a.tome", embedder="hash", model=model, settings=settings) as tome:
            tome.add(*(Document(id=f"d{n}", text="\n".join(FACTS[30 * n : 30 * n + 30])) for n in range(10)))
            yield tome


def ask(here: Path, writer: Callable[[dict[str, Any]], Behaviour], **settings: Any) -> Answer:
    with open_tome(here, writer, **settings) as tome:
        return tome.ask(QUESTION, system="full_context", form="list")


def test_a_list_of_300_is_whole_and_each_item_is_a_statement_of_its_own(here: Path) -> None:
    writer = Writer(json.dumps(WHOLE))
    answer = ask(here, writer)
    assert answer.text.splitlines() == [f"- {fact}" for fact in FACTS]
    assert [each.text for each in answer.statements] == FACTS
    assert {each.support for each in answer.statements} == {"quoted"}
    assert all(each.quotes for each in answer.statements)
    assert (answer.unfinished, answer.claimed) == ("", "full")
    assert writer.bounds == [2048] * 4


def repeat(words: int) -> Rest:
    """Writes the last words of what is there again, and then the rest."""
    return lambda text, at: " ".join(text[:at].split()[-words:]) + text[at:]


def answer_anew(text: str, at: int) -> str:
    """Writes an object whose answer is the rest."""
    return '```json\n{"quotes": [], "supported": "full", "answer": "' + text[at:].lstrip()


SEAMS: dict[str, Rest] = {
    "two words again": repeat(2),
    "five words again": repeat(5),
    "an item again": repeat(22),
    "without a blank": lambda text, at: text[at:].lstrip(),
    "an object": answer_anew,
}


@pytest.mark.parametrize("rest", SEAMS.values(), ids=SEAMS)
async def test_no_word_is_lost_or_doubled_at_a_seam(rest: Rest) -> None:
    part = "\n".join(LIST.splitlines()[:12])
    async with open_chat() as (model, server):
        for size in range(1_000, 1_060):
            server.handler = Writer(json.dumps({**WHOLE, "answer": part}), rest, size)
            reply = await model.ask(ANSWER, AnswerIn(question=QUESTION))
            assert (reply.answer.splitlines(), reply.unfinished) == (part.splitlines(), "")


def test_quotations_that_are_cut_go_on_too(here: Path) -> None:
    quotes = [{"label": "E1", "quote": fact} for fact in FACTS[:30]]
    writer = Writer(json.dumps({**WHOLE, "quotes": quotes, "answer": FACTS[3]}), most=1_500)
    answer = ask(here, writer)
    assert answer.text == FACTS[3]
    assert FACTS[3] in [quote.text for quote in answer.statements[0].quotes]
    assert (len(writer.bounds), answer.unfinished) == (3, "")


def test_prose_that_is_cut_goes_on_and_is_asked_for_once(here: Path) -> None:
    writer = Writer("\n".join(LIST.splitlines()[:30]), most=1_500)
    answer = ask(here, writer)
    assert [each.text for each in answer.statements] == FACTS[:30]
    assert len(writer.bounds) == 2


def test_a_budget_that_ends_on_the_way_keeps_what_is_there(here: Path) -> None:
    writer = Writer(json.dumps(WHOLE))
    with open_tome(here, writer, budget="2 calls") as tome:
        answer = tome.ask(QUESTION, system="full_context")
        assert "limit of 2 calls" in answer.unfinished
        assert f"The answer is unfinished: {answer.unfinished}." in str(answer)
        assert f"- {answer.text.removeprefix('- ')}" in "\n".join(f"- {fact}" for fact in FACTS)
        assert len(answer.statements) > 50
        assert answer.claimed == "full"
        with pytest.raises(BudgetExceeded):  # it is not kept: the next ask may have more room
            tome.ask(QUESTION, system="full_context")


async def test_what_a_budget_reserves_is_what_is_sent() -> None:
    reserved: list[int] = []

    class Account:
        async def reserve(self, request: Request) -> int:
            reserved.append(request.output_bound)
            return 1

        def settle(self, request: Request, spent: Cost) -> None:
            pass

    async with open_chat() as (model, server):
        server.handler = writer = Writer(json.dumps(WHOLE))
        with change_run(permits=(Account(),)):
            await model.ask(ANSWER, AnswerIn(question=QUESTION))
    assert reserved == writer.bounds


def test_the_most_is_a_third_of_the_window(here: Path) -> None:
    writer = Writer(json.dumps(WHOLE))
    answer = ask(here, writer, window=12_000)
    assert "the most tokens" in answer.unfinished
    assert 12_000 // 4 < sum(writer.bounds) <= 12_000 // 3 + 64
    assert len(answer.statements) > 50


def test_a_small_window_begins_small_and_loses_nothing(here: Path) -> None:
    writer = Writer(json.dumps({**WHOLE, "answer": "\n".join(LIST.splitlines()[:50])}))
    answer = ask(here, writer, window=32_000, model="openai:tiny-1b")
    assert [each.text for each in answer.statements] == FACTS[:50]
    assert writer.bounds[0] == 768


def test_a_model_that_fails_on_the_way_or_repeats_itself_is_not_asked_for_ever(here: Path) -> None:
    writer = Writer(json.dumps(WHOLE))
    calls: list[dict[str, Any]] = []

    def fail_later(request: dict[str, Any]) -> Behaviour:
        calls.append(request)
        return writer(request) if len(calls) == 1 else fail_with(400, "what is this")

    answer = ask(here, fail_later)
    assert answer.unfinished == "asked to go on, the model failed"
    assert len(answer.statements) > 50
    looping = Writer(json.dumps({**WHOLE, "answer": f"- {FACTS[0]}\n" * 3_000}))
    with open_tome(here, looping) as tome:
        assert tome.ask(QUESTION, system="full_context").unfinished == "the model repeats itself"
    assert len(looping.bounds) == 1
    stuck = Writer(json.dumps(WHOLE), lambda text, at: text)
    with open_tome(here, stuck) as tome:
        assert "no more of it" in tome.ask("Who lit the lamps?", system="full_context").unfinished
    assert len(stuck.bounds) == 2


def test_thoughts_that_are_cut_are_no_answer_and_have_room_then(here: Path) -> None:
    replies = [reply_with("<think>Who lit it? ", finish="length"), reply_with(json.dumps({**WHOLE, "answer": "Ada"}))]
    bounds: list[int] = []

    def think(request: dict[str, Any]) -> Behaviour:
        bounds.append(request["max_tokens"])
        return replies[len(bounds) - 1]

    assert ask(here, think).text == "Ada"
    assert bounds == [2048, 2 * 2048 + 8192]


@pytest.mark.parametrize("rest", SEAMS.values(), ids=SEAMS)
def test_the_parts_of_an_answer_that_goes_on_are_its_text(here: Path, rest: Rest) -> None:
    with open_tome(here, Writer(json.dumps(WHOLE), rest)) as tome:
        *events, answer = tome.stream(QUESTION, system="full_context", form="list")
    parts = [each.detail for each in events if isinstance(each, Event) and each.name == "answer_part"]
    assert not any(part["replace"] for part in parts[1:])
    assert "".join(part["text"] for part in parts) == answer.text
    assert max(len(part["text"]) for part in parts) < 3_000, "it is shown while it is written"
    assert not any("[E" in part["text"] for part in parts)


def test_nothing_is_shown_before_proof_where_only_that_is_wanted(here: Path) -> None:
    with open_tome(here, Writer(json.dumps({**WHOLE, "answer": f"{FACTS[0]} Nobody paid for it."}))) as tome:
        *events, answer = tome.stream(Question(text=QUESTION, only_supported=True), system="full_context")
    assert answer.text.strip() == FACTS[0]
    assert not [each for each in events if each.name == "answer_part"]


# ---------------------------------------------------------------- forms

FORMS = {"list": "each in a line", "table": "a table", "account": "an account", "summary": "a summary in connected"}


@pytest.mark.parametrize("model", ["openai:large", "openai:tiny-1b"])
def test_the_prompt_states_the_form_that_is_wanted_and_no_other(here: Path, model: str) -> None:
    prompts: dict[str | None, str] = {}
    with OpenAIServer(Writer(json.dumps({**WHOLE, "answer": "Ada"}))) as server:
        settings = {"base_url": server.url}
        with Tome.open(here / "a.tome", embedder="hash", model=model, settings=settings) as tome:
            tome.add(Document(id="d", text="\n".join(FACTS[:3])))
            for form in (None, "short", *FORMS):
                tome.ask(QUESTION, form=form, fresh=True)
                prompts[form] = server.prompts[-1]
            tome.ask(QUESTION, form="list", options=["Ada", "Boris"])
            of_options = server.prompts[-1]
    for form, prompt in prompts.items():
        assert [each for each, words in FORMS.items() if words in prompt] == ([form] if form in FORMS else [])
        assert len(prompt) < 1.1 * len(prompts[None])
    assert not any(words in of_options for words in FORMS.values()), "an option has its own form"


def test_a_form_that_is_none_is_refused(here: Path) -> None:
    with open_tome(here, Writer(json.dumps(WHOLE))) as tome:
        with pytest.raises(UsageError, match="short, list, table, account, summary, not 'poem'"):
            tome.ask(QUESTION, form="poem")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="its own"):
            tome.ask(Question(text=QUESTION), form="list")


@pytest.mark.parametrize(
    ("frame", "statements"),
    [
        ("| Lamp | Lit by |\n|---|:--|\n| 1 | Boris |\n| 2 | Clara |", ["| 1 | Boris |", "| 2 | Clara |"]),
        ("So:\n\n```text\nAda lit lamp 0.\n```\n---\nBoris lit lamp 1.", ["Boris lit lamp 1."]),
    ],
)  # fmt: skip
def test_head_rows_rules_and_code_state_nothing(here: Path, frame: str, statements: list[str]) -> None:
    answer = ask(here, Writer(json.dumps({**WHOLE, "answer": frame})))
    assert answer.text == frame
    assert [each.text for each in answer.statements] == statements
    assert not [each.text for each in answer.statements if "Lit by" in each.text or "```" in each.text]
