"""Terminals of 80 and 200 columns, no colour, the C locale, and pipes."""

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


@everything
def test_a_terminal_shows_the_answer_and_no_spinner_stays(machine: Installed):
    (machine.here / "novel.txt").write_text(LETTER, encoding="utf-8")
    assert machine.show(80, "add", "novel.txt")[0] == 0
    code, shown = machine.show(80, "ask", "Who forged the letter?")
    assert code == 0
    assert "Ada Marsh" in shown
    assert shown.rfind("\x1b[?25h") >= shown.rfind("\x1b[?25l")  # the cursor is there again


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


@light
def test_pipes(machine: Installed):
    (machine.here / "novel.txt").write_text(LETTER, encoding="utf-8")
    assert machine.run("add", "-", stdin=LETTER).returncode == 0
    ran = machine.call("bash", "-c", f"{machine.tome} systems | head -1; echo ${{PIPESTATUS[0]}}")
    assert ran.stdout.splitlines()[-1] in ("0", "1")
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr
    assert "\x1b" not in machine.run("show").stdout
