"""Terminals of 80 and 200 columns, no colour, and the C locale."""

from __future__ import annotations

import re

import pytest
from tests.newcomer.conftest import Installed, everything, light

LETTER = "Ada Marsh forged the letter in May. Naïve café — 北京.\n"
COMMANDS = (
    ["--help"],
    ["add", "--help"],
    ["add", "--list-formats"],
    ["ask", "Who forged the letter?"],
    ["log"],
    ["models"],
    ["show"],
    ["systems"],
    ["systems", "comorag"],
)


@everything
@pytest.mark.parametrize("columns", [80, 200])
def test_lines_fit_the_terminal_without_colour(machine: Installed, columns: int):
    (machine.here / "novel.txt").write_text(LETTER, encoding="utf-8")
    assert machine.show(columns, "add", "novel.txt")[0] == 0
    for words in COMMANDS:
        code, shown = machine.show(columns, *words, NO_COLOR="1")
        assert code == 0, words
        assert "\x1b[3" not in shown, (words, shown)  # a colour
        assert "Traceback" not in shown
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).splitlines()
        assert max(map(len, lines)) <= columns, words


@light
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_other_locales(machine: Installed, locale: str):
    (machine.here / "novel.txt").write_text(LETTER, encoding="utf-8")
    assert machine.run("add", "novel.txt", LC_ALL=locale).returncode == 0
    ran = machine.run("ask", "What was written: naïve café?", "--trace", LC_ALL=locale)
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr
    assert "Naïve café — 北京" in ran.stdout
    # Without Python's own remedies the streams hold ASCII alone, as in a locale of one byte a letter.
    ascii_alone = {"LC_ALL": locale, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    for words in (["--help"], ["systems"], ["show"], ["ask", "Who forged the letter?", "--trace"]):
        ran = machine.run(*words, **ascii_alone)
        assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), (words, ran.stderr)
        assert ran.stdout.isascii()
