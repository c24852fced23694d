"""From the messages of a chat to one question; and the prompts of chat clients that are no questions at all."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tomewise.server.openai_bodies import Message

_TITLE = 40  # characters of the title of a chat
# The tasks that Open WebUI and LibreChat send beside each message: what they ask for, and the empty reply.
_TASK = re.compile(r"\s*(### Task:|Provide a concise, 5-word-or-less title)", re.IGNORECASE)
_REPLIES: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    (re.compile(r"follow[- _]?up", re.IGNORECASE), {"follow_ups": []}),
    (re.compile(r"\btags\b", re.IGNORECASE), {"tags": []}),
    (re.compile(r"search quer|\bqueries\b", re.IGNORECASE), {"queries": []}),
    (re.compile(r"autocomplet|completion", re.IGNORECASE), {"text": ""}),
)
_FIRST_TURN = re.compile(r"^(?:USER|Human|User): *(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question with the instructions for its answer; `notes` say what of the chat was not used."""

    question: str
    instructions: str = ""
    notes: tuple[str, ...] = ()


def read_turn(messages: Sequence[Message]) -> Turn:
    """The question of the last message, and the system messages as its instructions. Raises UsageError."""
    instructions = "\n\n".join(each.text for each in messages if each.role in ("system", "developer"))
    earlier = [each for each in messages[:-1] if each.role in ("user", "assistant")]
    question, notes = make_standalone(messages[-1].text, earlier)
    return Turn(question, instructions, notes)


def make_standalone(question: str, earlier: Sequence[Message]) -> tuple[str, tuple[str, ...]]:
    """A question that can be understood without the earlier turns.

    The place of the role `rephrase`. Until there is one, the question stays as it is, and a note says so.
    """
    if not earlier:
        return question, ()
    return question, ("the earlier messages of this chat were not read: the last one alone is the question",)


def answer_task(messages: Sequence[Message]) -> str | None:
    """The reply to a prompt by which a chat client asks for a title, tags or follow-ups; None for a question.

    No model is asked for them: the title is the beginning of the chat.
    """
    text = messages[-1].text
    begin = _TASK.match(text)
    if begin is None:
        return None
    task = text[: text.lower().find("chat_history")] if "chat_history" in text.lower() else text
    first = _FIRST_TURN.search(text)
    title = " ".join((first[1] if first else "Questions").split())[:_TITLE]
    if "title" in task.split("\n\n")[0].lower():
        return title if begin[1].lower().startswith("provide") else json.dumps({"title": title}, ensure_ascii=False)
    return next((json.dumps(reply) for pattern, reply in _REPLIES if pattern.search(task)), json.dumps({}))
