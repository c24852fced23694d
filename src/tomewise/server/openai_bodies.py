"""What clients of OpenAI's protocol send. Fields for sampling, and any others that change nothing here, are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tomewise.errors import UsageError
from tomewise.server.bodies import MOST_QUESTION, Name

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
