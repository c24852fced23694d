"""Ask a real model the frozen questions, keep each reply, and count what its replies were good for.

`python bench/small_models.py NAME --url http://127.0.0.1:9970/v1` asks the model at this address (see
`../shared/tools/local_model.py`) the questions of `bench/frozen/` and prints a row. `--half odd` are the questions on
which prompts were chosen, `--half even` those that are reported. `--system investigate` asks another system,
`--plain` sends no `response_format`. Each request goes through a server on loopback that keeps it with its reply in
`bench/frozen/replies/NAME.jsonl`, under the digest of what was sent: a request that was sent before costs nothing. The
answers go to `--out`, to be read and judged by `bench/frozen/rubric.md`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tomewise import Document, Tome
from tomewise.errors import TomewiseError

FROZEN = Path(__file__).parent / "frozen"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PATIENCE = 1_800  # seconds for one reply


@dataclass
class Keeper:
    """Passes requests on to a model, and keeps each reply under the digest of its request."""

    url: str
    file: Path
    plain: bool
    patience: int = PATIENCE  # seconds
    asked: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.kept = {row["digest"]: row for row in (read_lines(self.file) if self.file.exists() else [])}

    def reply(self, request: dict[str, Any]) -> tuple[int, bytes]:
        """The status and the body of the reply."""
        if self.plain:
            request.pop("response_format", None)
        body = json.dumps(request).encode()  # the order of a schema's fields is that of the reply
        digest = sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:16]
        row = self.kept.get(digest) or self.ask(digest, request, body)
        is_again = any(turn["role"] == "assistant" for turn in request["messages"])  # it shows a reply that did not fit
        self.asked.append({**row, "again": is_again, "request": request})
        return row["status"], json.dumps(row["reply"]).encode()

    def ask(self, digest: str, request: dict[str, Any], body: bytes) -> dict[str, Any]:
        """What the model replies now; several may ask at a time."""
        started = time.monotonic()
        ask = urllib.request.Request(f"{self.url}/chat/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(ask, timeout=self.patience) as response:
                status, reply = response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode(errors="replace")
            try:
                reply = json.loads(text)
            except ValueError:
                reply = {"error": {"message": text}}
        kept = {name: reply[name] for name in ("choices", "usage", "error") if name in reply}
        row = {"digest": digest, "status": status, "seconds": round(time.monotonic() - started, 1), "reply": kept}
        if status >= 500 or status == 429:  # the same request may be answered later
            return row
        with self.lock, self.file.open("a", encoding="utf-8") as file:
            self.kept[digest] = row
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        return row


@contextmanager
def keep_replies(keeper: Keeper) -> Iterator[str]:
    """The address of a server on loopback that answers through `keeper`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = keeper.reply(request)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def read_questions() -> list[dict[str, Any]]:
    """The frozen questions, those of published sets with their words from `../shared/data`."""
    musique = {row["id"]: row for row in read_lines(DATA / "musique/questions.jsonl")}
    conversation = json.loads((DATA / "locomo/locomo10.json").read_text("utf-8"))[0]
    questions = read_lines(FROZEN / "questions.jsonl")
    for row in questions:
        if row["set"] == "musique":
            row |= {"question": musique[row["source"]]["question"], "answer": musique[row["source"]]["answers"]}
        elif row["set"] == "locomo":
            published = conversation["qa"][int(row["source"].partition(":")[2])]
            row |= {"question": published["question"], "answer": published.get("answer", "not stated")}
    return questions


def read_texts(name: str, questions: list[dict[str, Any]]) -> list[Document]:
    """The documents of a set: a text of ours, or the published passages or turns around those that it needs."""
    own = FROZEN / f"{name}.md"
    if own.exists():
        return [Document(id=name, text=own.read_text("utf-8"), title=name)]
    if name == "musique":
        near = {id + by for row in questions for id in row["passages"] for by in range(-5, 6)}
        rows = [row for row in read_lines(DATA / "musique/corpus.jsonl") if row["id"] in near]
        return [Document(id=str(row["id"]), text=row["text"], title=row["title"]) for row in rows]
    conversation = json.loads((DATA / "locomo/locomo10.json").read_text("utf-8"))[0]["conversation"]
    documents = []
    for number in range(1, len(conversation)):
        if turns := conversation.get(f"session_{number}"):
            lines = [f"{turn['speaker']}: {turn['text']}" for turn in turns]
            text = "\n\n".join([conversation[f"session_{number}_date_time"], *lines])
            documents.append(Document(id=f"session-{number}", text=text, title=f"Session {number}"))
    return documents


def ask_all(given: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each question: its answer, what was quoted, and what each request brought."""
    questions = read_questions()
    wanted = [row for row in questions if given.half in (row["half"], "all") and row["set"] in given.sets]
    file = FROZEN / "replies" / f"{given.name}.jsonl"
    file.parent.mkdir(exist_ok=True)
    keeper = Keeper(given.url, file, given.plain)
    rows = []
    with keep_replies(keeper) as address, tempfile.TemporaryDirectory() as folder:
        for name in given.sets:
            asked = [row for row in wanted if row["set"] == name][: given.most]
            options = {"base_url": address, "settings": {"timeout": PATIENCE, "system": given.system}}
            with Tome.open(Path(folder) / f"{name}.tome", model=f"openai:{given.name}", **options) as tome:
                tome.add(*read_texts(name, [row for row in questions if row["set"] == name]))
                for question in asked:
                    rows.append(ask_one(tome, question, keeper, given.system))
                    print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
    return rows


def ask_one(tome: Tome, question: dict[str, Any], keeper: Keeper, system: str) -> dict[str, Any]:
    """What came of one question."""
    keeper.asked.clear()
    row: dict[str, Any] = {key: question[key] for key in ("id", "question", "answer")}
    try:
        answer = tome.ask(question["question"], system=system)
        row |= {
            "got": answer.text,
            "resolved": answer.resolved,
            "claimed": answer.claimed,
            "support": answer.support,
            "quotes": [quote.text for quote in answer.quotes],
            "dropped": answer.dropped_quotes,
            "calls": answer.cost.calls,
        }
    except TomewiseError as error:
        row |= {"error": f"{type(error).__name__}: {error}"}
    texts = [reply["reply"].get("choices", [{}])[0].get("message", {}).get("content") for reply in keeper.asked]
    seconds = sum(reply["seconds"] for reply in keeper.asked)
    again = sum(reply["again"] for reply in keeper.asked)
    return row | {"requests": len(texts), "again": again, "seconds": round(seconds, 1), "replies": texts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--url", required=True)
    parser.add_argument("--system", default="hybrid context=1200")
    parser.add_argument("--half", choices=["odd", "even", "all"], default="even")
    parser.add_argument("--sets", nargs="+", default=["mystery", "reports", "musique", "locomo"])
    parser.add_argument("--most", type=int, help="questions of each set")
    parser.add_argument("--plain", action="store_true", help="without response_format")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = ask_all(given)
    if given.out:
        given.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    answered = [row for row in rows if "error" not in row]
    at_once = sum(not row["again"] and bool(row["quotes"]) for row in answered)
    print(
        f"{given.name} · {given.system} · {given.half}{' · plain' if given.plain else ''}: {len(rows)} questions, "
        f"{at_once} at once with a true quotation, {sum(row['again'] > 0 for row in answered)} asked again, "
        f"{len(rows) - len(answered)} lost, {sum(len(row['quotes']) for row in answered)} quotations found, "
        f"{sum(row['dropped'] for row in answered)} dropped"
    )


if __name__ == "__main__":
    main()
