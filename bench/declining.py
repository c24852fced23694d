"""Which questions the extractive model declines with short answers: risk, coverage, the least confidence of each kind.

    .venv/bin/python bench/declining.py [--again]

Each question gets evidence from `hybrid` at its default budget. The same questions are then made unanswerable:

- MuSiQue: the supporting documents are left out.
- QMSum: a specific question is asked of the next meeting of another task. Two meetings that both design a remote
  control answer each other's questions, so these pairs are counted apart.
- Sample story: its questions are asked of a novel.

An answer is right if it contains a reference (MuSiQue), is the right option (sample), or reaches a ROUGE-L of 15 %
(QMSum). The thresholds in `extractive/confidence.py` are fitted on the questions of odd place; shares are printed for
the odd ones, the even ones and all. Evidence and vectors stay under `bench/out`; `--again` retrieves the evidence
again (5 minutes).
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

from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.evaluate.datasets import read_dataset
from tomewise.evaluate.items import Item
from tomewise.evaluate.metrics.answers import rouge, substring_match
from tomewise.language.extractive import confidence as rule
from tomewise.language.extractive.answering import answer
from tomewise.language.extractive.question_words import read_question
from tomewise.language.extractive.relevance import compare, rank, read_lines
from tomewise.language.roles import AnswerIn, Shown
from tomewise.loops.desk import make_answer_input
from tomewise.loops.evidence import fit_to_budget
from tomewise.systems.kit import CONTEXT
from tomewise.systems.registry import assemble
from tomewise.tome.tome import Tome
from tomewise.types import Document, Embedder, Question

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
OUT = Path(__file__).resolve().parent / "out"
CASES, VECTORS = OUT / "declining.jsonl", OUT / "declining.pickle"
LIMIT, SPARE = 20, 40  # pieces of evidence; how many more to retrieve if some will be left out
RIGHT_ROUGE = 0.15
REMOTE = 20  # a meeting that designs a remote control mentions "remote" at least so often
KEPT_SHARE = 0.95
KINDS = {rule.OUTLINE: "outline", rule.OPTION: "option", rule.SHORT: "short"}
SAME_TASK = "QMSum, same task"
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Case:
    """A question with its evidence. `place` is the number of the question in its set, from 1."""

    name: str
    place: int
    answerable: bool
    answers: tuple[str, ...]
    correct: str | None
    given: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What the model does with a case: its confidence, is a forced answer right, does it decline."""

    case: Case
    kind: str
    confidence: float
    right: bool
    declined: bool
    lacks_name: bool

    @property
    def is_odd(self) -> bool:
        return self.case.place % 2 == 1

    def is_answered(self, least: Mapping[str, float]) -> bool:
        return self.confidence >= least[self.kind] and not (self.kind == "short" and self.lacks_name)


class CachingEmbedder:
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


def read_rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "musique" / name).read_text(encoding="utf-8").splitlines()]


async def open_filled_tome(folder: Path, name: str, documents: Sequence[Document], stack: ExitStack) -> Tome:
    tome = stack.enter_context(Tome.open(folder / f"{name}.tome"))
    await tome.aadd(*documents)
    return tome


async def retrieve(tome: Tome, question: Question, without: Collection[str] = ()) -> list[Shown]:
    """The evidence that `hybrid` shows, without the passages of the documents in `without`."""
    found = await assemble("hybrid", tome.kit).retriever.retrieve(question.text, LIMIT + (SPARE if without else 0))
    document_of = {passage.id: passage.document for passage in tome.store.passages().values()} if without else {}
    kept = [piece for piece in found if document_of.get(piece.id) not in without]
    desk = tome.kit.desk
    return desk.show(fit_to_budget(kept[:LIMIT], CONTEXT, desk.count))


def make_case(name: str, place: int, item: Item, shown: Sequence[Shown], *, answerable: bool) -> Case:
    given = make_answer_input(item.question, shown, may_decline=True).model_dump()
    return Case(name, place, answerable, item.answers, item.correct if answerable else None, given)


async def gather_musique(folder: Path) -> list[Case]:
    documents = [Document(id=str(row["id"]), text=row["text"], title=row["title"]) for row in read_rows("corpus.jsonl")]
    cases = []
    with ExitStack() as stack:
        tome = await open_filled_tome(folder, "musique", documents, stack)
        for place, row in enumerate(read_rows("questions.jsonl"), 1):
            item = Item(id=row["id"], question=Question(text=row["question"]), answers=tuple(row["answers"]))
            supporting = frozenset(map(str, row["supporting"]))
            for without in (frozenset[str](), supporting):
                evidence = await retrieve(tome, item.question, without)
                cases.append(make_case("MuSiQue", place, item, evidence, answerable=not without))
    return cases


async def gather_sample(folder: Path) -> list[Case]:
    read = read_dataset("sample")
    novel = Document(id="novel", text=(DATA / "novels" / "gods_of_mars.txt").read_text(encoding="utf-8"))
    cases = []
    with ExitStack() as stack:
        own = await open_filled_tome(folder, "story", read.documents, stack)
        wrong = await open_filled_tome(folder, "novel", [novel], stack)
        for place, item in enumerate(read.items, 1):
            for tome in (own, wrong):
                evidence = await retrieve(tome, item.question)
                cases.append(make_case("sample, options", place, item, evidence, answerable=tome is own))
    return cases


async def gather_qmsum(folder: Path) -> list[Case]:
    read = read_dataset("qmsum", DATA / "qmsum")
    designs = {document.id: document.text.lower().count("remote") >= REMOTE for document in read.documents}
    cases = []
    with ExitStack() as stack:
        tomes = {}
        for document in read.documents:
            tomes[document.id] = await open_filled_tome(folder, document.id, [document], stack)
        ids = list(tomes)
        for place, item in enumerate(read.items, 1):
            [own] = item.documents
            after = [*ids[ids.index(own) + 1 :], *ids[: ids.index(own)]]
            cases.append(
                make_case("QMSum", place, item, await retrieve(tomes[own], item.question), answerable=True),
            )
            if item.slices["type"] == "general":
                continue  # any meeting answers a question for a summary of the whole
            wrong_meetings = {"QMSum": next(meeting for meeting in after if not (designs[meeting] and designs[own]))}
            if designs[own]:
                wrong_meetings[SAME_TASK] = next(meeting for meeting in after if designs[meeting])
            for name, meeting in wrong_meetings.items():
                evidence = await retrieve(tomes[meeting], item.question)
                cases.append(make_case(name, place, item, evidence, answerable=False))
    return cases


async def gather_all() -> None:
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        sets = [await gather(Path(folder)) for gather in (gather_musique, gather_sample, gather_qmsum)]
        cases = [case for cases_of_set in sets for case in cases_of_set]
    CASES.write_text("".join(f"{json.dumps(asdict(case))}\n" for case in cases), encoding="utf-8")


def is_right(case: Case, text: str, choice: str | None) -> bool:
    if not case.answerable:
        return False
    if case.correct:
        return choice == case.correct
    if case.name == "QMSum":
        return rouge("rougeL", text, case.answers) >= RIGHT_ROUGE
    return bool(substring_match(text, case.answers))


def answer_case(case: Case, embedder: Embedder) -> Outcome:
    given = AnswerIn(**case.given)
    forced, free = answer(given.model_copy(update={"may_decline": False}), embedder), answer(given, embedder)
    question = read_question(given.question, given.instructions)
    ranked = rank(question.terms, read_lines(given.evidence, given.notes), question.names)
    compare(question.text, ranked, embedder)
    kind = KINDS[rule.find_least_confidence(question, ranked, has_options=bool(given.options))]
    return Outcome(
        case=case,
        kind=kind,
        confidence=rule.measure_confidence(question, ranked),
        right=is_right(case, forced.answer, forced.choice),
        declined=free.is_declined(may_decline=False),
        lacks_name=rule.describe_lack(question, ranked).startswith("nothing here names"),
    )


def fit(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """For each kind of answer the highest threshold, in hundredths, that keeps `KEPT_SHARE` of the right odd ones."""
    found = {}
    for kind in KINDS.values():
        right = [outcome for outcome in outcomes if outcome.kind == kind and outcome.is_odd and outcome.right]
        low_enough = [
            least
            for least in (hundredth / 100 for hundredth in range(100))
            if np.mean([outcome.is_answered({kind: least}) for outcome in right]) >= KEPT_SHARE
        ]
        found[kind] = max(low_enough)
    return found


def format_share(flags: Iterator[bool]) -> str:
    values = list(flags)
    return f"{100 * np.mean(values):.0f} ({sum(values)} of {len(values)})" if values else "-"


HALVES: Mapping[str, Callable[[Outcome], bool]] = {
    "odd": lambda outcome: outcome.is_odd,
    "even": lambda outcome: not outcome.is_odd,
    "all": lambda outcome: True,
}


def show_sets(outcomes: Sequence[Outcome]) -> None:
    print("| set | unanswerable, declined: odd | even | all | right answers kept: odd | even | all |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    names = list(dict.fromkeys(outcome.case.name for outcome in outcomes))
    main = [name for name in names if name != SAME_TASK]
    for label, chosen in [*((name, [name]) for name in names), ("all but same task", main)]:
        rows = [outcome for outcome in outcomes if outcome.case.name in chosen]
        unanswerable = [outcome for outcome in rows if not outcome.case.answerable]
        right = [outcome for outcome in rows if outcome.right]
        halves = HALVES.values()
        cells = [format_share(outcome.declined for outcome in unanswerable if is_in(outcome)) for is_in in halves]
        cells += [format_share(not outcome.declined for outcome in right if is_in(outcome)) for is_in in halves]
        print(f"| {label} | {' | '.join(cells)} |")


def show_curve(outcomes: Sequence[Outcome], least: Mapping[str, float]) -> None:
    """Risk is the share of wrong ones among the answers given; an answer to an unanswerable question is wrong."""
    print("| thresholds times | coverage | risk | coverage, even | risk, even | declined | right kept |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for factor in FACTORS:
        at = {kind: factor * value for kind, value in least.items()}
        cells = []
        for half in ("all", "even"):
            rows = [outcome for outcome in outcomes if HALVES[half](outcome)]
            answers = [outcome for outcome in rows if not factor or outcome.is_answered(at)]
            cells += [
                f"{100 * len(answers) / len(rows):.0f}",
                f"{100 * np.mean([not outcome.right for outcome in answers]):.0f}",
            ]
        unanswerable = [outcome for outcome in outcomes if not outcome.case.answerable]
        right = [outcome for outcome in outcomes if outcome.right]
        cells.append(format_share(bool(factor) and not outcome.is_answered(at) for outcome in unanswerable))
        cells.append(format_share(not factor or outcome.is_answered(at) for outcome in right))
        print(f"| {factor:g} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="retrieve the evidence again")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: ../shared/data is absent")
        return
    if options.again or not CASES.exists():
        asyncio.run(gather_all())
    embedder = CachingEmbedder(choose_embedder("bundled"))
    cases = [Case(**json.loads(line)) for line in CASES.read_text(encoding="utf-8").splitlines()]
    outcomes = [answer_case(case, embedder) for case in cases]
    VECTORS.write_bytes(pickle.dumps(embedder.vectors))
    counted = [outcome for outcome in outcomes if outcome.case.name != SAME_TASK]
    least = {kind: value for value, kind in KINDS.items()}
    print(f"fitted on odd places: {fit(counted)}; in use: {least}\n")
    show_sets(outcomes)
    print()
    show_curve(counted, least)


if __name__ == "__main__":
    main()
