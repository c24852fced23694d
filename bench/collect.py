"""How many of the facts that a script put into texts stand in the rows of `tome collect`, and no others.

    python bench/collect.py                                                       # from kept replies; asks nothing
    python bench/collect.py --model openai:strong --url http://127.0.0.1:8766/v1  # asks for what is not kept
    python bench/collect.py --model openai:qwen-1.5b --url http://127.0.0.1:9970/v1 --small
    python bench/collect.py --perfect                                             # a reader who misses nothing

The texts are those of `planted_facts.py`: 20 for a strong model, and with `--small` 20 of 8 facts. Columns and key are
given, as a user gives them; of each fifth text one call plans them. A row counts if each of its cells has the value of
the fact, once. `--series choose` has other facts in other prose, for choosing prompts.

Replies are kept in `bench/collect/`, by what was sent. A clean run is one in which every reply could be used at once;
then `all_read` should hold. Each text is also run again with one of its kept replies spoiled in one of four ways,
where it never may be.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from planted_facts import DATA, Fact, Kind, PlantedText, make_text, spell
from small_models import Keeper, keep_replies
from tomewise import Document, Tome
from tomewise.errors import TomewiseError
from tomewise.language.roles import Batch
from tomewise.testing.scripted import ScriptedModel
from tomewise.text.alignment import fold
from tomewise.tome.collected import Table, read_amount, read_date

REPLIES = Path(__file__).parent / "collect"
PATIENCE = 36_000  # seconds for one reply: a reader may play the model
SPOILED = ("refused", "no JSON", "a passage left out", "a row made up")
TYPES = ("ship", "schooner", "brig", "the", "a", "an", "farm", "of")  # words that a cell may have beside a name
Asked: TypeAlias = dict[str, Any]  # a request with its reply, as the keeper notes it
RATE = (" a year", " every year", " per year", " yearly", " each year")


@dataclass
class Result:
    """What came of one text."""

    name: str
    facts: int
    rows: int = 0
    right: int = 0
    twice: int = 0
    like: int = 0  # rows of sentences that only seem to say a fact
    all_read: bool = False
    is_clean: bool = False
    is_shown: bool = False  # every passage stands in a request that was answered
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    error: str = ""
    missed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def precision(self) -> float:
        return self.right / self.rows if self.rows else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.facts

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.rows + self.facts)


# ---------------------------------------------------------------- values


def has_value(cell: str, slot: str, value: str, short: str = "") -> bool:
    """Whether a cell has the value of a fact, in whatever spelling."""
    if slot == "money":
        for rate in RATE:
            cell = cell.removesuffix(rate)
        amount = read_amount(cell)
        return amount is not None and amount[0] == int(value) and amount[1] in ("", "pound")
    if slot == "date":
        return read_date(cell) == tuple(map(int, value.split("-")))
    return list_words(cell) in (list_words(value), list_words(short or value))


def list_words(text: str) -> list[str]:
    return [word for word in fold(text).words if word not in TYPES]


def is_fact(cells: Sequence[str], kind: Kind, fact: Fact) -> bool:
    shorts = (fact.short, *[""] * len(cells))
    return all(map(has_value, cells, kind.slots, fact.values, shorts))


def score(planted: PlantedText, table: Table, result: Result) -> None:
    """Count the rows; a row of a fact that has one, and a row of no fact, are false."""
    kind = planted.kind
    rows = choose_columns(planted, table)
    found = [next((at for at, fact in enumerate(planted.facts) if is_fact(row, kind, fact)), None) for row in rows]
    known = {at for at in found if at is not None}
    result.rows, result.right = len(rows), len(known)
    result.twice = sum(at is not None for at in found) - len(known)
    false = [(cells, row) for cells, row, at in zip(rows, table.rows, found, strict=True) if at is None]
    quotes = [" ".join(quote.text for quote in row.quotes) for _, row in false]
    result.like = sum(any(each in quote or quote in each for each in planted.others) for quote in quotes)
    result.wrong = tuple(" | ".join(cells) for cells, _ in false)
    result.missed = tuple(" | ".join(fact.values) for at, fact in enumerate(planted.facts) if at not in known)


def choose_columns(planted: PlantedText, table: Table) -> list[list[str]]:
    """The cells of each row for the columns of its kind. Of planned columns those in which most values are."""
    texts = [[cell.text for cell in row.cells] for row in table.rows]
    count = len(planted.kind.slots)
    if not planted.is_planned:
        return texts
    texts = [[*row, *[""] * count] for row in texts]
    orders = permutations(range(len(table.columns) + count), count)

    def count_values(order: Sequence[int]) -> int:
        return sum(
            any(has_value(row[at], planted.kind.slots[slot], fact.values[slot]) for fact in planted.facts[:20])
            for row in texts[:20]
            for slot, at in enumerate(order)
        )

    best = max(orders, key=count_values)
    return [[row[at] for at in best] for row in texts]


# ---------------------------------------------------------------- runs


def collect(planted: PlantedText, model: Any, url: str = "") -> tuple[Table, list[str]]:
    """The table, and the texts of all passages."""
    settings = {"base_url": url, "api_key": "none", "timeout": PATIENCE} if url else {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "a.tome"
        with Tome.open(place, embedder="hash", model=model, settings=settings) as tome:
            tome.add(Document(id=planted.name, text=planted.text, title="Skerry"))
            kind = planted.kind
            given: dict[str, Any] = {} if planted.is_planned else {"columns": kind.columns, "key": kind.key}
            table = tome.collect(kind.question if planted.is_planned else kind.asked, **given)
            return table, [passage.text for passage in tome.store.passages().values()]


def run(planted: PlantedText, model: str, make_keeper: Callable[[], Keeper]) -> tuple[Result, Keeper]:
    """What came of one text through a server that keeps replies."""
    keeper, result = make_keeper(), Result(planted.name, len(planted.facts))
    with keep_replies(keeper) as url:
        try:
            table, passages = collect(planted, model, url)
        except TomewiseError as error:
            result.error = f"{type(error).__name__}: {error}"
            return result, keeper
    score(planted, table, result)
    shown = [each["request"]["messages"][-1]["content"] for each in keeper.asked if each["status"] == 200]
    result.is_shown = all(any(passage in prompt for prompt in shown) for passage in passages)
    result.is_clean = result.is_shown and all(each["status"] == 200 and not each["again"] for each in keeper.asked)
    cost = table.cost
    result.all_read, result.calls = table.all_read, cost.calls
    result.tokens_in, result.tokens_out = cost.input_tokens, cost.output_tokens
    return result, keeper


class Replayer(Keeper):
    """Answers from what is kept alone."""

    def ask(self, digest: str, request: dict[str, Any], body: bytes) -> dict[str, Any]:
        return {"digest": digest, "status": 400, "seconds": 0, "reply": {"error": {"message": "not kept"}}}


def spoil(rows: Sequence[Asked], way: str) -> Asked | None:
    """One of the rows that a table was made of, spoiled; None if none can be."""
    for row in rows:
        try:
            text = row["reply"]["choices"][0]["message"]["content"]
            reply = json.loads(text)
        except (KeyError, ValueError):
            continue
        items = reply.get("passages", [reply]) if isinstance(reply, dict) else []
        if not items or "rows" not in items[0]:
            continue
        spoiled = copy.deepcopy(row)
        if way == "refused":
            spoiled |= {"status": 400, "reply": {"error": {"message": "refused"}}}
            return spoiled
        if way == "a row made up":
            cells = [f"Nobody Nowhere{number}" for number in range(9)]
            wide = next((len(each["cells"]) for item in items for each in item["rows"]), 3)
            items[0]["rows"] = [*items[0]["rows"], {"quote": "Nobody lives nowhere.", "cells": cells[:wide]}]
            text = json.dumps(reply)
        elif way == "a passage left out" and len(items) > 1:
            text = json.dumps({"passages": items[:-1]})
        else:
            text = "There is nothing to report."
        spoiled["reply"]["choices"][0]["message"]["content"] = text
        return spoiled
    return None


def run_spoiled(planted: PlantedText, model: str, file: Path, asked: Sequence[Asked]) -> tuple[str, Result] | None:
    """The text again, with one of its replies spoiled; None without a reply to spoil."""
    way = SPOILED[int(planted.name[-2:]) % len(SPOILED)]
    spoiled = spoil(asked, way)
    if spoiled is None:
        return None

    def make_keeper() -> Keeper:
        keeper = Replayer("", file, plain=False)
        keeper.kept[spoiled["digest"]] = spoiled
        return keeper

    return way, run(planted, model, make_keeper)[0]


def make_perfect(planted: PlantedText) -> ScriptedModel:
    """A model that gives the row of every sentence that stands whole in a passage, and knows which rows are one."""
    kind = planted.kind

    def read(text: str) -> dict[str, Any]:
        rows = []
        for fact in planted.facts:
            for sentence in (each for each in fact.sentences if each in text):
                cells = [write_cell(sentence, slot, value) for slot, value in zip(kind.slots, fact.values, strict=True)]
                cells[0] = cells[0] or fact.short
                rows.append({"quote": sentence, "cells": cells})
        return {"rows": rows}

    def collect_rows(given: Any) -> dict[str, Any]:
        if isinstance(given, Batch):
            return {"passages": [{"label": f"P{n}", **read(each.text)} for n, each in enumerate(given.passages, 1)]}
        return read(given.text)

    def name_facts(row: str) -> set[int]:
        cells = dict(each.partition(": ")[::2] for each in row.split("; "))
        texts = [cells.get(column.partition(":")[0], "") for column in kind.columns]
        return {
            at
            for at, fact in enumerate(planted.facts)
            if all(
                not text or has_value(text, slot, value, "" if n else fact.short)
                for n, (text, slot, value) in enumerate(zip(texts, kind.slots, fact.values, strict=True))
            )
        }

    def find_same(given: Any) -> dict[str, Any]:
        pairs = enumerate(given.pairs, 1)
        return {"reasoning": "", "same": [n for n, each in pairs if name_facts(each.first) & name_facts(each.second)]}

    columns = [dict(zip(("name", "kind"), (*each.split(":"), "text"), strict=False)) for each in kind.columns]
    plan = {"item": kind.asked, "columns": columns, "key": list(kind.key)}
    return ScriptedModel({"collect": collect_rows, "same_rows": find_same, "plan_table": lambda _: plan})


def write_cell(sentence: str, slot: str, value: str) -> str:
    """The value as the sentence spells it; empty if it does not."""
    for way in range(3):
        spelt = spell(slot, value, way)
        for written in (spelt, spelt[0].upper() + spelt[1:]):
            if written in sentence:
                return written
    return ""


# ---------------------------------------------------------------- what is printed


def print_results(results: Sequence[Result], spoiled: Sequence[tuple[str, Result]]) -> None:
    """A line for each text, and their sums."""
    for each in results:
        print(
            f"{each.name}: {each.facts} facts, {each.rows} rows, {each.right} right, {each.twice} twice, {each.like} "
            f"that only seem so · precision {each.precision:.3f}, recall {each.recall:.3f}, F1 {each.f1:.3f} · "
            f"{'all read' if each.all_read else 'not all read'}{'' if each.is_clean else ', not clean'} · "
            f"{each.calls} calls, {each.tokens_in:,} tokens in, {each.tokens_out:,} out {each.error}"
        )
    facts, rows, right = (sum(getattr(each, name) for each in results) for name in ("facts", "rows", "right"))
    print(
        f"{len(results)} texts, {facts} facts: F1 {fmean(each.f1 for each in results):.3f} on average, and together "
        f"{2 * right / (rows + facts):.3f} (precision {right / max(1, rows):.3f}, recall {right / facts:.3f})"
    )
    clean = [each for each in results if each.is_clean]
    wrongly = [each.name for each in results if each.all_read and not each.is_shown]
    wrongly += [f"{each.name}, {way}" for way, each in spoiled if each.all_read]
    ways = ", ".join(f"{way} {count}" for way, count in Counter(way for way, _ in spoiled).items())
    print(
        f"`all_read` holds in {sum(each.all_read for each in clean)} of {len(clean)} clean runs; "
        f"wrongly in {len(wrongly)} of {len(results)} runs and {len(spoiled)} spoiled ones ({ways}) {wrongly or ''}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="openai:strong")
    parser.add_argument("--url", default="", help="a server of chat completions; without one, from kept replies alone")
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--small", action="store_true", help="texts of 8 facts")
    parser.add_argument("--series", choices=("report", "choose"), default="report")
    parser.add_argument("--perfect", action="store_true", help="a reader who misses nothing: what else is lost")
    parser.add_argument("--plain", action="store_true", help="without response_format")
    parser.add_argument("--together", type=int, default=20, help="texts at a time")
    parser.add_argument("--out", type=Path, help="a JSON line for each text, with what was missed")
    given = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA} does not exist: nothing to read")
        return
    file = REPLIES / f"{given.model.partition(':')[2].replace('/', '-')}{'-small' if given.small else ''}.jsonl"
    texts = [make_text(given.series, number, small=given.small) for number in range(given.texts)]
    if not (given.url or given.perfect or file.exists()):
        print(f"{file.name} has no replies: --url names a server to ask, --help says more")
        return
    spoiled: list[tuple[str, Result] | None] = []
    if given.perfect:
        results = [Result(each.name, len(each.facts)) for each in texts]
        for planted, result in zip(texts, results, strict=True):
            table, _ = collect(planted, make_perfect(planted))
            score(planted, table, result)
            result.all_read = result.is_clean = table.all_read
            result.is_shown = True
    else:
        REPLIES.mkdir(exist_ok=True)
        kept = (Keeper if given.url else Replayer)(given.url, file, given.plain, PATIENCE)

        def make_keeper() -> Keeper:
            """One for each text, which notes what it was asked; what they keep is shared."""
            keeper = copy.copy(kept)
            keeper.asked = []
            return keeper

        with ThreadPoolExecutor(given.together) as pool:
            runs = list(pool.map(lambda planted: run(planted, given.model, make_keeper), texts))
        results = [result for result, _ in runs]
        for planted, (result, keeper) in zip(texts, runs, strict=True):
            if not result.error:
                spoiled.append(run_spoiled(planted, given.model, file, keeper.asked))
    print_results(results, [each for each in spoiled if each])
    if given.out:
        lines = [json.dumps(asdict(each), ensure_ascii=False) for each in results]
        given.out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
