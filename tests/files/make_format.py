"""How the tomes here were made: `python tests/files/make_format.py format-3.tome`."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tomewise import Document, Tome

KEEPER = (
    "Ada Marsh kept the lighthouse at Skerry. She was the daughter of Captain Marsh. Captain Marsh sailed the Heron "
    "from Ostend until 1911. Tom Hale sold the Heron to Ida Poe in May 1912. Ida Poe lived in Ghent with her brother "
    "Sam Poe. The lighthouse at Skerry was built by Sam Poe. On the night of the storm Ada Marsh put out the light at "
    "nine. The Heron struck the cliff below the lighthouse. Tom Hale found the ledger of the Heron in the harbour. The "
    "ledger named Sam Poe as the owner of the map. Ada Marsh burned the map in the stove of the lighthouse. Captain "
    "Marsh never came back to Skerry. Nobody asked Ada Marsh why the light was out. Tom Hale asked the widow of the "
    "harbour master, who said that the lamp oil was gone. Ida Poe came to Skerry in June with a letter from her "
    "brother. The letter said that the map showed a cave under the cliff. Sam Poe had hidden forty coins in the cave "
    "before the storm. Tom Hale rowed to the cave at low tide. He found the coins and a button of Captain Marsh's "
    "coat. Ada Marsh knew the button at once. She wept, and then she lit the lamp again. The new keeper of Skerry is "
    "Tom Hale's daughter Nell. Nell keeps the button in a glass on the window sill of the lamp room."
)
COUNCIL = (
    "The council of Ghent bought the harbour from Tom Hale. It rained on the harbour all that winter, and nobody came. "
    "The clerk of the council was Rosa Lind. Rosa Lind wrote a letter to Ada Marsh about the ledger."
)
GONE = "Zoe Quill forged the Vellum Codex in Bruges. The Vellum Codex was sold to the council of Ghent."
SYSTEMS = ("comorag", "cogitorag", "cam")
QUESTIONS = (("comorag", "Why did Ada Marsh burn the map?"), ("cogitorag", "Who sold the Heron to Ida Poe?"))


def make(path: Path) -> None:
    """Two documents stay, one is removed; all layers of both systems are built, and two answers leave a trace."""
    with Tome.open(path, embedder="hash:32", passage_tokens=32) as tome:
        tome.add(
            Document(id="keeper", text=KEEPER, title="The keeper"),
            Document(id="council", text=COUNCIL),
            Document(id="gone", text=GONE),
        )
        for system in SYSTEMS:
            tome.build(system)
        tome.remove("gone")
        for system in SYSTEMS:
            tome.build(system)
        for system, question in QUESTIONS:
            tome.ask(question, system=system)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
        connection.execute("PRAGMA page_size = 2048")  # larger pages would be mostly empty
        connection.execute("VACUUM")


if __name__ == "__main__":
    sys.modules["umap"] = None  # type: ignore[assignment]  # clustered on PCA, with or without umap-learn
    make(Path(sys.argv[1]))
