"""OpenAI's protocol, with its own client."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl

import openai
import pytest
from tests.server.served import ASK, NOVEL, TOKEN, Served

from tomewise.server.openai_api import Message, answer_task

QUESTION = [{"role": "user", "content": "Who put out the light?"}]
MODEL = "novel/hybrid"


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key=TOKEN, max_retries=0) as made:
        yield made


def test_models_are_tomes_with_systems_that_are_ready(client: openai.OpenAI):
    names = [model.id for model in client.models.list()]
    assert MODEL in names
    assert "novel/comorag" not in names
    assert client.models.retrieve(MODEL).id == MODEL


def test_an_answer_with_quotations(client: openai.OpenAI, served: Served):
    reply = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0.3, max_tokens=5)
    message = reply.choices[0].message
    assert message.content.startswith("No model is set: these sentences are nearest to an answer.\n\n[1] “Ada Marsh")
    annotation = message.annotations[0].url_citation
    assert message.content[annotation.start_index : annotation.end_index] == "[1]"
    page, _, place = annotation.url.partition("#/t/novel/doc?")
    assert page == f"{served.url}/"
    span = dict(parse_qsl(place))
    own = reply.model_extra["tomewise"]
    assert (own["text"], own["only_quotes"]) == ("", True), "quotations are no answer"
    assert span.pop("trace") == str(own["trace"])
    span["document"] = span.pop("id")
    assert served.http.get(f"{NOVEL}/text", params=span).json()["text"].startswith("Ada Marsh")
    asked = served.post(ASK, {"question": QUESTION[0]["content"]}).json()
    assert {**own, "cost": 0, "trace": 0} == {**asked, "cost": 0, "trace": 0}
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_a_stream_reasons_then_answers(client: openai.OpenAI):
    stream = client.chat.completions.create(
        model=MODEL, messages=QUESTION, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert any("retrieved" in (delta.model_extra or {}).get("reasoning_content", "") for delta in deltas)
    assert "".join(delta.content or "" for delta in deltas).startswith("No model is set")
    assert chunks[-1].usage is not None


def test_the_system_message_and_earlier_turns(client: openai.OpenAI, served: Served):
    earlier = [*QUESTION, {"role": "assistant", "content": "Ada Marsh [1]"}]
    system = [{"role": "system", "content": "Answer in three words."}]
    asked = "And where had she gone?"
    messages = [*system, *earlier, {"role": "user", "content": asked}]
    own = client.chat.completions.create(model=MODEL, messages=messages).model_extra["tomewise"]
    trace = served.http.get(f"{NOVEL}/traces/{own['trace']}").json()
    assert (trace["question"]["text"], trace["question"]["instructions"]) == (asked, "Answer in three words.")
    assert (trace["events"][0]["name"], trace["events"][0]["detail"]["asked"]) == ("rephrased", asked)
    assert "Ada Marsh" in trace["events"][0]["detail"]["question"]
    assert own["cost"]["calls"] == 2  # one to rephrase, one to answer


def test_errors_have_the_shape_of_the_protocol(client: openai.OpenAI, served: Served):
    with pytest.raises(openai.NotFoundError, match="did you mean 'novel'") as unknown:
        client.chat.completions.create(model="novle/hybrid", messages=QUESTION)
    assert (unknown.value.code, unknown.value.type) == ("unknown_name", "not_found_error")
    bad = openai.OpenAI(base_url=f"{served.url}/v1", api_key="wrong", max_retries=0)
    with bad, pytest.raises(openai.AuthenticationError) as refused:
        bad.models.list()
    assert (refused.value.code, refused.value.type) == ("token", "authentication_error")


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"n": 2}, "n is 2"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "image_url"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
    ],
)
def test_what_a_tome_cannot_do_is_refused_by_name(client: openai.OpenAI, more: dict, name: str):
    with pytest.raises(openai.BadRequestError, match=name):
        client.chat.completions.create(**{"model": MODEL, "messages": QUESTION, **more})


@pytest.mark.parametrize(
    ("task", "reply"),
    [
        (
            "### Task:\nGenerate a concise, 3-5 word title with an emoji.\n\n### Chat History:\n<chat_history>\n"
            "USER: Who forged the letter?\n</chat_history>",
            '{"title": "Who forged the letter?"}',
        ),
        ("### Task:\nGenerate 1-3 broad tags categorizing the main themes.\n<chat_history>x", '{"tags": []}'),
        ("### Task:\nSuggest 3-5 relevant follow-up questions.\n<chat_history>x", '{"follow_ups": []}'),
        ("Provide a concise, 5-word-or-less title for the conversation.\nUser: Who did it?", "Who did it?"),
        ("What is the title of the third chapter?", None),
    ],
)
def test_the_tasks_of_chat_clients_cost_nothing(task: str, reply: str | None):
    assert answer_task([Message(role="user", content=task)]) == reply
