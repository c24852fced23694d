"""How many questions the reply to the first call sends right: to a part, to the whole, to a count, to a list.

    python bench/reach.py ask MODEL [URL]     # asks the answering role and writes bench/reach_replies.jsonl
    python bench/reach.py                     # the share sent right by kind, of the replies that are recorded

`bench/reach_questions.jsonl` holds questions of people who did not see the code: `question`, `language`, `kind`
(narrow, whole, count, list) and `author`. The replies hold `question`, `reach` and `item`. A question is asked with one
passage that says nothing of it, since what it asks about is in its words.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tomewise.language.chat import ChatModel
from tomewise.language.roles import ANSWER, AnswerIn, Shown

QUESTIONS, REPLIES = (Path(__file__).with_name(f"reach_{name}.jsonl") for name in ("questions", "replies"))
KINDS = {"part": "narrow"}
PASSAGE = Shown(label="E1", text="The meeting was opened at nine.", document="meetings.md", place="part 1 of 1,986")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def ask(questions: Iterable[str], name: str, url: str | None) -> None:
    model = ChatModel(name, base_url=url)
    lines = []
    for question in questions:
        reply = await model.ask(ANSWER, AnswerIn(question=question, evidence=[PASSAGE], may_decline=True))
        lines.append(json.dumps({"question": question, "reach": reply.reach, "item": reply.item}, ensure_ascii=False))
    await model.close()
    REPLIES.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    questions = read(QUESTIONS)
    if sys.argv[1:]:
        asyncio.run(ask((row["question"] for row in questions), sys.argv[2], (*sys.argv[3:], None)[0]))
    sent = {row["question"]: KINDS.get(row["reach"], row["reach"]) for row in read(REPLIES)}
    groups = defaultdict[str, list[bool]](list)
    for row in questions:
        right = sent.get(row["question"]) == row["kind"]
        for group in (row["kind"], f"in {row['language']}", f"by {row['author']}", "all"):
            groups[group].append(right)
        if not right:
            print(f"{row['kind']} sent to {sent.get(row['question'])}: {row['question']}")
    for group, right in sorted(groups.items()):
        print(f"{group}: {sum(right)} of {len(right)} ({100 * sum(right) / len(right):.0f} %)")


if __name__ == "__main__":
    main()
