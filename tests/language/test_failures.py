"""A model that only fails ends the work; one that replies now and then does not."""

from __future__ import annotations

import asyncio

import pytest

from tomewise.errors import BadReply, BudgetExceeded, KeepsFailing, ModelError, ModelUnavailable
from tomewise.language.failures import StopAtFailures
from tomewise.language.roles import FUSE, FuseIn
from tomewise.run import open_run
from tomewise.testing.scripted import ScriptedModel

GIVEN = FuseIn(question="Who?", cues=[])
GOOD = {"cue": "x"}


def make_model(*replies: object, most: int = 3) -> StopAtFailures:
    return StopAtFailures(ScriptedModel({"fuse": list(replies)}), most)


async def ask(model: StopAtFailures) -> Exception | None:
    try:
        await model.ask(FUSE, GIVEN)
    except ModelError as error:
        return error
    return None


async def test_failures_with_no_reply_between_them_end_the_work_with_what_it_cost_and_kept() -> None:
    model = make_model(GOOD, GOOD, *(BadReply(f"no JSON in reply {number}") for number in range(3)))
    with open_run():
        errors = [await ask(model) for _ in range(5)]
    assert [type(error) for error in errors] == [type(None), type(None), BadReply, BadReply, KeepsFailing]
    assert isinstance(errors[-1], ModelUnavailable), "every further call would fail too"
    assert errors[-1].exit_code == 6
    message = str(errors[-1])
    assert "3 calls of scripted failed with no reply between them" in message
    assert "no JSON in reply 2. Kept: 2 replies" in message
    assert "Spent: 5 requests" in message
    assert "max_failures" in message


async def test_a_reply_between_failures_begins_the_count_anew_in_order_of_ending() -> None:
    bad = BadReply("no")
    model = make_model(bad, bad, GOOD, bad, bad, GOOD, bad)
    with open_run():
        errors = [await ask(model) for _ in range(7)]
    assert KeepsFailing not in map(type, errors)


class Slow(ScriptedModel):
    """Its first ask replies when all the others have failed."""

    def __init__(self) -> None:
        super().__init__({"fuse": lambda given: GOOD if given.question == "0" else BadReply("no")})
        self.failed = 0
        self.ended = asyncio.Event()

    async def ask(self, role, given):
        if given.question == "0":
            await self.ended.wait()
        try:
            return await super().ask(role, given)
        finally:
            self.failed += 1
            if self.failed == 2:
                self.ended.set()


async def test_a_reply_counts_when_it_ends_and_not_when_it_is_asked_for() -> None:
    model = StopAtFailures(Slow(), 3)
    with open_run():
        asked = [model.ask(FUSE, FuseIn(question=str(number), cues=[])) for number in range(3)]
        await asyncio.gather(*asked, return_exceptions=True)
        late = await asyncio.gather(
            *(model.ask(FUSE, FuseIn(question="late", cues=[])) for _ in range(3)), return_exceptions=True
        )
    assert [type(error) for error in late] == [BadReply, BadReply, KeepsFailing]


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), BudgetExceeded("used up")])
async def test_what_ends_the_work_anyway_stays_as_it_is(error: ModelError) -> None:
    model = make_model(error, most=1)
    with open_run(), pytest.raises(type(error), match=str(error)) as raised:
        await model.ask(FUSE, GIVEN)
    assert type(raised.value) is type(error)


async def test_each_piece_of_work_counts_for_itself_and_nothing_outside_of_one() -> None:
    model = make_model(*[BadReply("no")] * 6, most=3)
    for _ in range(2):
        with open_run():
            assert [type(await ask(model)) for _ in range(2)] == [BadReply] * 2
    assert [type(await ask(model)) for _ in range(2)] == [BadReply] * 2
