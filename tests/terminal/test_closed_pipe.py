"""A command whose output nobody reads any more, as in `tome ask --trace ... | head -1`."""

from __future__ import annotations

import subprocess
import sys

from tomewise import Document, Tome


def test_a_question_ends_when_its_pipe_is_closed(here):
    with Tome.open(here / "memory.tome", embedder="hash") as tome:
        tome.add(Document(id="log", text="The keeper, Ada Marsh, put out the light at nine."))
    words = ["ask", "Who put out the light?", "--system", "hybrid+probe cycles=1", "--trace"]
    command = [sys.executable, "-m", "tomewise", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            running.stdout.close()
            assert running.wait(timeout=60) == 1
        finally:
            running.kill()
        assert "Traceback" not in running.stderr.read()
