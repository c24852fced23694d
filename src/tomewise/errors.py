"""One tree of errors, named by what the caller does next.

Every error a user can cause or mend is a `TomewiseError`. Its message says what went wrong, the offending value, and
the remedy. `exit_code` is what the command `tome` leaves behind.
"""

from __future__ import annotations

from typing import ClassVar

from tomewise.credentials import hide_credentials


class TomewiseError(Exception):
    """Anything Tomewise refuses or could not do. A message holds no key and no password, whoever worded it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(hide_credentials(one) if isinstance(one, str) else one for one in args))


class UsageError(TomewiseError):
    """The request itself is wrong: mend the arguments and call again."""

    exit_code = 2


class UnknownName(UsageError):
    """A system, metric, document or model was named that does not exist."""


class ReadingError(TomewiseError):
    """A source could not be read as text: mend or leave out that source."""

    exit_code = 3


class StoreError(TomewiseError):
    """The file is no tome, is damaged, or does not fit this version or embedder."""

    exit_code = 4


class Locked(StoreError):
    """Somebody else is writing to this tome: wait, then try again."""


class NotBuilt(StoreError):
    """A memory layer that this system needs is missing or behind: run `tome build`."""


class MissingDependency(TomewiseError):
    """An optional part is not installed: install the extra that the message names."""

    exit_code = 5


class ModelError(TomewiseError):
    """A model call failed for good, after its retries."""

    exit_code = 6


class ModelUnavailable(ModelError):
    """The model could not be reached or refused the key: check the address, the key, the network."""


class BadReply(ModelError):
    """The reply did not fit its type, nor did the one repair that was asked for."""


class Refused(ModelError):
    """The model declined to reply."""


class BudgetExceeded(ModelError):
    """The next call would pass a limit on calls, tokens or money: raise the limit, or stop here."""

    exit_code = 7
