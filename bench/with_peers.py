"""Our `graphrag` beside GraphRAG 3.3.0, and our `lightrag` beside LightRAG 1.5.7: what a novel costs each, in one run.

    python bench/with_peers.py graphrag --install       # makes the environment of the peer first: 1.3 GB, or 0.4 GB
    python bench/with_peers.py graphrag|lightrag [--latency 0.2] [--limit 16] [--environment FOLDER]
    unshare -rn sh -c 'ip link set lo up && python bench/with_peers.py graphrag'      # where nothing else is reached

All ask the fake model of `peer_server.py`: a fixed latency, `limit` calls at a time, no gleanings, reports of 400
words; it counts what they ask. Vectors come from it too. Each keeps its own passages and settings, but for DRIFT (5
follow-up questions, 2 rounds) and equal budgets of a question: 12,000 tokens beside GraphRAG, 30,000 beside LightRAG.

The rows, set down before the first run: index the novel without its last 15,000 characters; add these as ten documents;
remove one of the ten; a question in each mode that both have, in a process that has asked another one before, the mean
of three; a first question in a new process, from its start to its end; disk; memory. Index, adding and removal are a
process each, measured as a whole. Own time is the processor time of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

BENCH = Path(__file__).resolve().parent
NOVEL = BENCH.parents[1] / "shared" / "data" / "novels" / "gods_of_mars.txt"
CUT, PARTS, REMOVED = 15_000, 10, 3
PEERS = {"graphrag": ("graphrag==3.3.0",), "lightrag": ("lightrag-hku==1.5.7", "openai==2.54.0")}
MODES = {"graphrag": ("local", "global", "dynamic", "drift"), "lightrag": ("local", "global", "hybrid", "mix")}
CONTEXTS = {"graphrag": 12_000, "lightrag": 30_000}
REPORT_WORDS = 400
SETTINGS = {"graphrag": f"gleanings=0 report_words={REPORT_WORDS}", "lightrag": "gleanings=0"}
QUESTIONS = (
    "How did John Carter find Carthoris?",
    "Why does Phaidor hate Dejah Thoris?",
    "What do the Therns and the First Born want from Helium?",
    "Who is Xodar, and why does Issus punish him?",
)  # the first is asked before
COLD = "What became of Thuvia of Ptarth?"
DIMENSIONS = 384


def cut_novel() -> tuple[str, list[str]]:
    text = NOVEL.read_text(encoding="utf-8")
    step = CUT // PARTS
    return text[:-CUT], [text[start : start + step] for start in range(len(text) - CUT, len(text), step)][:PARTS]


# ---------------------------------------------------------------- ours


class Ours:
    def __init__(self, system: str, folder: Path, url: str, limit: int) -> None:
        from tomewise.tome.tome import Tome

        self.system = system
        self.named = f"{system} {SETTINGS[system]}"
        settings = {"api_key": "none", "limit": limit, "embedder_base_url": f"{url}/v1", "window": 128_000}
        self.tome = Tome.open(
            folder / "novel.tome",
            model="openai:fake",
            embedder="openai:hash",
            base_url=f"{url}/v1",
            settings=settings,
        )

    def index(self) -> None:
        from tomewise.types import Document

        self.tome.add(Document(id="novel", text=cut_novel()[0]))
        self.tome.build(self.named)

    def add(self) -> None:
        from tomewise.types import Document

        self.tome.add(*(Document(id=f"part {number}", text=part) for number, part in enumerate(cut_novel()[1])))
        self.tome.build(self.named)

    def remove(self) -> None:
        self.tome.remove(f"part {REMOVED}")
        self.tome.build(self.named)

    def ask(self, question: str, mode: str) -> str:
        drift = " follow_ups=5 depth=2" if mode == "drift" else ""
        name = f"{self.named} mode={mode} context={CONTEXTS[self.system]}{drift}"
        return self.tome.ask(question, system=name, fresh=True).words

    def close(self) -> None:
        self.tome.close()


# ---------------------------------------------------------------- GraphRAG


class GraphRag:
    def __init__(self, _: str, folder: Path, url: str, limit: int) -> None:
        self.folder, self.inputs = folder, folder / "input"
        if not (folder / "settings.yaml").exists():
            self._write_settings(url, limit)
        from graphrag.config.load_config import load_config

        self.config = load_config(root_dir=folder)
        self.tables: dict[str, Any] = {}

    def _write_settings(self, url: str, limit: int) -> None:
        from graphrag.cli.initialize import initialize_project_at

        initialize_project_at(self.folder, force=True, model="gpt-4o-mini", embedding_model="text-embedding-3-small")
        model = {"model_provider": "openai", "auth_method": "api_key", "api_key": "none", "api_base": f"{url}/v1"}
        prompts = "prompts"
        settings = {
            "completion_models": {"default_completion_model": {**model, "model": "gpt-4o-mini"}},
            "embedding_models": {"default_embedding_model": {**model, "model": "text-embedding-3-small"}},
            "concurrent_requests": limit,
            "chunking": {"type": "tokens", "size": 1200, "overlap": 100, "encoding_model": "o200k_base"},
            "vector_store": {"type": "lancedb", "db_uri": "output/lancedb", "vector_size": DIMENSIONS},
            "extract_graph": {"prompt": f"{prompts}/extract_graph.txt", "max_gleanings": 0},
            "community_reports": {"graph_prompt": f"{prompts}/community_report_graph.txt", "max_length": REPORT_WORDS},
            "drift_search": {
                "prompt": f"{prompts}/drift_search_system_prompt.txt",
                "reduce_prompt": f"{prompts}/drift_search_reduce_prompt.txt",
                "concurrency": limit, "drift_k_followups": 5, "n_depth": 2,
            },
        }  # fmt: skip
        (self.folder / "settings.yaml").write_text(json.dumps(settings))  # JSON is YAML

    def _build(self, *, update: bool) -> None:
        import graphrag.api as api

        results = asyncio.run(api.build_index(config=self.config, method="standard", is_update_run=update))
        if faults := [each.error for each in results if each.error]:
            raise faults[0]

    def index(self) -> None:
        self.inputs.mkdir(exist_ok=True)
        (self.inputs / "novel.txt").write_text(cut_novel()[0])
        self._build(update=False)

    def add(self) -> None:
        for number, part in enumerate(cut_novel()[1]):
            (self.inputs / f"part{number}.txt").write_text(part)
        self._build(update=True)

    remove = None  # the released code finds deleted inputs and does nothing about them

    def ask(self, question: str, mode: str) -> str:
        import graphrag.api as api
        import pandas

        if not self.tables:
            names = ("entities", "communities", "community_reports", "text_units", "relationships")
            self.tables = {name: pandas.read_parquet(self.folder / "output" / f"{name}.parquet") for name in names}
        shared = {name: self.tables[name] for name in ("entities", "communities", "community_reports")}
        rest = {name: self.tables[name] for name in ("text_units", "relationships")}
        options = {
            "config": self.config, "query": question, "community_level": 2, "response_type": "Multiple Paragraphs",
        }  # fmt: skip
        if mode in ("global", "dynamic"):
            asked = api.global_search(**shared, **options, dynamic_community_selection=mode == "dynamic")
        elif mode == "drift":
            asked = api.drift_search(**shared, **rest, **options)
        else:
            asked = api.local_search(**shared, **rest, **options, covariates=None)
        return str(asyncio.run(asked)[0])

    def close(self) -> None:
        pass


# ---------------------------------------------------------------- LightRAG


class LightRag:
    def __init__(self, _: str, folder: Path, url: str, limit: int) -> None:
        from lightrag import LightRAG
        from lightrag.llm.openai import openai_complete_if_cache, openai_embed
        from lightrag.utils import EmbeddingFunc

        async def complete(
            prompt: str, system_prompt: str | None = None, history_messages: Any = (), **rest: Any
        ) -> Any:
            return await openai_complete_if_cache(
                "fake", prompt, system_prompt=system_prompt, history_messages=list(history_messages),
                base_url=f"{url}/v1", api_key="none", **rest,
            )  # fmt: skip

        async def embed(texts: list[str], **_: Any) -> Any:
            return await openai_embed.func(texts, model="hash", base_url=f"{url}/v1", api_key="none")

        self.loop = asyncio.new_event_loop()
        self.rag = LightRAG(
            working_dir=str(folder),
            llm_model_func=complete,
            llm_model_name="fake",
            embedding_func=EmbeddingFunc(embedding_dim=DIMENSIONS, max_token_size=8192, func=embed),
            llm_model_max_async=limit,
            embedding_func_max_async=limit,
            max_parallel_insert=PARTS,
            entity_extract_max_gleaning=0,
            entity_extract_max_entities=1000,
            entity_extract_max_records=1000,
        )
        self.loop.run_until_complete(self.rag.initialize_storages())

    def index(self) -> None:
        self.loop.run_until_complete(self.rag.ainsert(cut_novel()[0], ids="novel", file_paths="novel.txt"))

    def add(self) -> None:
        parts = cut_novel()[1]
        ids = [f"part {number}" for number in range(len(parts))]
        self.loop.run_until_complete(self.rag.ainsert(parts, ids=ids, file_paths=[f"{each}.txt" for each in ids]))

    def remove(self) -> None:
        self.loop.run_until_complete(self.rag.adelete_by_doc_id(f"part {REMOVED}"))

    def ask(self, question: str, mode: str) -> str:
        from lightrag import QueryParam

        asked = QueryParam(
            mode=mode, top_k=40, chunk_top_k=20, max_entity_tokens=6000, max_relation_tokens=8000,
            max_total_tokens=CONTEXTS["lightrag"], enable_rerank=False,
        )  # fmt: skip
        return str(self.loop.run_until_complete(self.rag.aquery(question, param=asked)))

    def close(self) -> None:
        self.loop.run_until_complete(self.rag.finalize_storages())


# ---------------------------------------------------------------- a step, in a process of its own

SIDES: Mapping[str, Callable[..., Any]] = {"ours": Ours, "graphrag": GraphRag, "lightrag": LightRag}


def read_counts(url: str) -> dict[str, int]:
    with urlopen(f"{url}/counts") as reply:  # an address on loopback
        return dict(json.load(reply))


def take_step(given: argparse.Namespace) -> None:
    """Do the step. Of questions, print what each mode took."""
    side = SIDES[given.side](given.peer, given.folder, given.url, given.limit)
    if given.step == "cold":
        print(json.dumps({"answer": side.ask(COLD, "local")}))
    elif given.step == "ask":
        print(json.dumps({mode: ask_in_mode(side, mode, given.url) for mode in MODES[given.peer]}))
    else:
        getattr(side, given.step)()
    side.close()


def ask_in_mode(side: Any, mode: str, url: str) -> dict[str, float]:
    first, *rest = QUESTIONS
    side.ask(first, mode)
    before, wall, own = read_counts(url), time.perf_counter(), time.process_time()
    answers = [side.ask(question, mode) for question in rest]
    wall, own = time.perf_counter() - wall, time.process_time() - own
    if not all(answers):
        raise SystemExit(f"no answer with mode={mode}: {answers}")
    spent = subtract(read_counts(url), before)
    return {name: value / len(rest) for name, value in {**spent, "wall": wall, "own": own}.items()}


def subtract(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    return {name: value - before.get(name, 0) for name, value in after.items()}


# ---------------------------------------------------------------- all steps of both sides


@dataclass(frozen=True, slots=True)
class Step:
    """What a process took: seconds, seconds of a processor, megabytes at most, and what the model counted."""

    wall: float
    own: float
    memory: float
    counts: Mapping[str, float]
    printed: str


def run_step(given: argparse.Namespace, python: str, side: str, step: str, folder: Path, url: str) -> Step:
    command = [python, __file__, given.peer, "--side", side, "--step", step, "--limit", str(given.limit)]
    tokenizers = given.environment.parent / "graphrag-peer"
    caches = list(tokenizers.glob("lib/python*/site-packages/litellm/litellm_core_utils/tokenizers"))
    environment = os.environ | {
        "OPENAI_API_KEY": "none",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it is fetched
        **({"TIKTOKEN_CACHE_DIR": str(caches[0])} if caches else {}),
    }
    before, started = read_counts(url), time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*command, "--folder", str(folder), "--url", url], stdout=out, stderr=errors, cwd=folder, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), errors.seek(0)
        printed = out.read().decode()
        if process.returncode:
            sys.exit(f"{side} failed at {step}:\n{errors.read().decode()[-4000:]}\n{printed[-2000:]}")
    counts = subtract(read_counts(url), before)
    return Step(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, counts, printed)


def measure_side(given: argparse.Namespace, python: str, side: str, folder: Path, url: str) -> None:
    name = "ours" if side == "ours" else PEERS[given.peer][0]

    def show(what: str, wall: float, own: float, counts: Mapping[str, float], memory: str = "") -> None:
        calls = counts.get("calls", 0)
        digits = ".1f" if what.startswith(("a question", "a first")) else ",.0f"
        cells = [f"{counts.get(key, 0):{digits}}" for key in ("calls",)]
        cells += [f"{counts.get(key, 0):,.0f}" for key in ("tokens in", "tokens out", "embeddings", "texts embedded")]
        print(f"| {what} | {name} | {wall:.2f} | {' | '.join(cells)} | {own:.2f} |", end="")
        print(f" {1000 * own / calls if calls else 0:.1f} | {memory} |", flush=True)
        tasks = {key: round(value, 1) for key, value in counts.items() if value and key not in COUNTED}
        print(f"    {tasks}, load {os.getloadavg()[0]:.0f}", file=sys.stderr, flush=True)

    for step, what in (("index", "index"), ("add", "ten documents added"), ("remove", "one document removed")):
        if getattr(SIDES[side], step) is None:
            print(f"| {what} | {name} | cannot | | | | | | | | |", flush=True)
            continue
        done = run_step(given, python, side, step, folder, url)
        show(what, done.wall, done.own, done.counts, f"{done.memory:,.0f}")
    asked = run_step(given, python, side, "ask", folder, url)
    for mode, took in json.loads(asked.printed.strip().splitlines()[-1]).items():
        show(f"a question, {mode}", took.pop("wall"), took.pop("own"), took, f"{asked.memory:,.0f}")
    cold = run_step(given, python, side, "cold", folder, url)
    show("a first question, local, new process", cold.wall, cold.own, cold.counts, f"{cold.memory:,.0f}")
    files = [each for each in folder.rglob("*") if each.is_file() and "input" not in each.relative_to(folder).parts]
    replies = sum(each.stat().st_size for each in files if "cache" in str(each.relative_to(folder)))
    print(
        f"| disk, MB | {name} | {sum(each.stat().st_size for each in files) / 1e6:.1f}, of which in files of ", end=""
    )
    print(f"replies {replies / 1e6:.1f} |", flush=True)


COUNTED = ("calls", "tokens in", "tokens out", "embeddings", "texts embedded", "most at once")


def run_all(given: argparse.Namespace, python: str, sides: Sequence[str]) -> None:
    server = subprocess.Popen(
        [sys.executable, str(BENCH / "peer_server.py"), str(given.latency)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin
    assert server.stdout
    url = server.stdout.readline().strip()
    print(
        "| what | side | wall s | calls | tokens in | out | requests of vectors | texts | own s | own ms a call | MB |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    try:
        for side in sides:
            with tempfile.TemporaryDirectory() as folder:
                measure_side(given, sys.executable if side == "ours" else python, side, Path(folder), url)
        counts = read_counts(url)
        print(f"at most {counts['most at once']} calls at once; {counts.get('unknown', 0)} prompts not recognised")
    finally:
        server.stdin.close()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=sorted(PEERS), nargs="?")
    parser.add_argument("--environment", type=Path, help="default: a folder PEER-peer for temporary files")
    parser.add_argument("--install", action="store_true", help="make the environment from the package index")
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--limit", type=int, default=16, help="calls at a time")
    parser.add_argument("--only", choices=("ours", "peer"), help="one side, to look at its counts")
    for hidden in ("--side", "--step", "--url"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.peer or not NOVEL.exists():
        print("skipped: name a peer; the novel of ../shared/data is needed")
        return
    if given.step:
        take_step(given)
        return
    given.environment = given.environment or Path(tempfile.gettempdir()) / f"{given.peer}-peer"
    python = given.environment / "bin" / "python"
    if given.install and not python.exists():
        subprocess.run([sys.executable, "-m", "venv", given.environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS[given.peer]], check=True)
    if not python.exists():
        print(f"skipped: {given.environment} is absent, where the released package would be; --install makes it")
        return
    sides = {"ours": ["ours"], "peer": [given.peer], None: ["ours", given.peer]}[given.only]
    run_all(given, str(python), sides)


if __name__ == "__main__":
    main()
