"""A fixed model that plays every role as a faithful, plain reader, who knows which sentences carry the answer.

It measures a loop apart from its model: what a good reader finds and writes down, does the last prompt show it? The
sentences are the gold of the question.

- It writes down each gold sentence that it is shown, once, in words of its own ("It is recorded: ..."), with the labels
  of the pieces that have it. A piece that a prompt shows by its first words is known by these.
- A wordy reader writes in each call also so many sentences `beside` these: those that share most words with the
  question. They take the room of gold in notes and ledgers, as what real readers write does.
- Fusing keeps each sentence once. Merging joins points in pairs, in their order. A note to hand on keeps gold first.
- It asks for the halves of the question, then for names that stand in what it is shown and not in the question, most
  frequent first, then for quarters and eighths of the question; nothing twice.
- With tools it searches for these. Where it cannot, it finds their long words, and reads the parts around the places
  that share most words with the question.
- It chooses nodes with gold; without any the one that shares most words with the question.
- It declines the question while it may, and finds nothing settled. A smaller question of a loop it answers with the
  gold that stands there, and declines without any.
- Roles that make memory, and those that choose or reword within a search, are played by the extractive model.

A role that is not in these tables, and a field that a role lacks, is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from time import perf_counter
from typing import Any

from tomewise.language.extractive import ExtractiveModel
from tomewise.run import ModelCall, report_call
from tomewise.types import In, Out, Role

OWN_WORDS = "It is recorded: "
_NAME = re.compile(r"(?<=[a-z,;] )(?:(?:Mr|Mrs|Miss|Dr|St)\.? )?([A-Z]\w+)")  # none of these opens a sentence
_SENTENCE = re.compile(r"[^.!?]+[.!?]+[\"'”’)]*")
_BEGINNING = 5  # words by which a sentence is known
_AROUND = 2  # places around which it reads
_LONG = 5  # letters of a word that it finds
_FEWEST = 8  # words of a sentence that is written beside gold
_OF_EXTRACTIVE = frozenset(
    """gist extract_triples extract_facts extract_entities extract_relations glean_relations summarise aggregate narrate
    restate shorten write_report filter_facts keywords rephrase hypothesise look_up verify judge_correct judge_entailed
    judge_level judge_statements""".split()
)


def flatten(text: str) -> str:
    """The text with one space for each white space."""
    return " ".join(text.split())


def stands_in(sentence: str, text: str) -> bool:
    """Whether the text has the sentence word for word, other than in the reader's own words."""
    flat, sentence = flatten(text), flatten(sentence)
    return flat.count(sentence) > flat.count(f"{OWN_WORDS}{sentence}")


class GoldReader:
    """The reader of one question. `attempts` are the inputs of the answering role for that question."""

    name = "gold reader"
    window = 128_000

    def __init__(self, question: str, gold: Sequence[str], model: ExtractiveModel, *, beside: int = 0) -> None:
        self._question = question
        self._beside = beside
        self._gold = [*map(flatten, gold)]
        self._model = model
        self.attempts: list[Any] = []
        self._plays: Mapping[str, Callable[[Any], dict[str, Any]]] = {
            "answer": self._answer,
            "encode": lambda given: self._note(given, "cue", given.known),
            "fuse": lambda given: {"cue": self._write(_list_entries(given.cues))},
            "evolve": self._evolve,
            "merge_points": self._merge,
            "extract_notes": self._extract,
            "mark_facts": self._mark,
            "infer_notes": self._infer,
            "refine_questions": self._refine,
            "update_ledger": lambda given: {**self._infer(given), **self._refine(given)},
            "carry_note": self._carry,
            "map_reports": self._map,
            "rate_report": lambda given: {"rating": 5 if self._find_gold([given.report]) else 1},
            "explore": self._explore,
            "select_nodes": self._select,
            "probe": lambda given: {
                "probes": self._ask_next([*given.cues, given.missing], given.past_probes, given.limit)
            },
            "plan": self._plan,
            "plan_reading": self._plan_reading,
            "decompose": lambda given: {"subqueries": self._ask_next([], [], min(2, given.limit))},
            "think": self._think,
            "step": self._step,
            "choose_looks": self._choose_looks,
        }

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """The reply of the role's play. Raises LookupError for an unknown role, ValidationError for another form."""
        if role.name in _OF_EXTRACTIVE:
            return await self._model.ask(role, given)
        if role.name not in self._plays:
            raise LookupError(
                f"the gold reader has no play for the role {role.name!r}: add one to bench/gold_reader.py"
            )
        started = perf_counter()
        output = role.output.model_validate(self._plays[role.name](given), extra="forbid")
        tokens = self.count_input_tokens(role, given), len(output.model_dump_json()) // 4
        report_call(ModelCall(role.name, self.name, started, perf_counter(), *tokens, dollars=0.0))
        return output

    def count_input_tokens(self, role: Role[In, Out], given: In) -> int:
        """Four characters of the input count as one token, whatever the role."""
        return self._model.count_input_tokens(role, given)

    # ------------------------------------------------------------ read and write

    def _find_gold(self, texts: Iterable[str], known: Iterable[str] = ()) -> list[str]:
        """The gold that stands in these texts and not in those that are known, in the order of the gold."""
        texts, known = [*texts], [*known]
        return [
            sentence
            for sentence in self._gold
            if any(_holds(text, sentence) for text in texts) and not any(_holds(text, sentence) for text in known)
        ]

    def _find(self, texts: Iterable[str], known: Iterable[str] = ()) -> list[str]:
        """The gold, and what is written beside it, best first."""
        texts, known = [*texts], [flatten(text) for text in known]
        sentences = [each.strip() for text in texts for each in _SENTENCE.findall(flatten(text).replace(OWN_WORDS, ""))]
        others = [
            sentence
            for sentence in dict.fromkeys(sentences if self._beside else [])
            if len(sentence.split()) >= _FEWEST
            and not any(sentence in gold or gold in sentence for gold in self._gold)
            and not any(sentence in text for text in known)
        ]
        others.sort(key=lambda sentence: -self._count_shared(sentence))
        return [*self._find_gold(texts, known), *others[: self._beside]]

    def _count_shared(self, text: str) -> int:
        """How many words of the question a text has."""
        return len({*_list_words(self._question)}.intersection(_list_words(text)))

    def _write(self, sentences: Iterable[str]) -> str:
        return " ".join(f"{OWN_WORDS}{sentence}" for sentence in sentences)

    def _note(self, given: Any, field: str, known: Sequence[str] = ()) -> dict[str, Any]:
        found = self._find(_read(given.evidence), known)
        return {field: self._write(found), "labels": _list_labels(given.evidence, found)}

    def _evolve(self, given: Any) -> dict[str, Any]:
        found = self._find(_read(given.evidence), [point.description for point in given.points])
        return {
            "insertions": [
                {
                    "description": self._write([sentence]),
                    "entities": _list_entities(sentence),
                    "evidence": _list_labels(given.evidence, [sentence]),
                }
                for sentence in found
            ]
        }

    def _merge(self, given: Any) -> dict[str, Any]:
        pairs = zip(given.points[::2], given.points[1::2], strict=False)
        return {
            "merges": [
                {
                    "points": [left.id, right.id],
                    "description": self._write(_list_entries([left.description, right.description])),
                }
                for left, right in pairs
            ]
        }

    def _mark(self, given: Any) -> dict[str, Any]:
        found = self._find(_read(given.evidence), _read(getattr(given, "known", ())))[: given.limit]
        return {
            "facts": [{"label": _list_labels(given.evidence, [sentence])[0], "quote": sentence} for sentence in found]
        }

    def _extract(self, given: Any) -> dict[str, Any]:
        return {"facts": [{**fact, "fact": self._write([fact["quote"]])} for fact in self._mark(given)["facts"]]}

    def _refine(self, given: Any) -> dict[str, Any]:
        shown = _read([*given.facts, *given.inferences])
        return {"new": self._ask_next(shown, [*given.questions, *given.nets], 1)}

    def _infer(self, given: Any) -> dict[str, Any]:
        """What each fact says that is worth it, unless an inference says so."""
        found = self._find(_read(given.facts), _read(given.inferences))
        return {
            "inferences": [
                {"rests_on": _list_labels(given.facts, [sentence]), "inference": self._write([sentence])}
                for sentence in found
            ]
        }

    def _carry(self, given: Any) -> dict[str, Any]:
        """Gold, then what stands in the note and what is new, as many words as the note may have."""
        entries = [*_list_entries([given.note]), *self._find(_read(given.evidence), [given.note])]
        entries.sort(key=lambda sentence: sentence not in self._gold)
        words = accumulate(len(self._write([sentence]).split()) for sentence in entries)
        fitting = [entry for entry, so_far in zip(entries, words, strict=True) if so_far <= given.words]
        return {"note": self._write(fitting)}

    def _map(self, given: Any) -> dict[str, Any]:
        found = self._find(_read(given.evidence))
        return {
            "points": [
                {
                    "description": self._write([sentence]),
                    "labels": _list_labels(given.evidence, [sentence]),
                    "score": 100 if sentence in self._gold else 50,
                }
                for sentence in found
            ]
        }

    def _explore(self, given: Any) -> dict[str, Any]:
        texts = _read(given.evidence)
        found = self._find(texts)
        follow_ups = self._ask_next(texts, [given.query], given.limit)
        return {"answer": self._write(found), "score": 100 if self._find_gold(texts) else 0, "follow_ups": follow_ups}

    def _select(self, given: Any) -> dict[str, Any]:
        texts = _read(given.nodes)
        with_gold = [number for number, text in enumerate(texts, start=1) if self._find_gold([text])]
        shared = [*map(self._count_shared, texts)]
        return {"keep": with_gold or [1 + shared.index(max(shared))]}

    def _answer(self, given: Any) -> dict[str, Any]:
        is_whole = given.question == self._question
        if is_whole:
            self.attempts.append(given)
        found = self._find_gold([*_read(given.evidence), *given.notes])
        if given.may_decline and (is_whole or not found):
            return {"supported": "none", "answer": "*"}
        quotable = [(sentence, _list_labels(given.evidence, [sentence])) for sentence in found]
        quotes = [{"label": labels[0], "quote": sentence} for sentence, labels in quotable if labels]
        return {"quotes": quotes, "supported": "full", "answer": self._write(found) or "unknown"}

    # ------------------------------------------------------------ ask next

    def _ask_next(self, shown: Iterable[str], past: Iterable[str], limit: int | None) -> list[str]:
        """The first queries that were not asked before; None: all."""
        words = flatten(self._question).split()
        counts = Counter(name for text in shown for name in _NAME.findall(flatten(text)))
        names = [name for name, _ in counts.most_common() if name not in self._question]
        queries = [*_cut(words, 2), *names, *_cut(words, 4), *_cut(words, 8)]
        asked = {each.casefold() for each in past}
        return [each for each in dict.fromkeys(queries) if each.casefold() not in asked][:limit]

    def _plan(self, given: Any) -> dict[str, Any]:
        """The first query is asked around the latest point where the plan may choose, the others beyond all points."""
        queries = self._ask_next([point.description for point in given.points], given.searched, given.limit)
        concerns = []
        for number, query in enumerate(queries):
            is_local = bool(given.points) and (given.place == "local" or (given.place == "either" and not number))
            concerns.append(
                {
                    "concern": query,
                    "points": [given.points[-1].id] if is_local else [],
                    "place": "local" if is_local else "global",
                    "subqueries": [query],
                }
            )
        return {"sufficient": False, "concerns": concerns}

    def _plan_reading(self, given: Any) -> dict[str, Any]:
        queries = self._ask_next([], [], 6)
        return {"questions": queries[:2][: given.limit], "nets": queries[2:][: given.nets]}

    def _think(self, given: Any) -> dict[str, Any]:
        """Gold that no thought has, else the next query; with neither it concludes."""
        texts = _read(given.evidence)
        found = [self._write([sentence]) for sentence in self._find_gold(texts, given.thoughts)]
        thoughts = found or self._ask_next(texts, given.thoughts, 1)
        return {"thought": thoughts[0] if thoughts else "That is all.", "concludes": not thoughts}

    def _step(self, given: Any) -> dict[str, Any]:
        queries = self._ask_next(given.findings, given.asked, 1)
        return {"finished": not queries, "subquestion": "".join(queries)}

    def _choose_looks(self, given: Any) -> dict[str, Any]:
        found = self._find(_read(given.evidence), given.notes)
        taken = {look.what for look in (*given.tried, *given.results)}
        looks = [self._look_for(query, given.tools) for query in self._ask_next(_read(given.evidence), [], None)]
        if any(look.tool == "find" for look in given.results):
            best = sorted(given.evidence, key=lambda piece: -self._count_shared(piece.text))[:_AROUND]
            looks[:0] = [_read_around(piece) for piece in best]
        new = [look for look in looks if look["what"] and look["what"] not in taken][: given.limit]
        return {
            "note": self._write(found),
            "keep": _list_labels(given.evidence, found),
            "finished": not new,
            "looks": new,
        }

    def _look_for(self, query: str, tools: Sequence[str]) -> dict[str, Any]:
        if "search" in tools:
            return {"tool": "search", "what": query}
        words = [word for word in _list_words(query) if len(word) >= _LONG]
        return {"tool": "find", "what": "|".join(words), "kind": "pattern"}


def _read_around(piece: Any) -> dict[str, Any]:
    """A reading of the part of a place, with its neighbours."""
    part = re.search(r"part (\d+) of", piece.place)
    what = f"parts {max(1, int(part[1]) - 1)}-{int(part[1]) + 1}" if part else ""
    return {"tool": "read", "what": what, "document": piece.title or piece.document}


def _holds(text: str, sentence: str) -> bool:
    """Whether a text has a sentence; or is, behind the reader's own words, the beginning of it."""
    flat = flatten(text)
    words = flat.removeprefix(OWN_WORDS).rstrip(" .…")
    return sentence in flat or (len(words.split()) >= _BEGINNING and sentence.startswith(words))


def _list_entries(texts: Iterable[str]) -> list[str]:
    """The sentences that the reader wrote in these texts, each once."""
    return [*dict.fromkeys(entry.strip() for text in texts for entry in text.split(OWN_WORDS) if entry.strip())]


def _read(pieces: Iterable[Any]) -> list[str]:
    return [piece.text for piece in pieces]


def _list_labels(pieces: Iterable[Any], sentences: Sequence[str]) -> list[str]:
    """The labels of the pieces that have one of these sentences, of passages first."""
    holding = [piece for piece in pieces if any(_holds(piece.text, sentence) for sentence in sentences)]
    return [each.label for each in sorted(holding, key=lambda each: getattr(each, "kind", "") != "passage")]


def _list_words(text: str) -> list[str]:
    return re.findall(r"\w{3,}", text.casefold())


def _list_entities(sentence: str) -> list[str]:
    """The names in a sentence, else its first two words with a letter."""
    return [*dict.fromkeys(_NAME.findall(sentence))] or re.findall(r"[^\W\d_]\w*", sentence)[:2]


def _cut(words: Sequence[str], parts: int) -> list[str]:
    """The words in so many equal parts, without question marks."""
    bounds = [len(words) * number // parts for number in range(parts + 1)]
    texts = [" ".join(words[start:end]).strip(" ?") for start, end in pairwise(bounds)]
    return [text for text in texts if text]
