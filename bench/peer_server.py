"""The fake model of `with_peers.py`: a server on loopback that all sides ask, with a fixed latency for each completion.

    python bench/peer_server.py [LATENCY]        prints its address; ends with standard input

It tells by the prompt which task it is, of ours, of GraphRAG 3.3.0 or of LightRAG 1.5.7, and replies in that form with
equal content: what a real model extracted of the passages in the text (`../shared/data/novels`), and elsewhere words of
the prompt. It counts requests, and a token for each 4 characters. Vectors are hashed from words, without a latency.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import uvicorn

from tomewise.embedding.hash import HashEmbedder

GRAPH = Path(__file__).resolve().parents[2] / "shared" / "data" / "novels" / "gods_of_mars_graph.jsonl"
DIMENSIONS = 384
_SIGNATURE = 60  # characters in the middle of a passage, by which it is recognised in a text
_PART = 60  # words of a summary, and of each of five findings: about 400 in a report
_ANSWER = 80  # words
_FOLLOW_UPS = 5
_TAGS = re.compile(r"<(?:passage|evidence|text)[^>]*>\n(.*?)\n</(?:passage|evidence|text)>", re.DOTALL)
_LABELS = re.compile(r'label="([A-Z]\d+)"')

Reply = Mapping[str, Any] | str


# ---------------------------------------------------------------- what the model knows


def squeeze(text: str) -> str:
    return "".join(text.split())


@lru_cache(maxsize=1)
def read_graph() -> tuple[Mapping[int, str], Mapping[int, list[dict[str, Any]]], Mapping[int, list[dict[str, Any]]]]:
    """By passage: its signature, and its entities and relations, each with one of its descriptions."""
    rows = [json.loads(line) for line in GRAPH.read_text(encoding="utf-8").splitlines()]
    signatures: dict[int, str] = {}
    entities: dict[int, list[dict[str, Any]]] = {}
    relations: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == "passage":
            text = squeeze(row["text"].strip("\ufeff\ufffd"))
            middle = len(text) // 2
            signatures[row["index"]] = text[middle - _SIGNATURE // 2 : middle + _SIGNATURE // 2]
            continue
        descriptions = row["description"].split("<SEP>")
        keywords = row.get("keywords", "").split("<SEP>")
        for number, passage in enumerate(row["passages"]):
            found = {**row, "description": descriptions[number % len(descriptions)]}
            found["keywords"] = keywords[number % len(keywords)]
            (entities if row["kind"] == "entity" else relations).setdefault(passage, []).append(found)
    return signatures, entities, relations


def extract(text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The entities and relations of the passages whose middle is in the text, each once."""
    signatures, entities, relations = read_graph()
    squeezed = squeeze(text)
    here = [index for index, signature in signatures.items() if signature and signature in squeezed]
    nodes = {row["name"]: row for index in here for row in entities.get(index, ())}
    edges = {(row["head"], row["tail"]): row for index in here for row in relations.get(index, ())}
    return list(nodes.values()), [row for ends, row in edges.items() if all(end in nodes for end in ends)]


def take_words(text: str, count: int, start: int = 0) -> str:
    words = text.split()
    return " ".join(words[start : start + count] or words[:count] or ["nothing"])


def split_keywords(question: str) -> tuple[list[str], list[str]]:
    """Details, which are the names in a question, and themes, which are the rest."""
    words = re.findall(r"[\w']+", question)[1:]
    details = re.findall(r"[A-Z][\w']+(?: [A-Z][\w']+)*", question.partition(" ")[2])
    return details, [" ".join(word for word in words if word[0].islower())]


def rate(question: str, report: str) -> int:
    details, _ = split_keywords(question)
    return 3 if any(name.lower() in report.lower() for name in details) else 0


def follow_up(question: str, count: int = _FOLLOW_UPS) -> list[str]:
    return [f"What of number {number} would help to answer: {question[:120]}?" for number in range(1, count + 1)]


# ---------------------------------------------------------------- our tasks


def read_material(prompt: str) -> str:
    return "\n".join(_TAGS.findall(prompt))


def read_tag(prompt: str, tag: str) -> str:
    found = re.findall(rf"<{tag}[^>]*>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return found[-1] if found else ""


def extract_ours(prompt: str) -> Reply:
    nodes, edges = extract(read_tag(prompt, "passage"))
    return {
        "entities": [{key: row[key] for key in ("name", "type", "description")} for row in nodes],
        "relationships": [
            {
                "source": row["head"], "target": row["tail"], "description": row["description"],
                "keywords": row["keywords"].split(", "), "strength": 7,
            }
            for row in edges
        ],
    }  # fmt: skip


def report_ours(prompt: str) -> Reply:
    material, labels = read_material(prompt), _LABELS.findall(prompt)
    findings = [
        {
            "headline": take_words(material, 8, _PART * number),
            "explanation": take_words(material, _PART, _PART * number),
            "records": labels[number - 1 : number],
        }
        for number in range(1, 6)
    ]
    head = {"title": take_words(material, 8), "summary": take_words(material, _PART)}
    return {**head, "importance": 5, "reason": take_words(material, 12), "findings": findings}


def answer_ours(prompt: str) -> Reply:
    passage = re.search(r'<evidence label="(E\d+)" kind="passage"[^>]*>\n(.*?)</evidence>', prompt, re.DOTALL)
    quotes = [{"label": passage[1], "quote": passage[2].strip()[:80]}] if passage else []
    return {
        "reasoning": "The passages say so.", "supported": "full", "answer": take_words(read_material(prompt), _ANSWER),
        "choice": None, "quotes": quotes, "missing": "",
    }  # fmt: skip


def map_ours(prompt: str) -> Reply:
    labels, material = _LABELS.findall(prompt), read_material(prompt)
    points = [
        {"description": take_words(material, 40, 40 * number), "labels": [label], "score": 60}
        for number, label in enumerate(labels[:3])
    ]
    return {"points": points}


def name_keywords(prompt: str) -> Reply:
    details, themes = split_keywords(read_tag(prompt, "question"))
    return {"themes": themes, "details": details}


def explore_ours(prompt: str) -> Reply:
    found = take_words(read_material(prompt), _ANSWER)
    return {"answer": found, "score": 60, "follow_ups": follow_up(read_tag(prompt, "probe"))}


def rate_ours(prompt: str) -> Reply:
    return {
        "reason": "It names them.",
        "rating": rate(read_tag(prompt, "question"), read_tag(prompt, "text")),
    }


# ---------------------------------------------------------------- tasks of the peers


def extract_graphrag(prompt: str) -> Reply:
    nodes, edges = extract(prompt.rpartition("-Real Data-")[2])
    lines = [f'("entity"<|>{row["name"]}<|>{row["type"]}<|>{row["description"]})' for row in nodes]
    lines += [f'("relationship"<|>{row["head"]}<|>{row["tail"]}<|>{row["description"]}<|>7)' for row in edges]
    return "\n##\n".join([*lines, "<|COMPLETE|>"])


def extract_lightrag(prompt: str) -> Reply:
    nodes, edges = extract(prompt.rpartition("---Input Text---")[2])
    lines = [f"entity<|#|>{row['name']}<|#|>{row['type']}<|#|>{row['description']}" for row in nodes]
    lines += [
        f"relation<|#|>{row['head']}<|#|>{row['tail']}<|#|>{row['keywords']}<|#|>{row['description']}" for row in edges
    ]
    return "\n".join([*lines, "<|COMPLETE|>"])


def report_graphrag(prompt: str) -> Reply:
    material = prompt.rpartition("# Real Data")[2].partition("Text:")[2].partition("The report should include")[0]
    findings = [
        {"summary": take_words(material, 8, _PART * number), "explanation": take_words(material, _PART, _PART * number)}
        for number in range(1, 6)
    ]
    head = {"title": take_words(material, 8), "summary": take_words(material, _PART)}
    return {**head, "rating": 5.0, "rating_explanation": take_words(material, 12), "findings": findings}


def map_graphrag(prompt: str) -> Reply:
    material = prompt.partition("---Data tables---")[2]
    points = [
        {"description": f"{take_words(material, 40, 40 * number)} [Data: Reports ({number})]", "score": 60}
        for number in range(3)
    ]
    return {"points": points}


def rate_graphrag(prompt: str) -> Reply:
    report, _, rest = prompt.partition("---Information---")[2].partition("---Question---")
    return {"reason": "It names them.", "rating": rate(rest.partition("---Target")[0].strip(), report)}


def prime_graphrag(prompt: str) -> Reply:
    query = prompt.partition("For the query:")[2].partition("The top-ranked")[0].strip()
    found = take_words(prompt.partition("community summaries:")[2], _ANSWER)
    return {"intermediate_answer": found, "score": 60, "follow_up_queries": follow_up(query)}


def explore_graphrag(prompt: str) -> Reply:
    found = take_words(prompt.partition("---Data tables---")[2], _ANSWER)
    return {"response": found, "score": 60, "follow_up_queries": follow_up(prompt[-200:].strip())}


def name_keywords_lightrag(prompt: str) -> Reply:
    details, themes = split_keywords(prompt.rpartition("User Query:")[2].partition("\n")[0].strip())
    return {"high_level_keywords": themes, "low_level_keywords": details}


def summarise(prompt: str) -> Reply:
    return take_words(prompt.rpartition("Description List:")[2], _ANSWER)


def write_text(prompt: str) -> Reply:
    return take_words(prompt[-6000:], _ANSWER)


TASKS: Sequence[tuple[str, str, Callable[[str], Reply]]] = (
    ("Describe who and what matters in the passage", "extract", extract_ours),
    ("People, places, things and ideas of a text were linked", "report", report_ours),
    ("Name what to search for to answer the question", "keywords", name_keywords),
    ("Each <evidence> is a report about a part of a long text", "map", map_ours),
    ("A report about a part of a text stands in <text>. Say", "rate", rate_ours),
    ("Reports about parts of a text are searched for", "hypothesis", lambda p: {"answer": write_text(p)}),
    ("A question about a long text is answered step by step", "explore", explore_ours),
    ("Answer a question from the evidence that stands with it", "answer", answer_ours),
    ("identify all entities of those types from the text", "extract", extract_graphrag),
    ("generating a comprehensive summary of the data provided below", "summary", summarise),
    ("Write a comprehensive report of a community", "report", report_graphrag),
    ("Generate a response consisting of a list of key points", "map", map_graphrag),
    ("synthesizing perspectives from multiple analysts", "answer", write_text),
    ("deciding whether the provided information is useful", "rate", rate_graphrag),
    ("Create a hypothetical answer to the following query", "hypothesis", write_text),
    ("designed to reason over a knowledge graph", "prime", prime_graphrag),
    ("'follow_up_queries': List[str]}", "explore", explore_graphrag),
    ("responding to questions about data in the reports provided", "answer", write_text),
    ("responding to questions about data in the tables provided", "answer", write_text),
    ("You are a Knowledge Graph Specialist responsible for extracting", "extract", extract_lightrag),
    ("Your task is to synthesize a list of descriptions", "summary", summarise),
    ("You are an expert keyword extractor", "keywords", name_keywords_lightrag),
    ("synthesizing information from a provided knowledge base", "answer", write_text),
)


# ---------------------------------------------------------------- the server


class FakeModel:
    """An ASGI application with the addresses `/v1/chat/completions`, `/v1/embeddings` and `/counts`."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.counts: Counter[str] = Counter()
        self.under_way = 0
        self.embedder = HashEmbedder(DIMENSIONS)
        self.vectors: dict[str, Any] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        kind = "application/json"
        if scope["path"] == "/counts":
            found = json.dumps(self.counts)
        elif scope["path"].endswith("/embeddings"):
            found = self.embed(json.loads(body))
        else:
            given = json.loads(body)
            found = await self.complete(given)
            if given.get("stream"):
                kind, found = "text/event-stream", stream(found)
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": found.encode()})

    async def complete(self, given: Mapping[str, Any]) -> str:
        self.under_way += 1
        self.counts["most at once"] = max(self.counts["most at once"], self.under_way)
        prompt = "\n".join(read_content(message["content"]) for message in given["messages"])
        task, make = next(((task, make) for mark, task, make in TASKS if mark in prompt), ("unknown", write_text))
        if task == "unknown":
            print(prompt[:2000], file=sys.stderr, flush=True)
        reply = make(prompt)
        text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        self.counts += Counter({"calls": 1, task: 1, "tokens in": len(prompt) // 4, "tokens out": len(text) // 4})
        await asyncio.sleep(self.latency)
        self.under_way -= 1
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
        message = {"role": "assistant", "content": text}
        return json.dumps(
            {
                "id": "reply", "object": "chat.completion", "created": 1_700_000_000, "model": "fake",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {**usage, "total_tokens": sum(usage.values())},
            }
        )  # fmt: skip

    def embed(self, given: Mapping[str, Any]) -> str:
        texts = [given["input"]] if isinstance(given["input"], str) else given["input"]
        self.counts += Counter({"embeddings": 1, "texts embedded": len(texts)})
        wanted = [text for text in texts if text not in self.vectors]
        self.vectors |= dict(zip(wanted, self.embedder.embed(wanted), strict=True))
        rows = [self.vectors[text].astype("<f4") for text in texts]
        coded = given.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(row.tobytes()).decode() if coded else row.tolist(),
            }
            for index, row in enumerate(rows)
        ]
        return json.dumps(
            {"object": "list", "model": "hash", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        )


def read_content(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def stream(completion: str) -> str:
    """A completion as a stream of two chunks."""
    whole = json.loads(completion)
    head = {**{key: whole[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    delta = {"role": "assistant", "content": whole["choices"][0]["message"]["content"]}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": whole["usage"]},
    ]
    return "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"


def main() -> None:
    latency = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    if not GRAPH.exists():
        print("skipped: ../shared/data/novels is absent")
        return
    read_graph()
    config = uvicorn.Config(FakeModel(latency), port=0, log_level="warning", lifespan="off", timeout_keep_alive=600)
    server = uvicorn.Server(config)
    threading.Thread(target=lambda: (sys.stdin.read(), setattr(server, "should_exit", True)), daemon=True).start()
    socket = config.bind_socket()
    socket.listen(256)  # before the address is printed
    print(f"http://127.0.0.1:{socket.getsockname()[1]}", flush=True)
    server.run(sockets=[socket])


if __name__ == "__main__":
    main()
