"""Which questions the extractive model declines: risk and coverage, and the least confidence for each kind of answer.

    .venv/bin/python bench/declining.py [--again]

Questions with evidence from `hybrid` at its default budget, and by script the same ones made unanswerable:
MuSiQue without its supporting documents, specific QMSum questions asked of the next meeting (of another task: two
meetings that design a remote control answer each other's questions; those are counted apart), the questions on the
sample story asked of a novel. Right is: for MuSiQue a reference inside of the answer, for the sample the right option,
for QMSum a ROUGE-L of 15 % or more. The thresholds in `extractive/confidence.py` are fitted on the questions of odd
place and reported for the even ones and for all. Evidence and vectors are kept under `bench/out`; `--again` retrieves
anew (5 minutes).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tomewise.embedding.choose_embedder import embedder_named
from tomewise.evaluate.datasets.qmsum import read_qmsum
from tomewise.evaluate.datasets.sample import read_sample
from tomewise.evaluate.items import Item
from tomewise.evaluate.metrics.answers import substring_match
from tomewise.evaluate.metrics.rouge import rouge
from tomewise.language.extractive import confidence as rule
from tomewise.language.extractive.answering import answer
from tomewise.language.extractive.question_words import read_question
from tomewise.language.extractive.relevance import compare, lines_of, rank
from tomewise.language.roles import AnswerIn
from tomewise.loops.once import answering
from tomewise.loops.showing import fitting, token_counter
from tomewise.systems.kit import CONTEXT
from tomewise.systems.registry import assemble
from tomewise.tome.tome import Tome
from tomewise.types import Document, Embedder, Evidence, Question

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
OUT = Path(__file__).resolve().parent / "out"
CASES, VECTORS = OUT / "declining.jsonl", OUT / "declining.pickle"
LIMIT, SPARE = 20, 40  # pieces of evidence, and how many more are asked for where some are taken away
RIGHT_ROUGE = 0.15
REMOTE = 20  # mentions of a remote in a meeting that designs one
KEPT = 0.95
KINDS = {rule.OUTLINE: "outline", rule.OPTION: "option", rule.SHORT: "short"}
SAME_TASK = "QMSum, same task"
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Case:
    """A question with its evidence. `place` counts the questions of a set from 1."""

    name: str
    place: int
    answerable: bool
    answers: tuple[str, ...]
    correct: str | None
    given: dict[str, Any]


@dataclass(frozen=True)
class Scored:
    """What the model does with a case: its confidence, whether a forced answer is right, whether it declines."""

    case: Case
    kind: str
    confidence: float
    right: bool
    declined: bool
    lacks_name: bool

    @property
    def odd(self) -> bool:
        return self.case.place % 2 == 1

    def answered(self, least: Mapping[str, float]) -> bool:
        return self.confidence >= least[self.kind] and not (self.kind == "short" and self.lacks_name)


class Remembering:
    """An embedder that keeps its vectors in a file, so that a second run takes a minute."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.vectors: dict[str, Any] = pickle.loads(VECTORS.read_bytes()) if VECTORS.exists() else {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        self.vectors.update(zip(new, self._embedder.embed(new), strict=True) if new else ())
        return np.array([self.vectors[text] for text in texts])


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "musique" / name).read_text(encoding="utf-8").splitlines()]


async def filled(folder: Path, name: str, documents: Sequence[Document], stack: ExitStack) -> Tome:
    tome = stack.enter_context(Tome.open(folder / f"{name}.tome"))
    await tome.aadd(*documents)
    return tome


async def retrieve(tome: Tome, question: Question, without: Collection[str] = ()) -> list[Evidence]:
    """What `hybrid` shows, without the passages of some documents."""
    found = await assemble("hybrid", tome.kit).retriever.retrieve(question.text, LIMIT + (SPARE if without else 0))
    home = {passage.id: passage.document for passage in tome.store.passages().values()} if without else {}
    kept = [piece for piece in found if home.get(piece.node) not in without]
    return fitting(kept[:LIMIT], CONTEXT, token_counter(tome.kit.embedder))


def case(name: str, place: int, item: Item, evidence: Sequence[Evidence], *, answerable: bool) -> Case:
    given = answering(item.question, evidence, may_decline=True).model_dump()
    return Case(name, place, answerable, item.answers, item.correct if answerable else None, given)


async def musique(folder: Path) -> list[Case]:
    documents = [Document(id=str(row["id"]), text=row["text"], title=row["title"]) for row in rows("corpus.jsonl")]
    cases = []
    with ExitStack() as stack:
        tome = await filled(folder, "musique", documents, stack)
        for place, row in enumerate(rows("questions.jsonl"), 1):
            item = Item(id=row["id"], question=Question(text=row["question"]), answers=tuple(row["answers"]))
            supporting = frozenset(map(str, row["supporting"]))
            for without in (frozenset[str](), supporting):
                evidence = await retrieve(tome, item.question, without)
                cases.append(case("MuSiQue", place, item, evidence, answerable=not without))
    return cases


async def sample(folder: Path) -> list[Case]:
    read = read_sample(folder)
    novel = Document(id="novel", text=(DATA / "novels" / "gods_of_mars.txt").read_text(encoding="utf-8"))
    cases = []
    with ExitStack() as stack:
        own = await filled(folder, "story", read.documents, stack)
        other = await filled(folder, "novel", [novel], stack)
        for place, item in enumerate(read.items, 1):
            for tome in (own, other):
                evidence = await retrieve(tome, item.question)
                cases.append(case("sample, options", place, item, evidence, answerable=tome is own))
    return cases


async def qmsum(folder: Path) -> list[Case]:
    read = read_qmsum(DATA / "qmsum")
    designs = {document.id: document.text.lower().count("remote") >= REMOTE for document in read.documents}
    cases = []
    with ExitStack() as stack:
        tomes = {document.id: await filled(folder, document.id, [document], stack) for document in read.documents}
        ids = list(tomes)
        for place, item in enumerate(read.items, 1):
            [own] = item.documents
            after = [*ids[ids.index(own) + 1 :], *ids[: ids.index(own)]]
            cases.append(
                case("QMSum", place, item, await retrieve(tomes[own], item.question), answerable=True),
            )
            if item.slices["type"] == "general":
                continue  # a summary of the whole can be asked of any meeting
            others = {"QMSum": next(meeting for meeting in after if not (designs[meeting] and designs[own]))}
            if designs[own]:
                others[SAME_TASK] = next(meeting for meeting in after if designs[meeting])
            for name, meeting in others.items():
                evidence = await retrieve(tomes[meeting], item.question)
                cases.append(case(name, place, item, evidence, answerable=False))
    return cases


async def gather() -> None:
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        cases = [one for make in (musique, sample, qmsum) for one in await make(Path(folder))]
    CASES.write_text("".join(f"{json.dumps(asdict(one))}\n" for one in cases), encoding="utf-8")


def is_right(one: Case, text: str, choice: str | None) -> bool:
    if not one.answerable:
        return False
    if one.correct:
        return choice == one.correct
    if one.name == "QMSum":
        return rouge(text, one.answers, "rougeL") >= RIGHT_ROUGE
    return bool(substring_match(text, one.answers))


def play(one: Case, embedder: Embedder) -> Scored:
    given = AnswerIn(**one.given)
    forced, free = answer(given.model_copy(update={"may_decline": False}), embedder), answer(given, embedder)
    question = read_question(given.question, given.instructions)
    ranked = rank(question.terms, lines_of(given.evidence, given.notes), question.names)
    compare(question.text, ranked, embedder)
    kind = KINDS[rule.least_confidence(question, ranked, has_options=bool(given.options))]
    return Scored(
        case=one,
        kind=kind,
        confidence=rule.confidence(question, ranked),
        right=is_right(one, forced.answer, forced.choice),
        declined=free.failed,
        lacks_name=rule.describe_lack(question, ranked).startswith("nothing here names"),
    )


def fit(scored: Sequence[Scored]) -> dict[str, float]:
    """For each kind the highest threshold, in hundredths, that keeps `KEPT` of the right answers of odd place."""
    found = {}
    for kind in KINDS.values():
        right = [one for one in scored if one.kind == kind and one.odd and one.right]
        fine = [
            least
            for least in (hundredth / 100 for hundredth in range(100))
            if np.mean([one.answered({kind: least}) for one in right]) >= KEPT
        ]
        found[kind] = max(fine)
    return found


def percent(flags: Iterator[bool]) -> str:
    values = list(flags)
    return f"{100 * np.mean(values):.0f} ({sum(values)} of {len(values)})" if values else "-"


HALVES: Mapping[str, Callable[[Scored], bool]] = {
    "odd": lambda one: one.odd,
    "even": lambda one: not one.odd,
    "all": lambda one: True,
}


def show_sets(scored: Sequence[Scored]) -> None:
    print("| set | unanswerable, declined: odd | even | all | right answers kept: odd | even | all |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    names = list(dict.fromkeys(one.case.name for one in scored))
    main = [name for name in names if name != SAME_TASK]
    for label, chosen in [*((name, [name]) for name in names), ("all but same task", main)]:
        some = [one for one in scored if one.case.name in chosen]
        cells = [
            percent(one.declined for one in some if not one.case.answerable and half(one)) for half in HALVES.values()
        ]
        cells += [percent(not one.declined for one in some if one.right and half(one)) for half in HALVES.values()]
        print(f"| {label} | {' | '.join(cells)} |")


def show_curve(scored: Sequence[Scored], least: Mapping[str, float]) -> None:
    """Risk is the share of what is answered that is wrong; what cannot be answered rightly counts as wrong."""
    print("| thresholds times | coverage | risk | coverage, even | risk, even | declined | right kept |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for factor in FACTORS:
        at = {kind: factor * value for kind, value in least.items()}
        cells = []
        for half in ("all", "even"):
            some = [one for one in scored if HALVES[half](one)]
            answered = [one for one in some if not factor or one.answered(at)]
            cells += [
                f"{100 * len(answered) / len(some):.0f}",
                f"{100 * np.mean([not one.right for one in answered]):.0f}",
            ]
        cells.append(percent(bool(factor) and not one.answered(at) for one in scored if not one.case.answerable))
        cells.append(percent(not factor or one.answered(at) for one in scored if one.right))
        print(f"| {factor:g} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="retrieve the evidence anew")
    given = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit("../shared/data is absent")
    if given.again or not CASES.exists():
        asyncio.run(gather())
    embedder = Remembering(embedder_named("bundled"))
    cases = [Case(**json.loads(line)) for line in CASES.read_text(encoding="utf-8").splitlines()]
    scored = [play(one, embedder) for one in cases]
    VECTORS.write_bytes(pickle.dumps(embedder.vectors))
    counted = [one for one in scored if one.case.name != SAME_TASK]
    least = {kind: value for value, kind in KINDS.items()}
    print(f"fitted on odd places: {fit(counted)}; in use: {least}\n")
    show_sets(scored)
    print()
    show_curve(counted, least)


if __name__ == "__main__":
    main()
