"""One tree of errors, named by what the caller does next.

Every error that a user can cause or fix is a `TomewiseError`. Its message says what went wrong, the offending value,
and the remedy. The command `tome` exits with `exit_code`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar

from tomewise.credentials import hide_credentials

OTHER_PYTHON = "install Tomewise with another Python, such as that of `uv python install`, of conda or of python.org"
NO_WORDS = f"the SQLite of this Python cannot search words, since it lacks FTS5: {OTHER_PYTHON}"


class TomewiseError(Exception):
    """Something that Tomewise refuses or cannot do. Keys and passwords in the message are always hidden."""

    exit_code: ClassVar[int] = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(hide_credentials(arg) if isinstance(arg, str) else arg for arg in args))


class UsageError(TomewiseError):
    """The request itself is wrong: correct the arguments and call again."""

    exit_code = 2


class UnknownName(UsageError):
    """The name of a system, metric, document or model that does not exist."""


class ReadingError(TomewiseError):
    """A source could not be read as text: repair it or leave it out."""

    exit_code = 3


class StoreError(TomewiseError):
    """The file is not a tome, is damaged, or does not fit this version or embedder."""

    exit_code = 4


class Locked(StoreError):
    """Another process is writing to this tome: wait, then try again."""


class ConnectionLost(StoreError):
    """The database ended the connection: try again."""


class NotBuilt(StoreError):
    """A memory layer that this system needs is missing or not up to date: run `tome build`."""


class MissingDependency(TomewiseError):
    """An optional part is not installed: install the extra that the message names."""

    exit_code = 5


class PartError(TomewiseError):
    """A part from outside failed: mend it, or use another one. `part` names it; the cause is what it raised."""

    exit_code = 5

    def __init__(self, message: str, part: str = "") -> None:
        super().__init__(message)
        self.part = part


class ModelError(TomewiseError):
    """A model call failed for good, after its retries."""

    exit_code = 6


class ModelUnavailable(ModelError):
    """The model could not be reached or refused the key: check the address, the key, the network."""


class KeepsFailing(ModelUnavailable):
    """Call after call failed, with no reply between them: mend what the message names, then try again."""


class PromptTooLong(ModelError):
    """The server takes a shorter prompt: `window` tokens, where it says so, of `asked` that the prompt has."""

    def __init__(self, message: str, window: int = 0, asked: int = 0) -> None:
        super().__init__(message)
        self.window = window
        self.asked = asked


class BadReply(ModelError):
    """The reply did not fit its type, and neither did the one repair that was requested."""


class Refused(ModelError):
    """The model declined to reply."""


class BudgetExceeded(ModelError):
    """The next call would pass a limit on calls, tokens or money: raise the limit, or stop here."""

    exit_code = 7


_ALIKE = 0.4  # the least difflib ratio at which a known name counts as a likely misspelling


def suggest(name: str, known: Iterable[str]) -> str:
    """`did you mean 'NEAREST'? ` for a message, or an empty text if no known name is near. Case does not count."""
    spellings = {spelling.lower(): spelling for spelling in known}
    near = get_close_matches(name.lower(), spellings, n=1, cutoff=_ALIKE)
    return f"did you mean {spellings[near[0]]!r}? " if near else ""


def describe_fault(error: BaseException) -> str:
    """An error that nobody foresaw, in one short line: its type and what it says."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def describe_seconds(seconds: float) -> str:
    """How long something takes."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def count_noun(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
