"""Generated parts of pages: calls, settings and ablations of each system, the tables of all, and of papers."""

from __future__ import annotations

import json
from typing import Any

from tools.docs.markdown import escape_html, write_code, write_table

from tomewise.evaluate.papers import PAPERS, PaperExperiment
from tomewise.systems.registry import SYSTEMS, parse_variant
from tomewise.tome.system_summary import SystemSetting, SystemSummary, summarise_system

_PAIRS = ("bm25+interleave", "hybrid+stepwise")  # a page shows a loop around one recall


def write_system_parts() -> dict[str, str]:
    """The parts by their names: one for each system and pair with a page, `table` with all systems, and `papers`."""
    summaries = {name: summarise_system(parse_variant(name)) for name in (*SYSTEMS, *_PAIRS)}
    rows = [(f"`{name}`", escape_html(summaries[name].summary), _list_layers(summaries[name])) for name in SYSTEMS]
    parts = {name: _write_part(each) for name, each in summaries.items()}
    papers = "\n".join(write_table(["experiment", "shows", "rows", "data"], map(_describe_paper, PAPERS.values())))
    return {**parts, "table": "\n".join(write_table(["system", "how it answers", "needs"], rows)), "papers": papers}


def _describe_paper(paper: PaperExperiment) -> tuple[str, str, str, str]:
    rows = ", ".join(map(write_code, paper.rows.values()))
    data = ", ".join(f"{each.name} (`{each.folder}`)" for each in paper.data)
    return f"`paper:{paper.name}`", paper.about, rows, data


def _write_part(summary: SystemSummary) -> str:
    lines = ["**Calls of the model**", ""]
    lines += [f"- to build: {escape_html(summary.index.formula)}"]
    lines += [f"- to answer: {escape_html(summary.ask.formula)}", ""]
    if summary.settings:
        lines += [f"**Settings**, as in `--system '{summary.name} {_write_example(summary)}'`", ""]
        lines += write_table(["setting", "what", "values", "default"], map(_describe_setting, summary.settings))
    if summary.ablations:
        lines += [f"**Ablations**, as in `--system '{summary.name}:{next(iter(summary.ablations))}'`", ""]
        rows = [(f"`{name}`", _describe_changes(changes)) for name, changes in summary.ablations.items()]
        lines += write_table(["ablation", "what it sets"], rows)
    return "\n".join(lines)


def _list_layers(summary: SystemSummary) -> str:
    return ", ".join(f"`{layer.name}`" for layer in summary.layers)


def _write_example(summary: SystemSummary) -> str:
    setting = summary.settings[0]
    return f"{setting.name}={_write_value(setting.default)}"


def _describe_setting(setting: SystemSetting) -> tuple[str, str, str, str]:
    more = f"; multiplies {setting.multiplies}" if setting.multiplies else ""
    default = "needed" if setting.required else write_code(_write_value(setting.default))
    return (
        f"`{setting.name}`",
        escape_html(f"{setting.help}{more}"),
        setting.type.replace('"', "`").replace(" | ", " or "),
        default,
    )


def _describe_changes(changes: Any) -> str:
    return ", ".join(write_code(f"{name}={_write_value(value)}") for name, value in changes.items())


def _write_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)
