"""Build in a separate process, against a server that plays the roles of a build and puts marks in its replies.

Every reply has the mark of its request, a digest of its messages. So a test can read from the replies in the file of a
tome which requests it remembers, independently of the code under test.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.language.openai_server import Behaviour, reply_with

from tomewise.language.prompts import Prompts
from tomewise.language.roles import EXTRACT_FACTS, NARRATE, SUMMARISE, ExtractIn, SummaryIn

LAYERS = {"extract_facts": "graph:passages-triples", "summarise": "tree", "narrate": "episodes"}
# UMAP takes seconds to import, and these tests do not depend on the reduction.
PLAIN = "import sys; sys.modules['umap'] = None; from tomewise.terminal.program import main; "
_READ = re.compile(r"<passage[^>]*>[^<]*?(\w{4,})[^<]*</passage>")  # a word of the passage, which the reply repeats
_OPENINGS = {
    role.name: Prompts().render(role, given).partition("\n")[0]
    for role, given in (
        (EXTRACT_FACTS, ExtractIn(text="")),
        (SUMMARISE, SummaryIn(texts=[])),
        (NARRATE, SummaryIn(texts=[])),
    )
}
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def role(request: dict[str, Any]) -> str:
    """The role that a request asks for; empty for roles that answer questions."""
    prompt = request["messages"][1]["content"]
    return next((name for name, opening in _OPENINGS.items() if prompt.startswith(opening)), "")


def mark(request: dict[str, Any]) -> str:
    """A digest of all messages of a request, without figures: a number that no text has does not become memory."""
    asked = "\0".join(message["content"] for message in request["messages"])
    return "mark" + sha256(asked.encode()).hexdigest()[:20].translate(_LETTERS)


def play_role(request: dict[str, Any], *, delay: float = 0.0) -> Behaviour:
    """Reply well to a request; equal requests get equal replies."""
    name = mark(request)
    if role(request) == "extract_facts":
        word = _READ.search(request["messages"][1]["content"])
        assert word is not None
        reply: dict[str, Any] = {"entities": [name], "triples": [[name, f"is with {word[1]} a part of", "the whole"]]}
    elif role(request):
        reply = {"summary": f"All that {name} tells."}
    else:
        reply = {"answer": "at nine", "choice": None, "quotes": []}
    return reply_with(json.dumps(reply), delay=delay)


def start_command(*words: object, first: str = "", **environment: str) -> subprocess.Popen[str]:
    """Start the command `tome` in a process; `first` is Python code that runs before it."""
    return subprocess.Popen(
        [sys.executable, "-c", f"{PLAIN}{first}\nmain()", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def read_marks(path: Path) -> set[str]:
    """Read the marks of the requests whose replies are in the file of a tome."""
    with closing(sqlite3.connect(path)) as connection:
        replies = [json.loads(reply) for (reply,) in connection.execute("SELECT reply FROM calls")]
    readings = [reply for reply in replies if "summary" in reply or "entities" in reply]  # not those to questions
    return {reply["summary"].split()[2] if "summary" in reply else reply["entities"][0] for reply in readings}
