"""The commands `tome eval ...`: run, papers, list, report, compare, export."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tomewise.errors import UsageError, count_noun
from tomewise.settings import Settings
from tomewise.terminal.options import MODEL, NOTHING, Json, Stated, load_settings, take_settings
from tomewise.terminal.screen import console, escape, make_table, print_json, print_message
from tomewise.terminal.work import show_work

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tomewise.evaluate.experiment import Experiment
    from tomewise.evaluate.papers import PaperExperiment
    from tomewise.evaluate.results import Results
    from tomewise.evaluate.table import Table

app = typer.Typer(name="eval", invoke_without_command=True)

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="The folder of experiments.")]
Kept = Annotated[Path, typer.Argument(metavar="OUT", help="The folder of experiments, or of one experiment.")]
Name = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The beginning of its name. [dim]Default: the latest[/dim]"),
]
MetricName = Annotated[list[str] | None, typer.Option(metavar="NAME", help="A metric; give it again for each.")]
By = Annotated[
    list[str] | None,
    typer.Option(metavar="SLICE", help="Also a table by type, hops, length ...; give it again for each."),
]
Baseline = Annotated[str | None, typer.Option(metavar="NAME", help="The system to test the others against.")]
_OUT = Path("tome-eval")
# What an experiment takes from the settings as it is.
_SETTINGS = (
    "model models base_url limit timeout window server budget max_failures embedder_base_url "
    "passage_tokens overlap prompts on workers start_seconds"
).split()


@app.callback()
def print_help(context: typer.Context) -> None:
    """Compare systems on questions with known answers."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Example: tome eval run naive hybrid --data sample --judge acc-l --baseline naive")
@take_settings(*MODEL, "on", "workers")
def run(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM",
            help="hybrid, 'SYSTEM:ABLATION', 'SYSTEM key=value', SYSTEM:all, all, or paper:NAME for a paper's rows.",
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="The dataset, or sample for the bundled one; with paper:NAME, the folder that has all.",
        ),
    ],
    layout: Annotated[
        str, typer.Option(metavar="NAME", help="The layout of its files; see `tome eval list --layouts`.")
    ] = "auto",
    metric: MetricName = None,
    judge: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A judge; give it again for each.")] = None,
    questions: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the first N questions.")] = None,
    out: Out = _OUT,
    stated: Stated = NOTHING,
    judge_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model that judges. [dim]Default: the model that answers[/dim]"),
    ] = None,
    embedder: Annotated[str | None, typer.Option(metavar="NAME", help="The embedder.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="How many questions, and model calls, run side by side.")
    ] = None,
    retrieval_only: Annotated[
        bool, typer.Option("--retrieval-only", help="Rank evidence, and ask for no answer.")
    ] = False,
    short_answers: Annotated[
        bool,
        typer.Option("--short-answers", help="Without a model, cut answers out of sentences, for metrics of answers."),
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask failed questions again.")] = False,
    baseline: Baseline = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Ask systems the questions of a dataset and score them. A stopped run continues where it was."""
    import asyncio

    chosen = load_settings(stated, embedder=embedder, limit=limit)
    _check_folder("--out", out)  # now, and not after hours of work that cannot be stored
    with show_work("running the experiment") as work:
        from tomewise.evaluate.experiment import Experiment
        from tomewise.evaluate.papers import PREFIX, split_papers

        paper, others = split_papers(systems)
        settings = {
            "judges": judge or (),
            "questions": questions,
            "out": out,
            "judge_model": judge_model,
            "embedder": chosen.embedder or "bundled",
            "retrieval_only": retrieval_only,
            "short_answers": short_answers,
            **{name: getattr(chosen, name) for name in _SETTINGS},
        }
        experiments: dict[str, Experiment]
        if paper:
            if layout != "auto":
                raise UsageError(f"{PREFIX}{paper.name} reads each data set in its own layout: leave --layout out")
            experiments = paper.make_experiments(Path(data), systems=others, metrics=metric or (), **settings)
        else:
            experiments = {"": Experiment(others, data, metric or (), layout=layout, **settings)}
        for experiment in experiments.values():
            asyncio.run(experiment.arun(on_progress=work.report, retry_failed=retry_failed))
    slices, against = by or (), _baseline_name(baseline)
    tables = [
        paper.make_table(name, experiment, baseline=against, by=slices)
        if paper
        else experiment.table(baseline=against, by=slices)
        for name, experiment in experiments.items()
    ]
    _warn(paper, experiments, tables)
    if as_json:
        from tomewise.evaluate.report import make_json

        records = [make_json(table) for table in tables]
        print_json({"paper": paper.name, "tables": records} if paper else records[0])
        return
    for table in tables:
        _show(table, as_json, "table")
    names = ", ".join(str(out / experiment.results.about.name) for experiment in experiments.values())
    console().print(f"[dim]kept in {names}; again: tome eval report {out}[/dim]", markup=True)


def _warn(paper: PaperExperiment | None, experiments: Mapping[str, Experiment], tables: Sequence[Table]) -> None:
    """Say on standard error what a reader of these tables must know first."""
    from tomewise.evaluate.table import describe_rules

    if paper and (absent := [data.name for data in paper.data if data.name not in experiments]):
        print_message(f"not run, since the folder of data lacks it: {', '.join(absent)}; see `tome eval papers`")
    if rules := next(filter(None, map(describe_rules, tables)), ""):
        print_message(f"warning: {rules}")


@app.command(epilog="Example: tome eval papers --data data")
@take_settings("model", "base_url")
def papers(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show one with its rows and its data.")] = None,
    data: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The folder that has the data sets.")] = None,
    stated: Stated = NOTHING,
    judge_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model that judges. [dim]Default: the paper's[/dim]")
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(metavar="NAME", help="The embedder. [dim]Default: the paper's[/dim]")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the experiments of papers, what each lacks on this machine, and the command that runs it."""
    chosen = load_settings(stated, embedder=embedder)
    with show_work("looking for data and models"):
        from tomewise.evaluate.papers import PAPERS, find_paper

        model = chosen.model if stated.get("model") or chosen.model != Settings.model else None
        given = {"model": model, "judge": judge_model, "embedder": chosen.embedder}
        changes: dict[str, Any] = {part: value for part, value in given.items() if value}
        found = [replace(paper, **changes) for paper in ([find_paper(name)] if name else PAPERS.values())]
        urls = {"base_url": chosen.base_url, "embedder_base_url": chosen.embedder_base_url}
        records = [
            {
                **asdict(paper),
                "paper": paper.paper,
                "missing": paper.find_missing(data, **urls),
                "run": paper.write_call(data, base_url=chosen.base_url),
            }
            for paper in found
        ]
    if as_json:
        print_json({"papers": records})
        return
    for record in records:
        _print_paper(record, whole=name is not None)


def _print_paper(record: Mapping[str, Any], *, whole: bool) -> None:
    out = console()
    names = ", ".join(data["name"] for data in record["data"])
    rows = count_noun(len(record["rows"]), "row")
    out.print(f"[bold]{escape(record['name'])}[/bold] [dim]{escape(record['paper'])}[/dim] {escape(record['about'])}")
    out.print(f"  {rows} on {escape(names)}")
    if whole:
        for row, system in record["rows"].items():
            out.print(f"  {escape(row)}: [dim]{escape(system)}[/dim]")
        for row, reason in record["left_out"].items():
            out.print(f"  [yellow]not here[/yellow] {escape(row)}: {escape(reason)}")
        for data in record["data"]:
            part = f" ({data['part']})" if data["part"] else ""
            columns = ", ".join((*data["metrics"], *data["judges"]))
            out.print(escape(f"  {data['name']}: {data['folder']}/, layout {data['layout']}, {columns}{part}"))
    for what, fault in record["missing"].items():
        out.print(f"  [yellow]missing[/yellow] {escape(what)}: {escape(fault)}")
    out.print(f"  {escape(record['run'])}\n")


@app.command("list")
def list_(
    out: Kept = _OUT,
    layouts: Annotated[bool, typer.Option("--layouts", help="List the layouts of datasets instead.")] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="List metrics and judges instead.")] = False,
    as_json: Json = False,
) -> None:
    """List experiments, or the layouts, metrics and judges to choose from."""
    if layouts:
        from tomewise.evaluate.datasets import list_layouts as layout_names

        _print_names({"layouts": list(layout_names())}, as_json)
        return
    if metrics:
        from tomewise.evaluate.judges import list_judges
        from tomewise.evaluate.metrics import list_metrics

        _print_names({"metrics": list(list_metrics()), "judges": list(list_judges())}, as_json)
        return
    from tomewise.evaluate.design import find_folder, list_experiments
    from tomewise.evaluate.results import read_results

    all_results = [read_results(find_folder(out, about.name)) for about in list_experiments(out)]
    records = [
        {
            **asdict(results.about),
            "systems": list(results.systems),
            "rows": len(results.rows),
            "failed": sum(row.error is not None for row in results.rows),
        }
        for results in all_results
    ]
    print_json({"experiments": records}) if as_json else console().print(_experiments_table(records))


@app.command(epilog="Example: tome eval report --format latex --by type --baseline naive")
def report(
    out: Kept = _OUT,
    experiment: Name = None,
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="table, markdown, latex, csv or json.")
    ] = "table",
    metric: MetricName = None,
    by: By = None,
    baseline: Baseline = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write plots there, as PNG and SVG.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the table of an experiment, and write its plots."""
    from tomewise.evaluate.results import tabulate

    if plots is not None:
        _check_folder("--plots", plots)
    results = _read(out, experiment)
    _show(tabulate(results, columns=metric, baseline=_baseline_name(baseline), by=by or ()), as_json, form)
    if plots is not None:
        from tomewise.evaluate.plots import write_plots

        for path in write_plots(results, plots, metric[0] if metric else None):
            typer.echo(str(path), err=True)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A system.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another system.")],
    question: Annotated[str, typer.Option(metavar="ID", help="The id of a question.")],
    out: Out = _OUT,
    experiment: Name = None,
    as_json: Json = False,
) -> None:
    """Show two systems' answers to one question side by side, with their evidence."""
    from tomewise.evaluate import compare as comparing

    comparison = comparing.compare(_read(out, experiment), first, second, question)
    if as_json:
        print_json(comparison)
        return
    _print_all(comparing.make_rich_comparison(comparison))


@app.command()
def export(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The Parquet file to write.")],
    out: Out = _OUT,
    experiment: Name = None,
) -> None:
    """Write all rows of an experiment, with scores, costs and traces, to a Parquet file."""
    from tomewise.evaluate.report import write_parquet

    results = _read(out, experiment)
    write_parquet(results, path)
    typer.echo(f"{len(results.rows):,} rows in {path}")


def _check_folder(option: str, folder: Path) -> None:
    """Raise UsageError where the path is not a folder and cannot be made one."""
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        why = "cannot be written to" if nearest.is_dir() else "is a file"
        raise UsageError(f"{option} {folder}: {nearest} {why}; name a folder that exists or can be made")


def _baseline_name(baseline: str | None) -> str | None:
    """The name that a baseline has in tables."""
    from tomewise.systems.registry import parse_variants

    return parse_variants([baseline])[0].name if baseline else None


def _read(out: Path, name: str | None) -> Results:
    from tomewise.errors import StoreError
    from tomewise.evaluate.design import find_folder
    from tomewise.evaluate.results import read_results

    results = read_results(find_folder(out, name))
    if not results.rows:
        raise StoreError(f"{results.about.name} has no answers yet: repeat the `tome eval run` that began it")
    return results


def _show(table: Table, as_json: bool, form: str) -> None:
    from tomewise.evaluate import report

    forms = {"markdown": report.write_markdown, "latex": report.write_latex, "csv": report.write_csv}
    if as_json or form == "json":
        print_json(report.make_json(table))
    elif form == "table":
        _print_all(report.make_rich_tables(table, console().width))
    elif form in forms:
        typer.echo(forms[form](table), nl=False)
    else:
        raise UsageError(f"unknown format {form!r}: choose table, markdown, latex, csv or json")


def _experiments_table(records: list[dict[str, Any]]) -> RenderableType:
    table = make_table("experiment", "systems", "rows", "failed", "last run")
    table.columns[0].no_wrap = True  # a person copies it
    for record in records:
        counts = f"{record['rows']:,}", f"{record['failed']:,}"
        table.add_row(escape(record["name"]), escape(", ".join(record["systems"])), *counts, record["run"][:10])
    return table


def _print_all(parts: list[RenderableType]) -> None:
    out = console()
    for part in parts:
        out.print(part)
        out.print()


def _print_names(lists: dict[str, list[str]], as_json: bool) -> None:
    if as_json:
        print_json(lists)
        return
    for heading, names in lists.items():
        typer.echo(f"{heading}: {', '.join(names)}")
