"""How a cluster is summarised: in one call, or in parts, so that a new member changes few calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tomewise.concurrency import gather_calls
from tomewise.errors import BadReply
from tomewise.language.roles import SummaryIn
from tomewise.memory.schemata.catalog import Cluster
from tomewise.memory.schemata.clusters import mix_bits

SUMMARY_TOKENS = 150

Ask = Callable[[SummaryIn], Coroutine[Any, Any, str]]


@dataclass(frozen=True, slots=True)
class Runs:
    """How many texts one call summarises, from `smallest` to `largest`; a run ends after one in `gap` on average."""

    smallest: int
    largest: int
    gap: int


PASSAGE_RUNS = Runs(4, 12, 6)  # the paper's release cuts at 12
SUMMARY_RUNS = Runs(12, 36, 18)  # summaries are short: these are about as many tokens


def split_into_runs(items: Sequence[int], runs: Runs) -> Iterator[tuple[int, ...]]:
    """Cut items into runs for one call each; the last run may be shorter. Items that fit into one run are one.

    Whether a run ends after an item depends mostly on that item, so that a new item changes one run or two.
    """
    if len(items) <= runs.largest:
        yield tuple(items)
        return
    marks = mix_bits(np.array(items, np.int64), 0) % np.uint64(runs.gap) == 0
    start = 0
    for end, is_cut in enumerate(marks.tolist(), start=1):
        if end - start == runs.largest or (is_cut and end - start >= runs.smallest):
            yield tuple(items[start:end])
            start = end
    if start < len(items):
        yield tuple(items[start:])


async def summarise(cluster: Cluster, texts: Mapping[int, str], ask: Ask) -> str:
    """Summarise what a cluster is made of: in one call, or in parts, and then the parts together.

    Children without a text are left out. Raises BadReply if none has one.
    """
    parts = {child: texts[child] for child in cluster.children if texts.get(child)}
    if not parts:
        raise BadReply("none of the members of the cluster could be summarised")
    size = PASSAGE_RUNS if cluster.level == 1 else SUMMARY_RUNS
    while True:
        runs = list(split_into_runs(list(parts), size))
        inputs = [SummaryIn(texts=[parts[part] for part in run], max_tokens=SUMMARY_TOKENS) for run in runs]
        replies = await gather_calls(map(ask, inputs))
        if len(runs) == 1:
            return replies[0]
        parts, size = {run[0]: reply for run, reply in zip(runs, replies, strict=True)}, SUMMARY_RUNS
