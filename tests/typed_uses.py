"""What type checkers see of the plain methods. `make check` reads this file with mypy; nothing runs it."""

from __future__ import annotations

from typing import assert_type

from tomewise import Answer, Tome


def use_plain_methods(tome: Tome) -> None:
    assert_type(tome.ask("Who?", options=("Ada", "Ole")), Answer)
    assert_type(tome.ask_many(["Who?"]), list[Answer])
    assert_type(tome.ask_many(["Who?"], return_exceptions=True), list[Answer | Exception])
    assert_type(tome.sessions["s"].ask("Who?"), Answer)
    tome.ask(3)  # type: ignore[arg-type]
    tome.add("a.txt", prefx="b")  # type: ignore[call-arg]
