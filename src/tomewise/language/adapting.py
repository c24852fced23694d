"""What a server teaches of one model, by its refusals and its replies, and requests as that model takes them.

A refusal that names a field of the request, a role, the size of a batch or a length is read once (`learn`). The request
is changed and sent again, and what was learnt is kept in the cache folder of this machine. A statement of the user
(the setting `server`) comes first.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from filelock import FileLock

from tomewise.credentials import hide_credentials
from tomewise.language.pace import KEPT, Timing
from tomewise.language.usage import estimate_tokens
from tomewise.settings import find_cache_folder
from tomewise.types import Cost, read_plain

SYSTEM = "system"  # the role of the rules; where it is refused, they stand in the first turn of the user
LENGTHS = ("max_tokens", "max_completion_tokens")  # fields that bound a reply: the older one, the newer one
_RULES = (SYSTEM, "developer")
_KEPT = 200  # models that are remembered
_PAUSE = 10.0  # seconds
_LOCK_SECONDS = 1.0  # another process writes for milliseconds
_READ = 2_000  # characters of a refusal: what follows may repeat the request
_NEVER_REFUSED = frozenset({"model", "messages", "input", "stream", "prompt", "system"})  # a request has these
_LEAST = 512  # tokens: no window is smaller
# Words that mean a field.
_SCHEMA = re.compile(
    r"json.?(?:mode|schema)|structured.outputs?|response.?format|\b(?:grammar|schema)\b", re.IGNORECASE
)
_THINKING = re.compile("thinking|reasoning", re.IGNORECASE)
_NO_FIELD = re.compile(r"overload|try (?:again )?later|flagged|moderation|content.?(?:filter|policy)", re.IGNORECASE)
_TOO_MUCH = re.compile(r"too (?:large|high|big|many|long)|exceed|greater", re.IGNORECASE)
_ROLE = re.compile(
    r"\b(?:system|developer)['\"]?[\s-]+(?:role|messages?|instructions?|prompts?)\b|roles? must alternate|"
    r"only user (?:and|or) assistant|messages?\W{0,2}\d\W{0,2}\.?role|\brole\b.{0,40}\b(?:system|developer)\b|"
    r"variant .(?:system|developer)",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"(?<!less than the `)context[\s_](?:length|size|window)|\bn_ctx|too (?:long|many tokens)|prompt length|"
    r"token count|input length|tokens per minute|too large (?:to process|for model)|longer than|"
    r"reduce (?:the length|your message size)|"
    r"(?:inputs?`?|(?<!max_)(?<!completion_)tokens`?)[^.]{0,40}\b(?:must (?:be <|have less)|cannot exceed|exceed the)",
    re.IGNORECASE,
)
_BATCH = re.compile(
    r"(?<!physical )(?<!current )\bbatch\b|too many (?:inputs|items|texts|documents)|"
    r"\binputs\b.{0,20}\b(?:most|max)|\barray\b",
    re.IGNORECASE,
)
_NUMBER = r"(?>\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
_MOST = re.compile(  # no excess ("by 904"), no sum, and of a range ("[1, 4096]") the end
    r"(?:(?:context|n_ctx|max|allowed|limit|exceeds?|less than|at most|only|larger than|up to|should be|model with)"
    r"\w{0,30}+|>|<=)\W{0,30}+(?:(?!by\b|code\b|id\b)[a-z_'`]{1,30}+\W{1,30}+){0,6}?(?:[01],\s?)?+"
    rf"({_NUMBER})(?!\s*(?:[+>]|bytes|char))",
    re.IGNORECASE,
)
_NUMBERS = re.compile(rf"(?<![\w.-]){_NUMBER}(?![\w-])")


@dataclass(frozen=True, slots=True)
class Learnt:
    """What one model at one address takes. A number is 0 as long as it is not known."""

    refused: tuple[str, ...] = ()
    """Fields of a request that it does not take; `system` is the role."""
    window: int = 0
    """Tokens of prompt and reply, as a refusal states them."""
    reply: int = 0
    """The most tokens that a request may allow a reply."""
    thoughts: int = 0
    """Tokens that it wrote before a reply."""
    batch: int = 0
    """Texts that one request for vectors may hold."""
    text: int = 0
    """Tokens of one text, as the tokenizer of the embedder counts them."""
    timings: tuple[Timing, ...] = ()
    """Of its latest calls."""

    def describe(self) -> str:
        """What is known beside the speed, in one line; empty where nothing is."""
        fields = ", ".join(name for name in self.refused if name != SYSTEM)
        words = {
            f"takes no {fields}": fields,
            "takes no system role": SYSTEM in self.refused,
            f"a window of {self.window:,} tokens": self.window,
            f"replies of {self.reply:,} tokens at most": self.reply,
            f"thinks for some {self.thoughts:,} tokens": self.thoughts,
            f"{self.batch:,} texts a request": self.batch,
            f"{self.text:,} tokens a text": self.text,
        }
        return "; ".join(fact for fact, is_known in words.items() if is_known)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a server says against a request, in its own `words`. `sent` is the body of the request."""

    status: int
    words: str
    sent: Mapping[str, Any]
    parameter: str = ""
    window: int = 0

    @property
    def passes(self) -> bool:
        """Whether the tokens of a minute are used up, so that the same request may pass later."""
        return "per minute" in self.words and not self.find_limit()[0]

    @property
    def is_of_length(self) -> bool:
        """Whether it says that the prompt, or a text, is too long."""
        return (self.status == 413 or bool(_LENGTH.search(self.words))) and not self.passes

    @property
    def numbers(self) -> list[int]:
        """The numbers in its words, the largest first."""
        return sorted(self._read(_NUMBERS.findall(self.words)), reverse=True)

    def find_limit(self) -> tuple[int, int]:
        """The number of tokens that is allowed, and that which was asked for; 0 for what is not stated."""
        least = 1 if "input" in self.sent else _LEAST
        named = self._read([str(self.window), *_MOST.findall(self.words)])
        # A refusal may repeat the bound of the reply.
        limit = next((number for number in named if number >= least and number not in self._bounds), 0)
        asked = max(self.numbers, default=0)
        return limit, asked if 0 < limit < asked else 0

    @property
    def _bounds(self) -> list[int]:
        return [self.sent[name] for name in LENGTHS if name in self.sent]

    def _read(self, numbers: Sequence[str]) -> list[int]:
        """Those that may be about this request: no year and no id is."""
        most = 2 * sum((estimate_tokens(json.dumps(self.sent, ensure_ascii=False)), *self._bounds))
        found = (int(number.replace(",", "")) for number in numbers)
        return [number for number in found if 0 < number <= most]


def read_refusal(error: BaseException | None) -> Refusal | None:
    """What the server holds against a request, from the error of a client; None if no reply with an error came."""
    response: Any = None
    while error is not None and not hasattr(response, "status_code"):
        response, error = getattr(error, "response", None), error.__cause__
    if not hasattr(response, "status_code"):
        return None
    reason, sent = _parse(response.content), _parse(response.request.content)
    reason = reason["error"] if isinstance(reason, dict) and "error" in reason else reason
    named: Mapping[str, Any] = reason if isinstance(reason, dict) else {}
    words = named.get("message")
    if not isinstance(words, str):  # what some frameworks add is the request itself
        words = re.sub(r'"input": .*', "", json.dumps(reason, ensure_ascii=False)) if reason else ""
    parameter, window = named.get("param"), named.get("n_ctx")
    return Refusal(
        response.status_code,
        words[:_READ],
        sent if isinstance(sent, dict) else {},
        parameter if isinstance(parameter, str) else "",
        window if type(window) is int else 0,
    )


def _parse(body: bytes) -> Any:
    """The JSON of a body; of any other, such as the page of what stands before a server, its words without numbers."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return re.sub(r"\d", "", body.decode("utf-8", "replace"))


def learn(known: Learnt, refusal: Refusal, longest: int = 0) -> Learnt | None:
    """What is known after a refusal; None if it teaches nothing that would change the request.

    `longest` is the length of the longest text of a request for vectors, in tokens.
    """
    if refusal.status not in (400, 413, 422, 500):
        return None
    texts = refusal.sent.get("input")
    if isinstance(texts, list):
        return _learn_of_texts(known, refusal, len(texts), longest)
    name = _find_name(refusal)
    if refusal.is_of_length:
        limit = refusal.find_limit()[0]
        return replace(known, window=limit) if limit else None
    if name in LENGTHS:
        fewer = [number for number in refusal.numbers if 1 < number < refusal.sent[name]]
        if fewer or _TOO_MUCH.search(refusal.words):
            return replace(known, reply=(*fewer, refusal.sent[name] // 2)[0])
        if {name, *known.refused}.issuperset(LENGTHS):  # a reply without a bound may have no end
            return None
    if _ROLE.search(refusal.words):
        has_rules = any(turn.get("role") in _RULES for turn in refusal.sent.get("messages", ()))
        return _refuse(known, SYSTEM) if has_rules else None
    # Of what we send, a schema alone makes some servers break.
    return _refuse(known, name) if name and (refusal.status != 500 or name == "response_format") else None


def _refuse(known: Learnt, name: str) -> Learnt:
    return replace(known, refused=tuple(dict.fromkeys((*known.refused, name))))


def _find_name(refusal: Refusal) -> str:
    """The field of the request that a refusal names; empty if it names none."""
    words = "" if _NO_FIELD.search(refusal.words) else refusal.words
    known = refusal.sent.keys() - _NEVER_REFUSED
    named = map(str, re.findall(r"\w+", f"{refusal.parameter} {words}"))
    meant = ["response_format"] if _SCHEMA.search(words) else []
    meant += ["reasoning_effort", "chat_template_kwargs"] if _THINKING.search(words) else []
    return next((name for name in (*named, *meant) if name in known), "")


def _learn_of_texts(known: Learnt, refusal: Refusal, count: int, longest: int) -> Learnt | None:
    limit, asked = refusal.find_limit()
    is_unnamed = refusal.status == 413 and not _LENGTH.search(refusal.words)
    if count > 1 and (is_unnamed or _BATCH.search(refusal.words)):
        most = limit if 0 < limit < count else count // 2
        return replace(known, batch=min(most, known.batch or most))
    if refusal.is_of_length and longest > 1:
        share = 0.95 * limit / asked if asked else 0.5
        most = max(1, int(longest * share))
        return replace(known, text=min(most, known.text or most))
    return None


class Adapter:
    """One model at its address: what was learnt of it, which is kept, and what the user states of it."""

    def __init__(self, name: str, stated: Mapping[str, str] | None = None) -> None:
        self.name = hide_credentials(name)
        """The model and its address."""
        self._stated = stated or {}
        self._next_time = -inf

    @cached_property
    def known(self) -> Learnt:
        """What was learnt; what is set here counts until `keep` for this process alone."""
        return self._kept

    @cached_property
    def _kept(self) -> Learnt:
        return read_servers().get(self.name, Learnt())

    @property
    def refused(self) -> frozenset[str]:
        """What is left out of requests: what was refused, and what the user wants so."""
        on, off = ({name for name, value in self._stated.items() if value == word} for word in ("on", "off"))
        return frozenset({*self.known.refused, *off} - on - {"reasoning"})

    @property
    def reasoning(self) -> str:
        """How much the model shall think: off, low, medium or high; empty for as much as it does by itself."""
        return self._stated.get("reasoning", "")

    @property
    def thoughts(self) -> int:
        """Tokens that it writes before a reply, as far as that is known."""
        return 0 if self.reasoning == "off" else self.known.thoughts

    def is_wanted(self, name: str) -> bool:
        """Whether the user wants a field sent, whatever was refused."""
        return self._stated.get(name) == "on"

    def learn(self, refusal: Refusal) -> bool:
        """Take a refusal in. Returns whether that changes the request."""
        found = learn(self.known, refusal)
        if found is None or any(map(self.is_wanted, set(found.refused) - set(self.known.refused))):
            return False
        self.known = found
        return True

    def time(self, spent: Cost, seconds: float) -> None:
        """Learn from a call how fast the model is: from the first ones, then from one every ten seconds."""
        known = self.known
        if len(known.timings) < KEPT or monotonic() >= self._next_time:
            self._next_time = monotonic() + _PAUSE
            new = (spent.input_tokens - spent.cached_tokens, spent.output_tokens, round(seconds, 3))
            self.known = replace(known, timings=(*known.timings[1 - KEPT :], new))

    def keep(self) -> None:
        """Remember on this machine what is new, beside what other processes learnt."""
        if (known := self.known) != self._kept and _write(self.name, self._kept, known):
            self._kept = known

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of a request as the model takes it."""
        refused = self.refused
        for name, twin in (LENGTHS, LENGTHS[::-1]):
            if name in refused and name in body and twin not in refused:
                body[twin] = body.pop(name)
        if SYSTEM in refused and isinstance(body.get("messages"), list):
            body["messages"] = _move_rules(body["messages"])
        return {name: value for name, value in body.items() if name not in refused or name in _NEVER_REFUSED}


def _move_rules(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns with the rules at the beginning of the first turn of the user."""
    rules = [turn["content"] for turn in turns if turn["role"] in _RULES]
    first, *rest = (turn for turn in turns if turn["role"] not in _RULES)
    return [{**first, "content": "\n\n".join([*rules, first["content"]])}, *rest]


def merge(before: Learnt, after: Learnt, others: Learnt) -> Learnt:
    """What `others` say, with what changed from `before` to `after`."""
    changed = {name: value for name, value in asdict(after).items() if value != getattr(before, name)}
    if "refused" in changed:
        gone = set(before.refused) - set(after.refused)
        changed["refused"] = tuple(dict.fromkeys(each for each in others.refused + after.refused if each not in gone))
    return replace(others, **changed)


def _find_file() -> Path:
    return find_cache_folder() / "servers.json"


def read_servers() -> dict[str, Learnt]:
    """What is kept on this machine, by model and address; the latest last."""
    return {name: known for name, row in _read_rows().items() if (known := _read_row(row)) != Learnt()}


def _read_rows() -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        rows = json.loads(_find_file().read_bytes())
        return rows if isinstance(rows, dict) else {}
    return {}


def _read_row(row: Any) -> Learnt:
    """What a row says; one that another version wrote may have more fields."""
    with suppress(ValueError):
        return read_plain(Learnt, row)
    return Learnt()


def _write(name: str, before: Learnt, after: Learnt) -> bool:
    """Keep what changed of one model, and of all models the latest `_KEPT`. Returns whether the file could be written.

    Where it cannot, it is learnt again.
    """
    file = _find_file()
    with suppress(OSError, NotImplementedError):  # the latter where files have no locks
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock", timeout=_LOCK_SECONDS), TemporaryDirectory(dir=file.parent) as folder:
            rows = _read_rows()
            known = merge(before, after, _read_row(rows.pop(name, {})))
            rows[name] = {key: value for key, value in asdict(known).items() if value}
            new = Path(folder, file.name)
            new.write_text(json.dumps(dict(list(rows.items())[-_KEPT:])))
            os.replace(new, file)
        return True
    return False
