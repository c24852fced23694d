"""From the messages of a chat to a question with earlier turns; and prompts of chat clients that are no questions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tomewise.errors import UsageError
from tomewise.server.bodies import MOST_QUESTION, Name
from tomewise.tome.session_record import Turn

_NOT_SERVED = ("tools", "functions", "tool_choice", "audio", "modalities", "logprobs")


class Part(BaseModel):
    """A part of a message."""

    model_config = ConfigDict(strict=True, extra="ignore")

    type: str
    text: Annotated[str, Field(max_length=MOST_QUESTION)] = ""


class Message(BaseModel):
    """A message of a chat."""

    model_config = ConfigDict(strict=True, extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str, Field(max_length=MOST_QUESTION)] | Annotated[list[Part], Field(max_length=1000)] | None = (
        None
    )

    @property
    def text(self) -> str:
        """The text of all parts. Raises UsageError for a part that is not text."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        for part in self.content:
            if part.type != "text":
                raise UsageError(f"messages: a part of type {part.type[:40]!a} cannot be read here: send text alone")
        return "\n".join(part.text for part in self.content)


class StreamOptions(BaseModel):
    """Whether the last chunk says what was used."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool | None = False


class Chat(BaseModel):
    """A request for the next message of a chat."""

    model_config = ConfigDict(strict=True, extra="allow")

    model: Name
    messages: Annotated[list[Message], Field(min_length=1, max_length=1000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    response_format: dict[str, Any] | None = None

    def check(self) -> None:
        """Raise UsageError for what a tome cannot do, by name."""
        if self.n not in (None, 1):
            raise UsageError(f"n is {self.n}: this server gives one answer to a question")
        if self.response_format and self.response_format.get("type", "text") != "text":
            raise UsageError("response_format: this server answers in text; the answer as data is under `tomewise`")
        for name in _NOT_SERVED:
            if (self.model_extra or {}).get(name) not in (None, [], {}, "none", "auto", False, ["text"]):
                raise UsageError(f"{name}: this server does not serve that; leave it out")
        if self.messages[-1].role != "user":
            raise UsageError("messages: the last one must be of the user; it is the question")


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
class ChatQuestion:
    """A question, the instructions for its answer, and the earlier turns of the chat."""

    question: str
    instructions: str = ""
    turns: tuple[Turn, ...] = ()


def read_chat(messages: Sequence[Message]) -> ChatQuestion:
    """The question of the last message, with the system messages as its instructions. Raises UsageError."""
    instructions = "\n\n".join(each.text for each in messages if each.role in ("system", "developer"))
    return ChatQuestion(messages[-1].text, instructions, tuple(_read_turns(messages[:-1])))


def _read_turns(messages: Sequence[Message]) -> Iterator[Turn]:
    """Each message of the user with the reply to it, empty where the chat has none."""
    asked: str | None = None
    for message in messages:
        if message.role == "user":
            if asked is not None:
                yield Turn(asked=asked, question=asked, answer="")
            asked = message.text
        elif message.role == "assistant" and asked is not None:
            yield Turn(asked=asked, question=asked, answer=message.text)
            asked = None
    if asked is not None:
        yield Turn(asked=asked, question=asked, answer="")


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
