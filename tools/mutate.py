"""Break what decides, one line at a time, and see whether the tests notice.

python tools/mutate.py            # all mutations, each in a copy of the source; some minutes
python tools/mutate.py citing     # those whose name has this word

Each mutation replaces one text, which stands once in its file, and runs the tests that should fail. The command fails
if one survives, or if a test hangs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
_SECONDS = 600  # for the tests of one mutation: longer is a hang


@dataclass(frozen=True)
class Mutation:
    """In `file`, `text` becomes `change`; one of `tests` should fail."""

    name: str
    file: str
    text: str
    change: str
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "citing: a quotation is found without its label",
        "loops/citing.py",
        '_LABEL.sub("", quote)',
        "quote",
        ("tests/loops/test_citing.py",),
    ),
    Mutation(
        "alignment: no part of a quotation is left out that denies the rest",
        "text/alignment.py",
        "before >= 0 and _may_leave_out(text, ends[before], span.start)",
        "before >= 0",
        ("tests/text/test_alignment.py",),
    ),
    Mutation(
        "citing: the span counts from the start of the document",
        "loops/citing.py",
        "start=passage.start + start,",
        "start=start,",
        ("tests/loops/test_citing.py",),
    ),
    Mutation(
        "declining: no answer without support, where declining is allowed",
        "loops/desk.py",
        'reply.refused or (reply.claim != "full" and reply.is_declined(may_decline))',
        "reply.refused",
        ("tests/loops/test_desk.py",),
    ),
    Mutation(
        "declining: a guess that is asked for may not be declined",
        "loops/desk.py",
        "self.prepare_context(question, context, may_decline=not question.force)",
        "self.prepare_context(question, context, may_decline=True)",
        ("tests/loops/test_layout.py",),
    ),
    Mutation(
        "declining: the first answer that is supported only partly stays while the loop goes on",
        "loops/probe.py",
        "self.answer if self.answer and self.answer.resolved else self.partial_answer or self.answer",
        "self.answer",
        ("tests/loops/test_probe.py",),
    ),
    Mutation(
        "caching: the schema of the reply is part of the key",
        "language/cached.py",
        "describe_output(role.output),",
        "",
        ("tests/language/test_wrappers.py",),
    ),
    Mutation(
        "caching: the model is part of the key",
        "language/cached.py",
        "            find_name(model, role),\n",
        "",
        ("tests/language/test_wrappers.py",),
    ),
    Mutation(
        "caching: equal asks under way are asked once",
        "language/cached.py",
        "self._running.get(running_ask)) is not None",
        "self._running.get(object())) is not None",
        ("tests/language/test_wrappers.py",),
    ),
    Mutation(
        "budgets: the bound on the reply is reserved",
        "language/budget.py",
        "return _Amount(1, prompt), _Amount(times, whole)",
        "return _Amount(1, prompt), _Amount(times, prompt)",
        ("tests/language/test_wrappers.py", "tests/hostile/test_budgets.py"),
    ),
    Mutation(
        "budgets: the limit on calls is kept to the call",
        "language/budget.py",
        "used.calls + need.calls > most.calls",
        "used.calls + need.calls > most.calls + 1",
        ("tests/language/test_wrappers.py", "tests/hostile/test_budgets.py"),
    ),
    Mutation(
        "budgets: evidence that does not fit is passed over",
        "loops/evidence.py",
        "        if tokens <= budget:",
        "        if tokens <= 2 * budget:",
        ("tests/loops/test_desk.py",),
    ),
    Mutation(
        "budgets: questions side by side give their places back when they fail",
        "tome/questions.py",
        "        finally:\n            release()",
        "        finally:\n            pass",
        ("tests/tome/test_asking.py",),
    ),
    Mutation(
        "splitting: a passage ends where the text pauses",
        "reading/splitter.py",
        "len(window) if window[-1].behind is Break.HARD else _find_best_cut(window, shared)",
        "len(window)",
        ("tests/reading/test_splitter.py",),
    ),
    Mutation(
        "splitting: a small end joins the passage before",
        "reading/splitter.py",
        "least = int(_SMALL_SHARE * capacity)",
        "least = 0",
        ("tests/reading/test_splitter.py",),
    ),
    Mutation(
        "selecting: near-repeats take no room",
        "loops/evidence.py",
        "is_passage <= is_earlier and words <= earlier and",
        "False and",
        ("tests/loops/test_desk.py",),
    ),
    Mutation(
        "selecting: neighbours gain",
        "loops/last_prompt.py",
        "                scores[nodes[key]] += beside[nodes[hit]]\n",
        "                pass\n",
        ("tests/loops/test_layout.py",),
    ),
    Mutation(
        "selecting: notes that say what is shown take no room",
        "loops/last_prompt.py",
        "[*(piece.text for piece in shown), *own]",
        "own",
        ("tests/loops/test_layout.py",),
    ),
    Mutation(
        "selecting: a ledger keeps to its budget",
        "working/ledger.py",
        "if sum(sizes[start:]) <= budget",
        "if start <= budget",
        ("tests/working/test_ledger.py",),
    ),
    Mutation(
        "keeping ready: the systems used last stay",
        "tome/questions.py",
        "self._systems.move_to_end(key)",
        "pass",
        ("tests/tome/test_asking.py",),
    ),
    Mutation(
        "relay: a full reply is asked to go on",
        "loops/ledger_relay.py",
        "if len(found) < FACTS and not reply.unfinished:",
        "if True:",
        ("tests/loops/test_relay.py",),
    ),
    Mutation(
        "escalate: a first answer is not lost to a deeper way that declines",
        "loops/escalate.py",
        "if first.resolved and not item.resolved:",
        "if False:",
        ("tests/loops/test_escalate.py",),
    ),
    Mutation(
        "coverage: what claims all of a part is inferred at most",
        "tome/questions.py",
        "if not answer.asks_for_all or answer.coverage.all_read:",
        "if True:",
        ("tests/tome/test_reach.py",),
    ),
    Mutation(
        "hybrid: the best passage without lifts stays first",
        "recall/flat.py",
        "keys, scores = put_first(ranked[0], sort_ranking(*lifted))",
        "keys, scores = sort_ranking(*lifted)",
        ("tests/recall/test_rewriting.py",),
    ),
    Mutation(
        "prune and grow: where nothing was kept, the seeds are shown",
        "recall/schemata_nodes.py",
        "*(active or seeds).values()",
        "*active.values()",
        ("tests/recall/test_schemata.py",),
    ),
    Mutation(
        "lag: nodes that failed do not make a layer lag",
        "memory/building.py",
        "fresh = frozenset(change.added).difference(failed)",
        "fresh = frozenset(change.added)",
        ("tests/memory/test_mapped.py",),
    ),
    Mutation(
        "building again: the mark to ask again ends with the build that did it",
        "memory/build_records.py",
        '_FIELDS_OF_ALL_BUILDS = ("replies", "flags", "writes")',
        '_FIELDS_OF_ALL_BUILDS = ("replies", "flags", "writes", "again")',
        ("tests/memory/test_building.py",),
    ),
    Mutation(
        "growing tree: a removal leaves no node with a single child",
        "memory/growing_tree/placement.py",
        "if len(members) < 2:",
        "if len(members) < 1:",
        ("tests/memory/growing_tree/test_memtree_layer.py",),
    ),
    Mutation(
        "store: an updated node keeps what was made from it unless its text changed",
        "store/sql/write.py",
        "reworded = [node for node in changed if texts[keys[node.id]] != node.text]",
        "reworded = list(changed)",
        ("tests/store/sql/test_write.py",),
    ),
    Mutation(
        "store: a value of another kind is unequal",
        "store/sql/sqlite_rows.py",
        "NOT ({test})",
        "item.type IN {kinds} AND NOT ({test})",
        ("tests/store/test_scope.py",),
    ),
    Mutation(
        "captions: a short caption that comes twice is not a rolling line",
        "reading/captions.py",
        "cue.lines[:1] == before.lines[-1:] and len(cue.lines) + len(before.lines) > 2",
        "cue.lines[:1] == before.lines[-1:]",
        ("tests/reading/test_captions.py",),
    ),
    Mutation(
        "folder: the .gitignore that is deeper down has the last word",
        "reading/folder.py",
        "for each in reversed(files) if",
        "for each in files if",
        ("tests/reading/test_folder.py",),
    ),
    Mutation(
        "retry: waits at least as long as the server asks",
        "language/retry.py",
        "max(wait * random.uniform(0.5, 1.0), retry_after or 0.0)",
        "wait * random.uniform(0.5, 1.0)",
        ("tests/language/test_chat.py",),
    ),
    Mutation(
        "reply: what counts stands after the last thought",
        "language/reply.py",
        "return text[ends[-1] :]",
        "return text[ends[0] :]",
        ("tests/language/test_reply.py",),
    ),
    Mutation(
        "prices: an unknown price is not 0",
        "language/price_list.py",
        "        return None\n    used = Usage(",
        "        return 0.0\n    used = Usage(",
        ("tests/language/test_chat.py",),
    ),
    Mutation(
        "removal: a name that is a title and a folder of others is refused",
        "tome/document_names.py",
        "if len(titled) > 1 or (titled and files and titled != files):",
        "if len(titled) > 1:",
        ("tests/tome/test_names.py",),
    ),
    Mutation(
        "sessions: an unreadable working memory goes when what it may rest on is removed",
        "tome/session_memory.py",
        'forget_missing(replace(record, memory=None, memory_kind=""), None, kit.store)',
        "forget_missing(record, None, kit.store)",
        ("tests/tome/test_sessions.py",),
    ),
    Mutation(
        "MCP: a part of a name removes nothing",
        "server/mcp_tools.py",
        "if document not in (*exact, *map(show_name, exact)):",
        "if False:",
        ("tests/mcp_server/test_mcp_tools.py",),
    ),
    Mutation(
        "jobs: interrupted jobs are not forgotten",
        "server/jobs.py",
        'not job.is_open and job.state != "interrupted"]',
        "not job.is_open]",
        ("tests/server/test_jobs.py",),
    ),
    Mutation(
        "config: a project's file sets only what is free of risk",
        "settings.py",
        "[name for name in values if not SETTINGS[name].free]",
        "[]",
        ("tests/hostile/test_project_settings.py",),
    ),
    Mutation(
        "metrics: a span within another one does not shorten it",
        "evaluate/metrics/rankings.py",
        "intervals[-1] = (intervals[-1][0], max(end, intervals[-1][1]))",
        "intervals[-1] = (intervals[-1][0], end)",
        ("tests/evaluate/test_metrics.py",),
    ),
)


def main() -> int:
    """Try the mutations; the number that survived."""
    wanted = [mutation for mutation in MUTATIONS if all(word in mutation.name for word in sys.argv[1:])]
    survived = [mutation.name for mutation in wanted if not is_noticed(mutation)]
    print(f"{len(wanted) - len(survived)} of {len(wanted)} were noticed")
    return len(survived)


def is_noticed(mutation: Mutation) -> bool:
    """Whether a test fails where the source is changed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / "tomewise" / mutation.file
        file.write_text(apply(mutation, file.read_text("utf-8")), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", *mutation.tests]
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        try:
            run = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, timeout=_SECONDS, check=False, text=True
            )
        except subprocess.TimeoutExpired:
            print(f"HANGS     {mutation.name}")
            return False
    noticed = run.returncode == 1  # 0: all passed; other codes: the tests did not run
    print(f"{'noticed' if noticed else 'SURVIVED'}  {mutation.name}", flush=True)
    if run.returncode > 1:
        print(run.stdout[-2000:])
    return noticed


def apply(mutation: Mutation, source: str) -> str:
    """The source with the change. Raises ValueError unless the text stands there once."""
    if source.count(mutation.text) != 1:
        raise ValueError(f"{mutation.name}: {mutation.text!r} stands {source.count(mutation.text)} times")
    return source.replace(mutation.text, mutation.change)


if __name__ == "__main__":
    sys.exit(main())
