"""Several questions where some fail, and the events of one question as they happen."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.patience import SOON, wait_until

from tomewise import Answer, Document, Tome
from tomewise.errors import ModelError, UsageError
from tomewise.events import Retrieved
from tomewise.testing.scripted import ScriptedModel
from tomewise.tome.questions import answer_many
from tomewise.types import Event

LOG = Document(id="log", text="The keeper, Ada Marsh, put out the light at nine. Nobody asked her why.")


def open_tome(here, reply, kind=ScriptedModel) -> Tome:
    tome = Tome.open(here / "a.tome", embedder="hash", model=kind({"answer": reply}))
    tome.add(LOG)
    return tome


class Hanging(ScriptedModel):
    """A model whose calls never end."""

    cancelled = 0

    async def ask(self, role, given):
        self.calls.append(given)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def test_errors_take_the_place_of_their_answers(here):
    def reply(given):
        return ModelError("no") if given.question == "2" else {"answer": f"answer {given.question}"}

    with open_tome(here, reply) as tome:
        first, second, empty, third = tome.ask_many(["1", "2", "", "3"], return_exceptions=True)
        assert (first.text, third.text) == ("answer 1", "answer 3")
        assert isinstance(second, ModelError)
        assert isinstance(empty, UsageError)
        with pytest.raises(ModelError, match="no"):
            tome.ask_many(["1", "2", "3"])
        with pytest.raises(UsageError, match="put this one into a list"):
            tome.ask_many("1")


async def test_questions_that_fail_before_their_first_event_let_the_others_begin():
    async def fail(question, on_event):
        raise ModelError(f"no answer to {question}")

    async with asyncio.timeout(SOON):
        answers = await answer_many(fail, map(str, range(6)), return_exceptions=True)
    assert [str(error) for error in answers] == [f"no answer to {number}" for number in range(6)]


async def test_events_come_before_the_answer_and_the_trace_is_kept(here):
    with open_tome(here, lambda _: {"answer": "Ada"}) as tome:
        items = [item async for item in tome.astream("Who put out the light?", system="naive limit=2")]
        assert [type(item) for item in items] == [Retrieved, Answer]
        assert items[-1].events == tuple(items[:-1])
        assert (items[-1].text, items[-1].system) == ("Ada", "naive limit=2")
        assert items[-1].usage.total.calls == 1
        assert tome.trace(1).answer.events == items[-1].events


async def test_an_event_comes_while_the_model_still_works(here):
    with open_tome(here, lambda _: {}, Hanging) as tome:
        stream = tome.astream("Who?")
        event = await asyncio.wait_for(anext(stream), SOON)
        assert isinstance(event, Event)
        await stream.aclose()


async def test_leaving_early_cancels_the_call_and_keeps_no_trace(here):
    with open_tome(here, lambda _: {}, Hanging) as tome:
        async with contextlib.aclosing(tome.astream("Who?")) as stream:
            async for _ in stream:
                await asyncio.to_thread(wait_until, lambda: tome._model.calls)
                break
        assert tome._model.cancelled == 1
        assert tome.traces() == []


async def test_a_reader_that_is_cancelled_cancels_the_call(here):
    with open_tome(here, lambda _: {}, Hanging) as tome:

        async def read():
            return [item async for item in tome.astream("Who?")]

        reading = asyncio.create_task(read())
        await asyncio.to_thread(wait_until, lambda: tome._model.calls)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert tome._model.cancelled == 1


async def test_errors_are_raised_by_the_stream(here):
    with open_tome(here, lambda _: ModelError("no")) as tome:
        stream = tome.astream("Who?")
        assert isinstance(await anext(stream), Event)
        with pytest.raises(ModelError, match="no"):
            await anext(stream)
        with pytest.raises(UsageError, match="empty"):
            await anext(tome.astream(" "))
