"""From a story to a cited answer, and back: add, ask, check every quotation, remove, and find the memory as it was.

python examples/novel.py [FILE]     # a story of your own; without one, the story that Tomewise brings
"""

from __future__ import annotations

import sys
from pathlib import Path

from tomewise import Document, Tome
from tomewise.sample import STORY

LETTER = Document(id="letter", title="A letter", text="Dear Ada, the tide clock was wrong by an hour. Yours, Tom.")


def main() -> None:
    """Print an answer with its quotations, and what a document left behind."""
    story = Path(sys.argv[1]) if sys.argv[1:] else STORY
    with Tome.open("novel.tome") as tome:  # model="ollama:qwen3" or "openai:gpt-4o-mini" answers in words of its own
        tome.add(story)
        tome.build("associative")  # a graph of who and what
        before = list(tome.memory.export())

        answer = tome.ask("Who kept the clock of the Tide House?", system="associative")
        print(answer)
        for quote in answer.quotes:
            text = tome.documents[quote.document].text
            if text[quote.start : quote.end] != quote.text:
                raise SystemExit(f"a quotation is not in the text: {quote.text}")

        tome.add(LETTER)
        tome.build("associative")
        with_letter = list(tome.memory.export())
        tome.remove("letter")
        tome.build("associative")
        after = list(tome.memory.export())
        print(f"{len(with_letter) - len(before)} lines of memory came with the letter")
        print("forgotten to the last line" if after == before else "something of the letter is left")


if __name__ == "__main__":
    main()
