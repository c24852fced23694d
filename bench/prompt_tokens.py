"""How many tokens of each prompt are constant, and how many are the texts that it shows.

    python bench/prompt_tokens.py
    PYTHONPATH=PATH/TO/ANOTHER/CHECKOUT/src python bench/prompt_tokens.py     # the prompts of that checkout

Each role is given two inputs made from the sample story, which differ in everything that may differ from call to call.
`beginning` is what both calls have in common from their first byte on, rules and schema included: what the caches of
providers can hold. `texts` are the texts of the input, `rest` what else the prompt says: lines for some cases, tags,
the last line. Means of the two calls, in tokens of four bytes. Nothing is asked.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from pydantic import BaseModel

from tomewise.language.chat import RULES
from tomewise.language.prompts import Prompts
from tomewise.language.reply import describe_output
from tomewise.language.roles import ROLES
from tomewise.language.usage import estimate_tokens
from tomewise.sample import STORY, read_questions
from tomewise.types import Role

_PASSAGE = 1100  # characters
_TEXT = STORY.read_text(encoding="utf-8")
_PASSAGES = [_TEXT[start : start + _PASSAGE] for start in range(0, 24 * _PASSAGE, _PASSAGE)]
_QUESTIONS = read_questions()


def make_fields(number: int) -> dict[str, Any]:
    """Values for the fields of all inputs: the first call or the second."""
    first, asked = _PASSAGES[8 * number : 8 * number + 8], _QUESTIONS[number]
    place = {"title": "", "kind": "passage", "document": "story.md", "place": f"part {number + 3} of 59"}
    return {
        "question": asked.question,
        "options": list(asked.options) if number else [],
        "may_decline": not number,
        "notes": [first[0][:400]],
        "evidence": [{"label": f"E{n}", "text": text, **place} for n, text in enumerate(first[:5], start=1)],
        "text": first[0],
        "before": first[1][:300],
        "entities": ["Miss Thorle", "the Tide House", "the clock", "Everard Lisle"][number:],
        "texts": first,
        "has_text": True,
        "children": 3,
        "max_tokens": (200, 120)[number],
        "name": ("Annis", "Constance")[number],
        "descriptions": [text[:200] for text in first],
        "facts": [text[:60] for text in first * 2],
        "past_probes": [asked.question],
        "cues": [text[:400] for text in first[:3]],
        "known": [text[:400] for text in first[:3]],
        "thoughts": [text[:120] for text in first[:3]],
        "asked": [asked.question],
        "findings": [text[:120] for text in first[:3]],
        "read": ["E2"],
        "missing": "who stopped the repeater"[number:],
        "probe": asked.question,
        "layer": "veridical, semantic",
        "reference": asked.answers[0],
        "prediction": asked.answers[-1],
        "quality": ("comprehensiveness", "diversity")[number],
        "limit": 2 + number,
        "questions": [asked.question],
        "subqueries": [asked.question],
        "searched": [asked.question],
        "points": [{"id": f"M{n}", "description": text[:200]} for n, text in enumerate(first[:4], start=1)],
        "inferences": [{"label": "I1", "text": first[0][:120]}],
        "note": first[0][:1200],
        "words": 400 + number,
        "nodes": [{"label": f"S{n}", "text": text, "kind": "summary"} for n, text in enumerate(first, start=1)],
        "report": first[0],
        "query": asked.question,
        "relations": [],
        "turns": [{"question": asked.question, "answer": asked.answers[0]}],
    }


def make_input(role: Role[Any, Any], number: int) -> BaseModel:
    """An input of the role; a graph in one call knows no names beforehand."""
    fields = {name: value for name, value in make_fields(number).items() if name in role.input.model_fields}
    if role.name == "extract_facts":
        fields["entities"] = []
    if role.name == "write_report":
        fields["entities"] = [{"name": name, "description": "", "degree": 1} for name in fields["entities"]]
        fields["findings"] = 8
    if role.name in ("infer_notes", "refine_questions", "update_ledger"):
        fields["facts"] = [{"label": f"F{n}", "text": text} for n, text in enumerate(fields["facts"], start=1)]
    return role.input(**fields)


def count_texts(value: object) -> int:
    """The tokens of all strings in a value."""
    if isinstance(value, str):
        return estimate_tokens(value)
    if isinstance(value, dict):
        return sum(map(count_texts, value.values()))
    return sum(map(count_texts, value)) if isinstance(value, list) else 0


def measure(role: Role[Any, Any]) -> tuple[int, int, int]:
    """The tokens of the common beginning, of the rest, and of the texts."""
    given = [make_input(role, number) for number in (0, 1)]
    calls = [RULES + describe_output(role.output) + "\n" + Prompts().render(role, each) for each in given]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*calls, strict=False)))
    beginning = estimate_tokens(calls[0][:same])
    texts = sum(count_texts(each.model_dump(mode="json")) for each in given) // 2
    whole = sum(map(estimate_tokens, calls)) // 2
    return beginning, max(0, whole - beginning - texts), texts


def main() -> None:
    print("| role | beginning | rest | texts | share of the beginning |\n| --- | ---: | ---: | ---: | ---: |")
    for role in sorted(ROLES, key=lambda each: each.name):
        beginning, rest, texts = measure(role)
        print(f"| {role.name} | {beginning} | {rest} | {texts} | {beginning / (beginning + rest + texts):.0%} |")


if __name__ == "__main__":
    main()
