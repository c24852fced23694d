"""Two systems' answers to one question side by side, each with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tomewise.errors import UnknownName, suggest
from tomewise.evaluate.metrics.rankings import finds
from tomewise.evaluate.results import Results, score_row
from tomewise.evaluate.rows import JsonObject, Row, make_question_record
from tomewise.events import shorten
from tomewise.language.fences import get_letter

if TYPE_CHECKING:
    from rich.console import RenderableType

_MOST_CHARACTERS = 300  # of a piece of evidence, on a terminal
_MOST_IDS = 10  # of questions, in a message


def compare(results: Results, first: str, second: str, question: str) -> dict[str, Any]:
    """The answers of two systems to the question of that id: the question with its gold, and `systems`, a list of two.

    Each has its `scores` by column, without the columns for which the question has no gold; null: it was not judged.
    `evidence` is what the system showed to the model: id, layer, title and text, whether one of its source passages
    holds gold (`gold`), and whether the other system showed it too (`shared`). Raises UnknownName.
    """
    rows = {(row.system, row.item.id): row for row in results.select([first, second]).rows}
    for system in (first, second):
        if (system, question) not in rows:
            ids = [row.item.id for row in rows.values() if row.system == system]
            more = f" and {len(ids) - _MOST_IDS:,} more" if len(ids) > _MOST_IDS else ""
            asked = ", ".join(map(repr, ids[:_MOST_IDS])) + more
            hint = suggest(question, ids)
            raise UnknownName(f"{system} was not asked the question {question!r}: {hint}it was asked {asked}")
    left, right = rows[first, question], rows[second, question]
    shared = {piece["id"] for piece in left.evidence} & {piece["id"] for piece in right.evidence}
    sides = [_describe_side(row, score_row(row, results.about), shared) for row in (left, right)]
    return {**make_question_record(left.item), "systems": sides}


def _describe_side(row: Row, scores: Mapping[str, float | None], shared: set[str]) -> dict[str, Any]:
    gold = _find_gold(row)
    return {
        "system": row.system,
        "answer": row.prediction.answer,
        "choice": row.prediction.choice,
        **{name: getattr(row, name) for name in ("error", "resolved", "forced", "claimed", "support")},
        "scores": scores,
        "quotes": [quote["text"] for quote in row.quotes],
        "evidence": [
            {
                **{name: piece[name] for name in ("id", "layer", "title")},
                "text": row.texts[piece["id"]],
                "gold": bool(gold & set(piece["sources"])),
                "shared": piece["id"] in shared,
            }
            for piece in row.evidence
        ],
        "cost": dict(row.cost),
    }


def _find_gold(row: Row) -> set[str]:
    """Ids of ranked passages in a gold document or over a gold span."""
    item = row.item
    return {
        passage.id
        for passage in row.prediction.ranked
        if passage.document in item.supporting or any(finds(passage, span) for span in item.spans)
    }


def make_rich_comparison(comparison: JsonObject) -> list[RenderableType]:
    """What to print of a comparison on a terminal: the question, then two columns."""
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    letters = [f"{get_letter(number)}. {option}" for number, option in enumerate(comparison["options"])]
    reference = " / ".join(comparison["answers"]) or comparison["correct"] or ""
    head = Text("\n".join([comparison["question"], *letters]), style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), expand=True)
    for side in comparison["systems"]:
        table.add_column(escape(side["system"]), ratio=1, overflow="fold")
    for parts in zip(*map(_write_side, comparison["systems"]), strict=True):
        table.add_row(*parts)
    marks = Text("◆ rests on gold   = shown by both", style="dim")
    return [head, Text(f"reference: {reference}", style="green"), table, marks]


def _write_side(side: JsonObject) -> tuple[str, ...]:
    """The cells of one system, from top to bottom."""
    from rich.markup import escape

    spent = side["cost"]
    choice = f"[bold cyan]{side['choice']}.[/bold cyan] " if side["choice"] else ""
    answer = f"[red]failed: {escape(side['error'])}[/red]" if side["error"] else choice + escape(side["answer"] or "–")
    forced = "\n[yellow]made to answer[/yellow]" if side["forced"] and side["resolved"] else ""
    values = "  ".join(f"{name} {'–' if value is None else f'{value:.2f}'}" for name, value in side["scores"].items())
    cited = "\n".join(f"“{escape(' '.join(quote.split()))}”" for quote in side["quotes"])
    calls = f"{spent['calls']} call{'' if spent['calls'] == 1 else 's'}"
    cost = f"{calls}, {spent['input_tokens']:,} tokens in, path {spent['depth']}"
    evidence = "\n".join(_write_piece(number, piece) for number, piece in enumerate(side["evidence"], start=1))
    return answer + forced, f"[dim]{escape(values)}[/dim]", cited, evidence, f"[dim]{cost}[/dim]"


def _write_piece(number: int, piece: JsonObject) -> str:
    from rich.markup import escape

    title = f"[bold]{escape(piece['title'])}[/bold] " if piece["title"] else ""
    marks = f"{'◆' if piece['gold'] else ' '}{'=' if piece['shared'] else ' '}"
    return f"{number} {marks} {title}{escape(shorten(piece['text'], _MOST_CHARACTERS))}"
