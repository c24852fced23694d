"""How answers, events and tomes look on a terminal."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import accumulate, groupby, pairwise
from operator import itemgetter, xor
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from tomewise.errors import count_noun
from tomewise.events import is_event, name_layers, read_common, shorten
from tomewise.language.fences import oneline
from tomewise.memory.schemata.network import describe_network
from tomewise.store.lookups import read_places
from tomewise.terminal.cleaning import clean
from tomewise.terminal.screen import escape, make_table
from tomewise.text.record_lines import fold_lines
from tomewise.types.place import describe_place, describe_source, name_document
from tomewise.types.proof import PROVED, cut_text, describe_build, is_verified, list_lag, quote_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tomewise.recall.outline import Outline
    from tomewise.store.contract import Texts
    from tomewise.systems.registry import Variant
    from tomewise.tome.collected import Table as CollectedTable
    from tomewise.tome.entities import Entity
    from tomewise.tome.holdings import Contents
    from tomewise.tome.reports import BuildReport, Price
    from tomewise.tome.session_record import SessionRecord
    from tomewise.tome.traces import Trace
    from tomewise.types import Answer, Cost, Event, Evidence, FromSession, Hits, Lagging, Quote, Scope, Statement


EXTRACTIVE_NOTE = "To set a model: `tome models` lists those that can answer, `tome config set model NAME` sets one."
_BEGINNING = 200  # characters to show of a passage and of a gist
_FAILURES = 20  # how many to list
_PIECES = 5  # of evidence to show of one search
_PASSAGES = 10  # of an entity to show
_NAMED_PAIRS = 10  # of rows that may be one thing
_COUNTED = 10  # of one kind whose hits are counted
# What the pieces of evidence of a layer are; another layer goes by its name.
_KINDS = {
    "passages": "passage",
    "tree": "summary",
    "schemata": "summary",
    "memtree": "summary",
    "reports": "summary",
    "entities": "entity",
    "summaries": "summary",
    "episodes": "episode",
    "gists": "gist",
    "facts": "fact",
}
_LINE = 1200  # characters of the summary of an event
_FENCE = re.compile(r"\s*(?:```|~~~)")
_ROW = re.compile(r"\s*\|.*\|\s*")
_CELL_END = re.compile(r"(?<!\\)\|")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]) +(?=\S)")


def note_extractive() -> str:
    """The note for answers without a model, with the best model at hand."""
    from tomewise.language.models_at_hand import suggest_model  # late: it asks the servers of this machine

    options, reason = suggest_model()
    return f"{EXTRACTIVE_NOTE} Here: {options} ({reason})." if options else EXTRACTIVE_NOTE


def print_answer(answer: Answer, out: Console) -> None:
    """Print the answer, its quotes and its cost; or what is missing, and the passages nearest to the question.

    Without a model, print the sentences that are nearest to an answer. A verified text ends with a count.
    """
    remarks, quotes = list(answer.remarks), answer.quotes
    count = remarks.pop(0) if is_verified(answer) else ""
    if answer.only_quotes:
        _print_sentences(answer, remarks, out)
        remarks, quotes = [], ()
    elif not answer.resolved:
        missing = answer.missing or "the evidence does not say"
        out.print(f"[yellow]not answered:[/yellow] {escape(shorten(missing))}")
        for passage in answer.nearest:
            where = f"[dim]{escape(describe_source(passage))}[/dim]"
            out.print(f"  {where} {escape(shorten(passage.text, _BEGINNING))}")
    else:
        _print_text(answer, out)
        if answer.missing and not count:
            out.print(f"[yellow]missing:[/yellow] {escape(shorten(answer.missing))}")
    for remark in remarks:
        out.print(f"[yellow]{escape(remark)}[/yellow]")
    for number, quoted in enumerate(quotes, start=1):
        out.print(f"  [green]{number}[/green] “{_flatten(quoted.text)}” [dim]{_locate(quoted)}[/dim]")
    if answer.coverage.remark:
        out.print(escape(answer.coverage.remark), style="yellow" if answer.coverage.unread else "dim")
    if answer.session:
        out.print(f"[dim]{escape(describe_origin(answer.session))}[/dim]")
    for line in describe_choices(answer):
        out.print(f"[dim]{escape(line)}[/dim]")
    within = f"within {shorten(str(answer.within))}" if answer.within else ""
    origin = filter(None, (answer.system, within, answer.model, str(answer.cost)))
    out.print(f"[dim]{escape(' · '.join(origin))}[/dim]")
    if count:
        out.print(f"[yellow]{count}[/yellow]")


def _print_text(answer: Answer, out: Console) -> None:
    """The text with its marks, and in another colour what nothing supports. A terminal shows rows as a table."""
    from rich.text import Text

    text = Text().append(f"{answer.choice}. " if answer.choice else "", "bold cyan")
    for piece in cut_text(answer):
        is_doubted = piece.support in ("none", "contradicted")
        text.append(clean(piece.text), "yellow" if is_doubted else "bold")
        text.append(piece.mark(), "yellow" if is_doubted else "green")
    lines = text.split("\n", allow_blank=True)
    in_code = accumulate((bool(_FENCE.match(line.plain)) for line in lines), xor)
    rows = (
        out.is_terminal and not code and bool(_ROW.fullmatch(line.plain))
        for line, code in zip(lines, in_code, strict=True)
    )
    for is_row, block in groupby(zip(lines, rows, strict=True), key=itemgetter(1)):
        shown = (line for line, _ in block)
        for each in [_lay_out_rows(shown)] if is_row else map(_hang, shown) if out.is_terminal else shown:
            out.print(each)


def _lay_out_rows(rows: Iterable[Text]) -> Table:
    """Rows of a table of Markdown; one with a rule below it is underlined."""
    table = make_table()
    for row in rows:
        cuts = [found.start() for found in _CELL_END.finditer(row.plain)]
        if row.plain.strip(" \t|:-"):
            ends = cuts if not row.plain[cuts[-1] + 1 :].strip() else [*cuts, len(row)]
            table.add_row(*(row[left + 1 : right] for left, right in pairwise(ends)))
        elif table.rows:
            table.rows[-1].style = "underline"
    return table


def _hang(line: Text) -> Text | Table:
    """A line of a terminal; that of an item goes on below its words."""
    if not (sign := _ITEM.match(line.plain)):
        return line
    item = make_table()
    item.add_row(line[: sign.end() - 1], line[sign.end() :])
    return item


def print_lag(lagging: Lagging | None, out: Console) -> None:
    """Print what the memory has yet to take in, if anything."""
    for lack in list_lag(lagging):
        out.print(f"[yellow]not in memory:[/yellow] {escape(str(lack))}")


def offer_build(lagging: Lagging | None, options: str, out: Console) -> None:
    """Print what brings memory that lags up to date, and what that takes; `options` name the same memory and model."""
    if lagging:
        words = f" --system {quote(lagging.system)}" if lagging.system else ""
        words = words or "".join(f" --layer {quote(name)}" for name in lagging.layers)
        command = f"tome build{options}{words}"
        out.print(f"[dim]{escape(command)}: {escape(describe_build(lagging))}[/dim]")


def _print_sentences(answer: Answer, remarks: Sequence[str], out: Console) -> None:
    """Each sentence with its place, between those before and after it that are not shown themselves."""
    for remark in remarks:
        out.print(f"[yellow]{escape(remark)}[/yellow]")
    shown = {statement.text for statement in answer.statements}
    for number, statement in enumerate(answer.statements, start=1):
        option = f" [cyan]→ option {statement.choice}[/cyan]" if statement.choice else ""
        if not statement.quotes:  # a trace that was cut has none
            out.print(f"  [green]{number}[/green] “{_flatten(statement.text)}”{option}")
            continue
        quoted = statement.quotes[0]
        before, after = (_flatten(text) if text not in shown else "" for text in (quoted.before, quoted.after))
        text = f"[dim]{before} [/dim]" if before else ""
        text += f"[bold]“{_flatten(quoted.text)}”[/bold] [dim]{after}[/dim]"
        out.print(f"  [green]{number}[/green] [dim]{_locate(quoted)}[/dim]{option}")
        out.print(f"    {text}")


def _flatten(text: str) -> str:
    return escape(fold_lines(text))


def describe_choices(answer: Answer) -> list[str]:
    """What a system that chooses among systems chose, and why; what it passed over where nothing was left to choose.

    The last line says which build would help.
    """
    choices = [event.detail for event in answer.events if is_event(event, "chosen")]
    if not choices:
        return []
    lines = ["chosen: " + ", then ".join(f"{each['chosen']} ({shorten(each['because'])})" for each in choices)]
    reasons = {name: why for each in choices if each["chosen"] == "none" for name, why in each["passed_over"].items()}
    if reasons:
        lines.append("passed over: " + shorten("; ".join(f"{name} ({why})" for name, why in reasons.items())))
    if helpful := choices[-1]["build_would_help"]:
        lines.append(f"a build would help: tome build --system {quote(helpful[0])}")
    return lines


def describe_origin(origin: FromSession) -> str:
    """What an answer took from its session, in one line."""
    asked = f", asked as “{shorten(origin.question)}”" if origin.number > 1 else ""
    dropped = f", {len(origin.dropped)} dropped" if origin.dropped else ""
    notes, passages = count_noun(len(origin.notes), "note"), count_noun(len(origin.passages), "passage")
    taken = f"taken from it: {notes}, {passages}{dropped}"
    return f"session {origin.name}, question {origin.number}{asked}; {taken}"


def list_sessions(sessions: Sequence[SessionRecord]) -> Table:
    """What `tome sessions` prints: each session with its last question."""
    table = make_table("session", "system", "questions", "last question")
    for record in sessions:
        last = record.turns[-1].asked if record.turns else "—"
        table.add_row(*map(escape, (record.name, record.system, str(record.count), shorten(last, 100))))
    return table


def print_session(record: SessionRecord, notes: Sequence[str], out: Console) -> None:
    """What `tome sessions NAME` prints: the turns, and the notes of the working memory."""
    within = f", within {shorten(str(record.within))}" if record.within else ""
    out.print(f"[bold]{escape(record.name)}[/bold] [dim]{escape(record.system + within)}[/dim]")
    left = record.count - len(record.turns)
    if left:
        out.print(f"[dim]earlier questions that are no longer kept: {left}[/dim]")
    for number, turn in enumerate(record.turns, start=left + 1):
        meant = f" [dim]({escape(shorten(turn.question))})[/dim]" if turn.question != turn.asked else ""
        out.print(f"[green]{number}[/green] {escape(turn.asked)}{meant}")
        out.print(f"    {escape(shorten(turn.answer or '—'))}")
    for note in notes:
        out.print(f"  [dim]note[/dim] {escape(shorten(note))}")


def _locate(quoted: Quote) -> str:
    return f"{escape(describe_source(quoted))}, characters {quoted.start}–{quoted.end}"


def print_event(event: Event, out: Console, store: Texts) -> None:
    """Print one step of a trace: its summary, and below it the fields of its detail that `Event` names.

    `store` says from which documents passages are.
    """
    out.print(
        f"[magenta]{event.step}[/magenta] [bold]{escape(event.name)}[/bold] {escape(shorten(event.summary, _LINE))}"
    )
    common = read_common(event)
    for note in common.notes:
        out.print(f"    [dim]note[/dim] {escape(shorten(note, 100))}")
    for row in common.pool:
        out.print(f"    {escape(_describe_row(row))}")
    places = read_places(store, (piece.id for piece in common.evidence[:_PIECES]))
    for piece in common.evidence[:_PIECES]:
        document = name_document(places[piece.id][0]) if piece.id in places else ""
        words = (_KINDS.get(piece.layer, piece.layer), piece.title or document, describe_place(piece.place))
        kind = ", ".join(filter(None, words))
        out.print(f"    [dim]{piece.score:.3f} {escape(kind)}[/dim] {escape(shorten(piece.text, 100))}")
        if piece.rewrite:
            _print_rewrite(piece.rewrite.text, "", out)
    if (more := len(common.evidence) - _PIECES) > 0:
        out.print(f"    [dim]… and {more} more (`tome log` keeps them; `--json` shows them)[/dim]")


def _describe_row(row: Mapping[str, Any]) -> str:
    """Plain values in one line: texts as they are, numbers with their names."""
    values = {name: value for name, value in row.items() if value not in (None, "")}
    if "layer" in values:
        values["layer"] = name_layers(str(values["layer"]))
    return ", ".join(
        shorten(value, 100) if isinstance(value, str) else f"{name}: {value}" for name, value in values.items()
    )


def print_evidence(pieces: Sequence[Evidence], out: Console, scope: Scope | None = None) -> None:
    """What `tome search` prints: each piece of evidence with its score, its layer and the passages it rests on."""
    if scope:
        out.print(f"[dim]within {escape(shorten(str(scope)))}[/dim]")
    if not pieces:
        out.print("[yellow]nothing found[/yellow]")
    numbers = {piece.id: number for number, piece in enumerate(pieces, start=1)}
    for number, piece in enumerate(pieces, start=1):
        sources = piece.origins
        more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
        place = describe_place(piece.place, sources[0].position + 1) if sources else ""
        where = f"{piece.title or name_document(sources[0].document)}, {place}{more}" if sources else ""
        out.print(f"[green]{number}[/green] [dim]{piece.score:.3f} {escape(piece.layer)}[/dim] {escape(where)}")
        out.print(f"    {escape(shorten(piece.text, _BEGINNING))}")
        if rewrite := piece.rewrite:
            giver = numbers.get(rewrite.source)  # the piece that gave the name in it
            _print_rewrite(rewrite.text, f", “{rewrite.name}” from {giver}" if giver else "", out)


def print_table(table: CollectedTable, out: Console, *, show_rows: bool) -> None:
    """What `tome collect` prints: the rows with the place of each, the figures, and what was read."""
    out.print(f"[dim]{escape(oneline(table.item))}; one by {escape(', '.join(table.key))}[/dim]")
    if show_rows and table.rows:
        rows = make_table("#", *(escape(oneline(column.name)) for column in table.columns), "where")
        for number, row in enumerate(table.rows, start=1):
            where = describe_source(row.quotes[0]) if row.quotes else ""
            more = f" and {row.places - 1} more" if row.places > 1 else ""
            rows.add_row(str(number), *map(_write_cell, row.cells), f"[dim]{escape(oneline(where))}{more}[/dim]")
        out.print(rows)
    for figure in table.figures:
        out.print(f"[bold]{escape(oneline(str(figure)))}[/bold]")
    for first, second in table.doubtful[:_NAMED_PAIRS]:
        out.print(f"[yellow]rows {first + 1} and {second + 1} may be one thing[/yellow]")
    if table.dropped_quotes:
        out.print(
            f"[yellow]{count_noun(table.dropped_quotes, 'row')} of the model left out: no passage has them[/yellow]"
        )
    read = "all passages in scope were read, and nothing was left out" if table.all_read else f"read: {table.coverage}"
    out.print(f"[dim]{escape(read)} · {escape(str(table.cost))}[/dim]")
    if remark := table.coverage.remark:
        out.print(f"[yellow]{escape(remark)}[/yellow]")


def _write_cell(cell: Statement) -> str:
    text = escape(oneline(cell.text))
    return text if not cell.text or cell.support in PROVED else f"[yellow]{text} ({cell.support})[/yellow]"


def print_outline(outline: Outline, out: Console) -> None:
    """What `tome show DOCUMENT --outline` prints: its sizes, its headings with where they begin, who speaks."""
    pages = f", {count_noun(outline.pages, 'page')}" if outline.pages else ""
    sizes = f"{count_noun(outline.characters, 'character')}, {count_noun(outline.lines, 'line')}{pages}"
    out.print(f"[bold]{escape(oneline(outline.title or name_document(outline.document)))}[/bold] {sizes}")
    for each in outline.sections:
        page = f"p. {each.page}, " if each.page else ""
        place = f"{page}characters {each.start:,} to {each.end:,}"
        out.print(f"{'  ' * len(each.chapter)}{escape(oneline(each.chapter[-1]))} [dim]{place}[/dim]")
    for speaker, characters in outline.speakers.items():
        out.print(f"[dim]{escape(oneline(speaker))} says {count_noun(characters, 'character')}[/dim]")


def print_hits(hits: Hits, skip: int, out: Console, scope: Scope | None = None) -> None:
    """What `tome find` prints: each place with its line, then how many there are of what."""
    if scope:
        out.print(f"[dim]within {escape(shorten(str(scope)))}[/dim]")
    for number, hit in enumerate(hits.quotes, start=skip + 1):
        place = f"{describe_source(hit)}, characters {hit.start:,} to {hit.end:,}"
        out.print(f"[green]{number}[/green] [dim]{escape(oneline(place))}[/dim]")
        before, words, after = (escape(oneline(f"|{text}|"))[1:-1] for text in (hit.before, hit.text, hit.after))
        out.print(f"    {before}[bold]{words}[/bold]{after}")
    wanted = f" ({', '.join(map(shorten, hits.wanted))})" if len(hits.wanted) > 1 else ""
    out.print(f"[bold]{hits}[/bold]{escape(wanted)}; {count_noun(hits.coverage.read, 'passage')} read, all in scope")
    for name, counts in hits.counts.items():
        if len(counts) > 1:
            shown = [f"{name_document(each)} {count:,}" for each, count in counts[:_COUNTED]]
            more = f", {len(counts) - _COUNTED:,} more" if len(counts) > _COUNTED else ""
            out.print(f"[dim]by {name}: {escape(oneline(', '.join(shown)))}{more}[/dim]")
    if hits.quotes and (left := hits.total - skip - len(hits.quotes)) > 0:
        out.print(f"[dim]{left:,} more: --skip {skip + len(hits.quotes)}, or a higher --limit[/dim]")
    if remark := hits.coverage.remark:
        out.print(f"[yellow]{escape(remark)}[/yellow]")


def _print_rewrite(text: str, origin: str, out: Console) -> None:
    """The rewritten question that brought a piece, and where the name in it comes from."""
    out.print(f"    [dim]asked again: “{escape(shorten(text))}”{escape(shorten(origin))}[/dim]")


def print_price(costs: Price, out: Console) -> None:
    """What `--estimate` prints."""
    table = make_table("layer" if costs.layers else "")
    for heading in ("calls", "tokens in", "tokens out", "cost"):
        table.add_column(heading, justify="right")
    for layer in costs.layers:
        table.add_row(escape(layer.layer), *_list_costs(layer.cost))
    table.add_row(costs.bound or "in all", *_list_costs(costs.total))
    out.print(table)
    out.print(f"[dim]{escape(costs.system)} with {escape(costs.model)}; nothing was asked yet[/dim]")
    if costs.time:
        out.print(f"[dim]{costs.time} at the speed that was measured of it[/dim]")
    if costs.total.calls:
        out.print(
            "[dim]calls that repair a reply or ask again for inventions, and requests tried again, come on top[/dim]"
        )
    if instead := costs.instead:
        _, tokens_in, tokens_out, cost = _list_costs(instead.total)
        words = f"{count_noun(instead.total.calls, 'call')}, {tokens_in} tokens in, {tokens_out} out, cost {cost}"
        out.print(f"[dim]for comparison: --system {escape(quote(instead.system))} takes {words}[/dim]")


def _list_costs(cost: Cost) -> tuple[str, str, str, str]:
    dollars = "unknown" if cost.dollars is None else f"${cost.dollars:.4f}"
    return f"{cost.calls:,}", f"{cost.input_tokens:,}", f"{cost.output_tokens:,}", dollars


def print_build(report: BuildReport, variant: Variant, options: str, out: Console) -> None:
    """What `tome build` prints; `options` name the same memory and model in the next command."""
    if not report.layers:
        out.print(f"{escape(variant.name)} needs no layers beyond the passages: ask right away")
        return
    for layer in report.layers:
        counts = f"{layer.added:,} added" + (f", {layer.removed:,} removed" if layer.removed else "")
        out.print(f"[bold]{escape(layer.layer)}[/bold] {counts if layer.added or layer.removed else 'up to date'}")
        for note in layer.notes:
            out.print(f"  [dim]{escape(note)}[/dim]")
        for reason, count in Counter(layer.failed.values()).most_common(3):
            out.print(f"  [yellow]failed for {count}[/yellow] {escape(shorten(reason, 200))}")
        if layer.failed:
            out.print("  [dim]the next build tries these again; you can use the rest[/dim]")
    out.print(f"[dim]{report.cost}[/dim]")
    out.print(f'[dim]next: tome ask{escape(options)} --system {escape(quote(variant.name))} "your question"[/dim]')


def print_contents(contents: Contents, out: Console) -> None:
    """What `tome show` prints."""
    passages = f"passages of {contents.passage_tokens} tokens, overlap {contents.overlap}"
    out.print(
        f"[bold]{escape(_shorten_path(contents.tome))}[/bold] [dim]{contents.bytes / 1e6:.1f} MB and "
        f"{contents.cache_bytes / 1e6:.1f} MB of caches · embedder "
        f"{escape(str(contents.embedder))} · {passages}[/dim]"
    )
    if advice := contents.recommended:
        out.print(f"recommended: [bold]--system {escape(advice.system)}[/bold] [dim]{escape(advice.because)}[/dim]")
    layers = make_table("layer", "nodes", "failed")
    for name, layer in contents.layers.items():
        layers.add_row(escape(name), f"{layer.nodes:,}", str(layer.failed) if layer.failed else "")
    out.print(layers)
    for name, replies in contents.replies.items():
        counts = " and ".join(f"{count:,} {word}" for word, count in replies.items())
        out.print(f"[dim]{escape(name)}: of the replies of the model {counts}[/dim]")
    for name, network in contents.networks.items():
        out.print(f"[dim]{escape(name)}: {describe_network([network])}[/dim]")
    for failed in contents.failed[:_FAILURES]:
        places = ", ".join(map(str, failed.passages))
        where = f"{escape(failed.layer)} lacks {escape(failed.document)}, passage {shorten(places, 60)}"
        out.print(f"[yellow]{where}[/yellow]: {escape(shorten(failed.reason, 200))}")
    if contents.failed:
        more = max(0, len(contents.failed) - _FAILURES)
        rest = f"… and {more:,} more (tome show --json lists all); " if more else ""
        out.print(f"[dim]{rest}the next build tries these again; you can use the rest[/dim]")
    for unread in contents.unread:
        out.print(f"[yellow]not read:[/yellow] {escape(str(unread))}")
    documents = make_table("document", "passages", "characters")
    for record in contents.documents[:50]:
        name = f"{escape(record.title)}  [dim]{escape(record.id)}[/dim]" if record.title else escape(record.id)
        if record.metadata:
            fields = ", ".join(f"{field}={_join_values(value)}" for field, value in record.metadata.items())
            name += f"\n  [dim]{escape(shorten(fields))}[/dim]"
        documents.add_row(name, f"{record.passages:,}", f"{record.characters:,}")
    out.print(documents)
    if len(contents.documents) > 50:
        out.print(f"[dim]… and {len(contents.documents) - 50:,} more: tome show --json lists all[/dim]")


def _shorten_path(path: str) -> str:
    """The path as seen from the current folder, where it lies inside."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _join_values(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def list_traces(traces: Sequence[Trace]) -> Table:
    """What `tome log` prints: the latest questions with their answers."""
    table = make_table("", "asked", "system", "question", "answer", "calls")
    for trace in traces:
        answer = trace.answer
        words = (quote_words(answer) if answer.resolved else answer.text) or "—"
        texts = (_show_time(trace), answer.system, shorten(trace.question.text, 100), shorten(words, 100))
        table.add_row(f"[bold]{trace.number}[/bold]", *map(escape, texts), str(answer.cost.calls))
    return table


def print_trace(trace: Trace, out: Console, store: Texts) -> None:
    """What `tome log N` prints: a question, how it was answered, and what was left out of the trace."""
    question = trace.question
    out.print(f"[bold]{escape(question.text)}[/bold] [dim]trace {trace.number}, asked {_show_time(trace)}[/dim]")
    for number, option in enumerate(question.options):
        out.print(f"  [cyan]{chr(ord('A') + number)}.[/cyan] {escape(option)}")
    for event in trace.answer.events:
        print_event(event, out, store)
    print_answer(trace.answer, out)
    if trace.cut:
        out.print(f"[dim]cut, to keep the trace small (setting trace_bytes): {'; '.join(trace.cut)}[/dim]")


def _show_time(trace: Trace) -> str:
    return trace.asked[:19].replace("T", " ")


def print_flags(contents: Contents, out: Console) -> None:
    """What `tome show --flags` prints: by layer, model and kind how many statements, and some of them."""
    for layer, models in contents.flags.items():
        for model, kinds in models.items():
            for kind, found in kinds.items():
                out.print(f"[bold]{escape(layer)}[/bold], {escape(model)}: {found['count']:,} {kind}")
                for statement in found["examples"]:
                    out.print(f"  {escape(shorten(statement, _BEGINNING))}")
    if not contents.flags:
        out.print("[dim]nothing was flagged[/dim]")


def print_entity(found: Entity, out: Console) -> None:
    """What `tome show --entity NAME` prints: the facts by graph, then passages with their gists."""
    out.print(f"[bold]{escape(found.name)}[/bold]")
    by_graph: dict[str, list[str]] = defaultdict(list)
    for fact in found.facts:
        by_graph[fact.graph].append(fact.text)
    for graph, facts in by_graph.items():
        out.print(f"[dim]{count_noun(len(facts), 'fact')} of graph:{escape(graph)}[/dim]")
        for text in facts:
            out.print(f"  {escape(shorten(text, _BEGINNING))}")
    for passage in found.passages[:_PASSAGES]:
        out.print(f"[green]{escape(describe_source(passage))}[/green] {escape(shorten(passage.text, _BEGINNING))}")
        if gist := found.gists.get(passage.id):
            out.print(f"  [dim]gist[/dim] {escape(shorten(gist, _BEGINNING))}")
    if len(found.passages) > _PASSAGES:
        out.print(f"[dim]… and {len(found.passages) - _PASSAGES:,} more passages (--json shows them)[/dim]")
