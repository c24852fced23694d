import pytest

from tomewise.errors import ModelUnavailable
from tomewise.events import Waiting
from tomewise.language.retry import Backoff, PassingFailure, retry
from tomewise.run import change_run


def test_waits_double_vary_and_end_at_the_longest() -> None:
    backoff = Backoff(retries=9, first=1.0, longest=10.0)
    for attempt, most in enumerate([1.0, 2.0, 4.0, 8.0, 10.0, 10.0]):
        waits = {backoff.delay(attempt, None) for _ in range(50)}
        assert all(most / 2 <= wait <= most for wait in waits)
        assert len(waits) > 1
    assert backoff.delay(0, 7.0) == 7.0
    assert backoff.delay(0, 3600.0) == 10.0


async def test_it_waits_as_long_as_asked_and_gives_up_with_the_error() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def attempt() -> str:
        raise PassingFailure(ModelUnavailable("gone"), retry_after=3.0)

    with pytest.raises(PassingFailure, match="gone"):
        await retry(attempt, Backoff(retries=2, first=0.1, longest=9.0), sleep)
    assert waits == [3.0, 3.0]


async def test_other_errors_are_not_tried_again() -> None:
    tries = 0

    async def attempt() -> str:
        nonlocal tries
        tries += 1
        raise ModelUnavailable("no key")

    with pytest.raises(ModelUnavailable):
        await retry(attempt, Backoff(retries=5, first=0.0))
    assert tries == 1


async def test_a_retry_is_logged_without_keys(caplog: pytest.LogCaptureFixture) -> None:
    async def attempt() -> str:
        raise PassingFailure(ModelUnavailable("http://user:secret@host did not reply within 120 s"))

    with caplog.at_level("INFO", "tomewise"), pytest.raises(PassingFailure):
        await retry(attempt, Backoff(retries=2, first=0.0))
    first, second = caplog.messages
    assert first.startswith("retrying 1 of 2 in 0 s: ")
    assert first.endswith("did not reply within 120 s")
    assert second.startswith("retrying 2 of 2")
    assert "secret" not in caplog.text


async def test_a_wait_that_the_server_asks_for_is_told_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    waits: list[Waiting] = []

    async def sleep(_: float) -> None:
        pass

    def fail_with(retry_after: float | None):
        async def attempt() -> str:
            raise PassingFailure(ModelUnavailable("http://user:secret@host is busy"), retry_after)

        return attempt

    for retry_after in (3600.0, None):
        with caplog.at_level("INFO", "tomewise"), change_run(on_wait=waits.append), pytest.raises(PassingFailure):
            await retry(fail_with(retry_after), Backoff(retries=1, first=0.1, longest=9.0), sleep)
    (wait,) = waits
    assert (wait.seconds, wait.asked) == (9.0, 3600.0)
    assert wait.summary.startswith("waiting 9 s, since the server asks for 3600 s: http://")
    assert "secret" not in str(wait)
    assert caplog.messages[0].startswith("retrying 1 of 1 in 9 s, since the server asks for 3600 s: http://")
