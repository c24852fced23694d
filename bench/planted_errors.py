"""Plant errors in true statements, and count how many lose their mark, and how many true ones have none.

    python bench/planted_errors.py [--half even|odd] [--each 60] [--show]

True statements: what a strong model wrote about the sample story (`../shared/data/story`), beside what its prompts
showed; claims of WiCE that are supported, beside the whole article; sentences of QMSum's summaries, beside the marked
spans. An error is planted by editing the statement as a string: no code of the package reads names, numbers or dates
here. At last all claims of WiCE are judged: supported against the rest. Rules were chosen on the even lines, so the odd
ones are reported.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tomewise.text.support import Grounds, Judgement

DATA = Path(__file__).parents[2] / "shared" / "data"
SENTENCE = re.compile(r"(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?<! [A-Z]\.)(?<=[.!?]) +(?=[A-Z\"“])")
NAMES = """Barnaby Kestrel Oduya Wexcombe Lindqvist Tamsin Okonkwo Farrow Hespeler Jovanka Marlinspike Quillfeather
    Ravensmoor Svoboda Thackeray Ulverstone Vandermeer Whitlock Yarborough Zabriskie""".split()
WORDS = (
    "three four five six seven eight nine eleven twelve thirteen fifteen sixteen eighteen forty sixty ninety".split()
)
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February April June July August September October November December".split()
FAMILIES = """minutes hours days weeks months years, minute hour day week month year, inches feet yards miles,
    km metres miles, ounces pounds tons, dollars euros pounds"""
UNITS = [family.split() for family in FAMILIES.split(",")]
SUPPORTS = ("quoted", "inferred", "contradicted", "none")
MARKS = SUPPORTS[:2]
Edit = Callable[[str, str, random.Random], str | None]


@dataclass(frozen=True)
class Case:
    """A true statement, and the texts that it follows from."""

    corpus: str
    statement: str
    sources: tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=["even", "odd"], default="odd")
    parser.add_argument("--each", type=int, default=60, help="errors of a kind in a corpus, at most")
    parser.add_argument(
        "--show", action="store_true", help="print true statements that are flagged, and errors not found"
    )
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"{DATA} is not here: nothing to measure")
    cases = list(read_cases(int(options.half == "odd")))
    cases = report_true(cases, show=options.show)
    report_planted("planted, not in the sources", EDITS, cases, options.each, show=options.show)
    report_planted("exchanged for another of the sources", WITHIN, cases, options.each, show=options.show)
    report_wice(int(options.half == "odd"))


def report_true(cases: list[Case], *, show: bool) -> list[Case]:
    """The marks of true statements; returns those that have one, in which errors are planted."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    start = time.process_time()
    marked = []
    for case in cases:
        judgement = judge(case, case.statement)
        counts[case.corpus].update(["statements", judgement.support])
        if judgement.support in MARKS:
            marked.append(case)
        elif show:
            print("TRUE", judgement, case.statement)
    print(f"{(time.process_time() - start) / len(cases) * 1000:.1f} ms a statement, its sources read once\n")
    print(f"| true statements | | {' | '.join(SUPPORTS)} |\n| --- |{' ---: |' * (len(SUPPORTS) + 1)}")
    for corpus, count in counts.items():
        of = count["statements"]
        shares = (f"{count[name] / of:.1%} ({count[name]})" for name in SUPPORTS)
        print(f"| {corpus} | {of} | {' | '.join(shares)} |")
    return marked


def report_planted(title: str, edits: dict[str, Edit], cases: list[Case], each: int, *, show: bool) -> None:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, edit in edits.items():
        for corpus in dict.fromkeys(case.corpus for case in cases):
            dice = random.Random(f"{kind} {corpus}")
            pool = [case for case in cases if case.corpus == corpus]
            dice.shuffle(pool)
            left = each
            for case in pool:
                wrong = edit(case.statement, "\n".join(case.sources), dice) if left else None
                if wrong is None or wrong == case.statement:
                    continue
                left -= 1
                judgement = judge(case, wrong)
                found[kind].update(["planted", judgement.support])
                if show and judgement.support in MARKS:
                    print(f"NOT FOUND {kind} {corpus}: {wrong}  (true: {case.statement})")
    print(f"\n| {title} | | found | contradicted |\n| --- | ---: | ---: | ---: |")
    for kind, count in found.items():
        of, differs = count["planted"], count["contradicted"]
        print(f"| {kind} | {of} | {(differs + count['none']) / of:.1%} | {differs / of:.1%} |")


def report_wice(half: int) -> None:
    """F1 of "supported" for claims that are marked, against all others, and the marks of what is not supported."""
    rows = [row for number, row in enumerate(read_rows("wice/dev.jsonl")) if number % 2 == half]
    marks = [(row["label"], Grounds(["\n".join(row["evidence"])]).judge(row["claim"]).support) for row in rows]
    print(f"\n| WiCE | | {' | '.join(SUPPORTS)} |\n| --- |{' ---: |' * (len(SUPPORTS) + 1)}")
    for label in dict.fromkeys(row["label"] for row in rows):
        count = Counter(mark for of, mark in marks if of == label)
        print(f"| {label} | {count.total()} | {' | '.join(str(count[name]) for name in SUPPORTS)} |")
    print(f"F1 of supported: {measure_f1([(label, mark in MARKS) for label, mark in marks]):.1%}")
    if half:  # how a strong model replied to the prompt of `verify`, eight claims in a call with three passages each
        judged = json.loads((Path(__file__).parent / "wice_judged.json").read_text("utf-8"))
        pairs = [(label, verdict == "stated") for (label, _), verdict in zip(marks, judged, strict=False)]
        print(f"F1 of supported where a model judges, first {len(judged)}: {measure_f1(pairs):.1%}")


def measure_f1(pairs: list[tuple[str, bool]]) -> float:
    """F1 of what is called supported, of labels and whether each is called so."""
    right = sum(label == "supported" and called for label, called in pairs)
    return 2 * right / (sum(label == "supported" for label, _ in pairs) + sum(called for _, called in pairs))


@cache
def read_grounds(sources: tuple[str, ...]) -> Grounds:
    return Grounds(sources)


def judge(case: Case, statement: str) -> Judgement:
    return read_grounds(case.sources).judge(statement)


# True statements


def read_cases(half: int) -> Iterator[Case]:
    for number, row in enumerate(read_rows("story/memory.jsonl")):
        reply, sources = row["reply"], tuple(row["texts"])
        if number % 2 == half:
            reply_text = reply.get("memory") or reply.get("summary") or ""
            yield from (Case("story", sentence, sources) for sentence in SENTENCE.split(reply_text) if sentence)
            yield from (Case("story", f"{' '.join(triple)}.", sources) for triple in reply.get("triples", ()))
    for number, row in enumerate(read_rows("wice/dev.jsonl")):
        if number % 2 == half and row["label"] == "supported":
            yield Case("wice", row["claim"], ("\n".join(row["evidence"]), row["meta"]["claim_title"]))
    for number, row in enumerate(read_rows("qmsum/test.jsonl")):
        if number % 2 == half:
            for query in row["specific_query_list"]:
                spans = [
                    turn
                    for first, last in query["relevant_text_span"]
                    for turn in row["meeting_transcripts"][int(first) : int(last) + 1]
                ]
                sources = (query["query"], *(f"{turn['speaker']}: {turn['content']}" for turn in spans))
                yield from (
                    Case("qmsum", sentence, sources) for sentence in SENTENCE.split(query["answer"]) if sentence
                )


def read_rows(name: str) -> Iterator[dict]:
    return map(json.loads, (DATA / name).read_text("utf-8").splitlines())


# Errors


def exchange(pattern: str, choose: Callable[[str, random.Random], str | None]) -> Edit:
    """Replace one match of a pattern by what is chosen for it, if the sources do not have that."""

    def edit(statement: str, sources: str, dice: random.Random) -> str | None:
        found = list(re.finditer(pattern, statement))
        if not found:
            return None
        match = dice.choice(found)
        word = choose(match[0], dice)
        if word is None or re.search(rf"\b{re.escape(word)}\b", sources, re.IGNORECASE):
            return None
        return statement[: match.start()] + word + statement[match.end() :]

    return edit


def exchange_within(pattern: str) -> Edit:
    """Replace one match of a pattern by another match of the sources."""

    def edit(statement: str, sources: str, dice: random.Random) -> str | None:
        found = list(re.finditer(pattern, statement))
        others = sorted({match[0] for match in re.finditer(pattern, sources)} - {match[0] for match in found})
        if not found or not others:
            return None
        match = dice.choice(found)
        return statement[: match.start()] + dice.choice(others) + statement[match.end() :]

    return edit


def exchange_subject(statement: str, sources: str, dice: random.Random) -> str | None:
    """Replace a name of one word that opens a statement: the sources have it within a sentence too."""
    name = re.match(r"[A-Z][a-z]{3,}(?= [a-z])", statement)
    is_name = name and re.search(rf"(?<=[a-z,] ){name[0]}\b", sources)
    return dice.choice(NAMES) + statement[name.end() :] if name and is_name else None


def change_digits(digits: str, dice: random.Random) -> str:
    at = dice.randrange(len(digits))
    while not digits[at].isdigit():
        at = dice.randrange(len(digits))
    return digits[:at] + dice.choice([sign for sign in "123456789" if sign != digits[at]]) + digits[at + 1 :]


def change_unit(quantity: str, dice: random.Random) -> str:
    number, mark, unit = re.split("([ -])", quantity)
    others = [each for family in UNITS if unit in family for each in family if each != unit]
    return number + mark + dice.choice(others)


def change_day(day: str, dice: random.Random) -> str:
    return re.sub(r"\d+", lambda digits: str(dice.choice([n for n in range(3, 29) if str(n) != digits[0]])), day)


def add_negation(statement: str, sources: str, dice: random.Random) -> str | None:
    if re.search(r"\b(not|never|no|none|nobody|nothing|nor|neither|without|cannot)\b|n't|n’t", statement):
        return None
    changed = re.sub(
        r"\b(was|is|were|are|had|has|could|would|will|can|did|should)\b(?! (?:to|been)\b)",
        r"\1 not",
        statement,
        count=1,
    )
    return changed if changed != statement else None


def leave_out_negation(statement: str, sources: str, dice: random.Random) -> str | None:
    changed = re.sub(r"\b(did|do|does) not |(?<=\w) (?:not|never)\b|n't\b|n’t\b|(?<=can)not\b", "", statement, count=1)
    return changed if changed != statement else None


MID_NAME = r"(?<=[a-z,] )[A-Z][a-z]{3,}(?: [A-Z][a-z]+)*\b"
NUMBER_WORD = rf"\b(?:{'|'.join([*WORDS, 'two', 'ten', 'twenty', 'thirty'])})\b(?![ -](?:{'|'.join(WORDS)}|o.clock))"
UNIT_WORDS = "|".join({unit for family in UNITS for unit in family})
EDITS: dict[str, Edit] = {
    "name from outside": exchange(MID_NAME, lambda name, dice: " ".join(dice.sample(NAMES, len(name.split())))),
    "name that opens": exchange_subject,
    "number word": exchange(NUMBER_WORD, lambda word, dice: dice.choice([each for each in WORDS if each != word])),
    "digits": exchange(r"(?<![\d.,:])\d[\d,.]*\d(?![\d:])|(?<![\d.,:])[3-9](?![\d.,:])", change_digits),
    "weekday or month": exchange(
        rf"\b(?:{'|'.join([*DAYS, *MONTHS])})\b",
        lambda word, dice: dice.choice([d for d in (DAYS if word in DAYS else MONTHS) if d != word]),
    ),
    "day of a month": exchange(rf"\b(?:{'|'.join(MONTHS)}) \d\d?\b(?!\d)|\b\d\d? (?:{'|'.join(MONTHS)})\b", change_day),
    "unit": exchange(
        rf"\b(?:\d+|{'|'.join([*WORDS, 'two', 'ten', 'twenty', 'thirty'])})[ -](?:{UNIT_WORDS})\b(?! (?:past|to)\b)",
        change_unit,
    ),
    "negation added": add_negation,
    "negation left out": leave_out_negation,
}
WITHIN: dict[str, Edit] = {
    "name of the sources": exchange_within(MID_NAME),
    "number of the sources": exchange_within(NUMBER_WORD),
    "day or month of the sources": exchange_within(rf"\b(?:{'|'.join([*DAYS, *MONTHS])})\b"),
}  # fmt: skip

if __name__ == "__main__":
    main()
