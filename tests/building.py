"""Building in a process of its own, against a server that plays the roles of a build and marks what it says.

Every reply holds the mark of its request, a digest of what was asked. So the replies that lie in the file of a tome
tell which requests it remembers, without any help from the code that remembers them.
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
# UMAP takes seconds to import, and what is clustered by does not matter to who is asked.
PLAIN = "import sys; sys.modules['umap'] = None; from tomewise.terminal.program import main; "
_READ = re.compile(r"<passage[^>]*>[^<]*?(\w{4,})[^<]*</passage>")  # a word of what is read, for a reply has some
_OPENINGS = {
    role.name: Prompts().render(role, given).partition("\n")[0]
    for role, given in (
        (EXTRACT_FACTS, ExtractIn(text="")),
        (SUMMARISE, SummaryIn(texts=[])),
        (NARRATE, SummaryIn(texts=[])),
    )
}


def role(request: dict[str, Any]) -> str:
    """Which role a request asks for; empty for those that answer questions."""
    prompt = request["messages"][1]["content"]
    return next((name for name, opening in _OPENINGS.items() if prompt.startswith(opening)), "")


def mark(request: dict[str, Any]) -> str:
    """A digest of all that was asked."""
    asked = "\0".join(message["content"] for message in request["messages"])
    return "mark" + sha256(asked.encode()).hexdigest()[:20]


def played(request: dict[str, Any], *, delay: float = 0.0) -> Behaviour:
    """A good reply, the same for the same request."""
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


def started(*words: object, first: str = "", **environment: str) -> subprocess.Popen[str]:
    """The command `tome` in a process; `first` is Python that runs before it."""
    return subprocess.Popen(
        [sys.executable, "-c", f"{PLAIN}{first}\nmain()", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def remembered(path: Path) -> set[str]:
    """The marks of the requests whose replies lie in a tome."""
    with closing(sqlite3.connect(path)) as connection:
        replies = [json.loads(reply) for (reply,) in connection.execute("SELECT reply FROM calls")]
    said_ = [reply["summary"].split()[2] if "summary" in reply else reply["entities"][0] for reply in replies]
    return set(said_)
