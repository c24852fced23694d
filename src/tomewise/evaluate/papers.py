"""The experiments of papers as values: what a table or a figure compares, on which data, and by which metrics.

`tome eval run paper:comorag-table2 --data FOLDER` runs every row of it that can run here, and `tome eval papers` says
what each needs. A data set is a folder in that `FOLDER`, with the published files or in the plain layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any

from tomewise.embedding.choose_embedder import BUNDLED, choose_embedder
from tomewise.embedding.weights import find_weights
from tomewise.errors import MissingDependency, ModelUnavailable, ReadingError, UnknownName, UsageError, suggest
from tomewise.evaluate.datasets import detect_layout, read_dataset
from tomewise.evaluate.design import describe_lack
from tomewise.evaluate.experiment import Compared, Experiment
from tomewise.evaluate.items import Dataset, Item
from tomewise.evaluate.metrics import choose_metrics, find_metric
from tomewise.evaluate.results import list_slices
from tomewise.evaluate.table import Table
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.spec import PROVIDERS, ModelSpec
from tomewise.settings import read_variable
from tomewise.systems.registry import find_declaration

PREFIX = "paper:"  # before the name of an experiment, among names of systems


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperData:
    """A data set of an experiment, with the metrics and judges that the paper has for it.

    `folder` is its name in the folder of data, and `layout` what reads it there. `slices` split its table. `part` says
    which questions the paper took, where that is a part. Questions with a slice of `leaves_out` are not asked; with
    `free_form` no options are shown. So many documents as `batch` come at a time.
    """

    name: str
    folder: str
    layout: str
    metrics: tuple[str, ...]
    judges: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    part: str = ""
    leaves_out: Mapping[str, str] = field(default_factory=dict)
    free_form: bool = False
    batch: int | None = None

    def read(self, folder: Path) -> Dataset:
        """The data set in a folder of data. Raises ReadingError."""
        path = folder / self.folder
        try:
            layout = detect_layout(path)
        except ReadingError:
            layout = self.layout
        dataset = read_dataset(layout, path)
        asked = [item for item in dataset.items if not self.leaves_out.items() & item.slices.items()]
        items = tuple(map(_hide_options, asked) if self.free_form else asked)
        return replace(dataset, name=self.name, items=items)


def _hide_options(item: Item) -> Item:
    return replace(item, question=replace(item.question, options=()), correct=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperExperiment:
    """A table or a figure of a paper.

    `name` has the system of the paper and the place in it, `about` says what it shows. `rows` maps the paper's rows to
    systems, and `left_out` says of others why they have no system. Without `force` systems may decline. `model`,
    `judge`, `embedder`, `passage_tokens` and `overlap` are those of the paper.
    """

    name: str
    about: str
    data: tuple[PaperData, ...]
    rows: Mapping[str, str]
    left_out: Mapping[str, str] = field(default_factory=dict)
    model: str
    embedder: str
    judge: str = ""
    force: bool = True
    passage_tokens: int | None = None
    overlap: int | None = None

    @property
    def paper(self) -> str:
        """The paper, as its system declares it."""
        return find_declaration(self.name.partition("-")[0]).paper

    @property
    def needs_judge(self) -> bool:
        """Whether a model must judge answers."""
        return any(data.judges for data in self.data)

    def make_experiments(
        self,
        folder: Path,
        *,
        systems: Iterable[Compared] = (),
        metrics: Sequence[str] = (),
        judges: Sequence[str] = (),
        embedder: str = BUNDLED[0],
        embedder_base_url: str | None = None,
        passage_tokens: int | None = None,
        overlap: int | None = None,
        retrieval_only: bool = False,
        **settings: Any,
    ) -> dict[str, Experiment]:
        """An `Experiment` with these settings for each data set in `folder`, by name; `systems` are further rows.

        Without `passage_tokens`, passages are as long as the paper's, or as the embedder sees. Budgets hold for each
        data set. One without the gold to score by is left out. Raises ReadingError where none is left, and what
        `Experiment` raises.
        """
        read, faults = self._read_data(folder, metrics, retrieval_only=retrieval_only)
        if not read:
            raise ReadingError("; ".join(faults.values()))
        if passage_tokens is None and self.passage_tokens is not None:
            longest = choose_embedder(embedder, base_url=embedder_base_url).max_tokens
            passage_tokens = min(self.passage_tokens, longest)
        return {
            data.name: Experiment(
                [*self.rows.values(), *systems],
                read[data.name],
                metrics or (() if retrieval_only else data.metrics),
                judges=judges or (() if retrieval_only else data.judges),
                embedder=embedder,
                embedder_base_url=embedder_base_url,
                passage_tokens=passage_tokens,
                overlap=self.overlap if overlap is None else overlap,
                batch=data.batch,
                retrieval_only=retrieval_only,
                force=self.force,
                **settings,
            )
            for data in self.data
            if data.name in read
        }

    def make_table(
        self, name: str, experiment: Experiment, *, baseline: str | None = None, by: Sequence[str] = ()
    ) -> Table:
        """The table of the data set of that name, with a note on all that the paper has and this experiment has not."""
        slices = next(data.slices for data in self.data if data.name == name)
        there = [each for each in slices if each in list_slices(experiment.results.rows)]
        table = experiment.table(baseline=baseline, by=list(dict.fromkeys([*by, *there])))
        refused, size = {**table.refused, **self.left_out}, experiment.design.passage_tokens
        if self.passage_tokens not in (None, size):
            refused[f"passages of {self.passage_tokens} tokens"] = f"these have {size} at most"
        return replace(table, refused=refused)

    def find_missing(
        self, folder: Path | None, *, base_url: str | None = None, embedder_base_url: str | None = None
    ) -> dict[str, str]:
        """What this machine lacks: data sets by name, `model`, `judge` and `weights`; without `folder`, `data`."""
        folders = ", ".join(dict.fromkeys(data.folder for data in self.data))
        nowhere = {"data": f"name the folder that has {folders} with --data"}
        faults = nowhere if folder is None else self._read_data(folder)[1]
        parts = {
            "model": _find_model_fault(self.model, base_url, "--base-url"),
            "judge": _find_model_fault(self.judge, base_url, "--base-url") if self.needs_judge else None,
            "weights": _find_embedder_fault(self.embedder, embedder_base_url),
        }
        return faults | {part: fault for part, fault in parts.items() if fault}

    def write_call(self, folder: Path | None, *, base_url: str | None = None) -> str:
        """The command that runs it with its model, judge and embedder."""
        words = ["tome", "eval", "run", f"{PREFIX}{self.name}", "--data", str(folder or "FOLDER")]
        words += ["--model", self.model, "--embedder", self.embedder]
        words += ["--judge-model", self.judge] if self.needs_judge else []
        words += ["--base-url", base_url] if base_url else []
        return " ".join(map(quote, words))

    def _read_data(
        self, folder: Path, metrics: Sequence[str] = (), *, retrieval_only: bool = False
    ) -> tuple[dict[str, Dataset], dict[str, str]]:
        """By name the data sets in a folder, and of the others what is wrong."""
        read, faults = dict[str, Dataset](), dict[str, str]()
        for data in self.data:
            try:
                dataset = data.read(folder)
            except (ReadingError, MissingDependency) as error:
                faults[data.name] = str(error)
                continue
            names = metrics or (() if retrieval_only else data.metrics)
            if lack := next(filter(None, (describe_lack(dataset, find_metric(name)) for name in names)), ""):
                faults[data.name] = f"{folder / data.folder}: {lack}"
            elif not names and not any(metric.of_ranking for metric in choose_metrics(dataset)):
                faults[data.name] = f"{folder / data.folder}: {data.name} has no evidence to rank by"
            else:
                read[data.name] = dataset
        return read, faults


def split_papers(systems: Sequence[str]) -> tuple[PaperExperiment | None, list[str]]:
    """The experiment of a paper among names of systems, if any, and the others. Raises UnknownName, UsageError."""
    named = [name for name in systems if name.startswith(PREFIX)]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} have data of their own: run one at a time")
    return find_paper(named[0]) if named else None, [name for name in systems if name not in named]


def find_paper(name: str) -> PaperExperiment:
    """The experiment of that name. Raises UnknownName with the nearest."""
    name = name.removeprefix(PREFIX)
    if name not in PAPERS:
        known = ", ".join(PAPERS)
        raise UnknownName(f"no experiment of a paper is named {name!r}: {suggest(name, PAPERS)}known are {known}")
    return PAPERS[name]


# ---------------------------------------------------------------- what a machine lacks


def _find_model_fault(name: str, base_url: str | None, option: str) -> str | None:
    """Why a model cannot be asked, as far as this machine knows."""
    if name == EXTRACTIVE:
        return None
    spec = ModelSpec.parse(name, base_url)
    if spec.address or spec.provider not in PROVIDERS:
        return None
    if "/" in spec.model:
        return f"{name} needs a server of your own: name its address with {option}, or another one"
    try:
        key = spec.find_key(None)
    except ModelUnavailable as error:
        return str(error)
    return None if key else f"{name} needs a key: set {spec.key_variables}, or name another one"


def _find_embedder_fault(name: str, base_url: str | None) -> str | None:
    """Why an embedder cannot be used, as far as this machine knows without loading it."""
    kind, _, model = name.partition(":")
    if name in BUNDLED:
        try:
            find_weights()
        except MissingDependency as error:
            return str(error)
    if kind == "openai":
        return _find_model_fault(name, base_url, "TOMEWISE_EMBEDDER_BASE_URL")
    if kind not in ("fastembed", "sentence-transformers"):
        return None
    if find_spec(kind.replace("-", "_")) is None:
        return f"{name} needs a library: run `pip install 'tomewise[{kind}]'`, or name another one"
    home = Path(read_variable("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(read_variable("HF_HUB_CACHE") or home / "hub")
    if kind == "sentence-transformers" and not (hub / f"models--{model.replace('/', '--')}").is_dir():
        return f"{model} is not in {hub}: its first use fetches it, or name another one"
    return None


# ---------------------------------------------------------------- the data sets

_EN_QA = PaperData(name="EN.QA", folder="infinitebench", layout="infinitebench-qa", metrics=("f1", "em"))
_EN_MC = PaperData(name="EN.MC", folder="infinitebench", layout="infinitebench-mc", metrics=("accuracy",))
_NARRATIVEQA = PaperData(
    name="NarrativeQA",
    folder="narrativeqa",
    layout="narrativeqa",
    metrics=("f1", "em"),
    part="500 random questions of the test set",
)
_DETECTIVEQA = PaperData(
    name="DetectiveQA",
    folder="detectiveqa",
    layout="detectiveqa",
    metrics=("accuracy",),
    part="a random fifth of the stories",
)
_MUSIQUE = PaperData(
    name="MuSiQue",
    folder="musique",
    layout="musique",
    metrics=("em", "f1"),
    part="1,000 questions, as sampled by HippoRAG",
)
_NOVEL = PaperData(
    name="GraphBench Novel",
    folder="graphrag_bench_novel",
    layout="graphrag-bench",
    metrics=("rouge-l",),
    judges=("statements",),
    slices=("type",),
)
_SENSE_MAKING = PaperData(
    name="LongBench",
    folder="longbench_sense_making",
    layout="plain",
    metrics=("rouge-l",),
    judges=("comprehensiveness", "diversity"),
    part="documents of LongBench v2 above 100,000 tokens, with questions and references that a model wrote",
)
_BOOKS = replace(_NARRATIVEQA, metrics=("f1",), judges=("entailed",), part="10 books above 100,000 tokens")
_NOCHA = PaperData(name="NoCha", folder="nocha", layout="nocha", metrics=("accuracy",), part="the published sample")
_PRELUDE = replace(_NOCHA, name="Prelude", folder="prelude", layout="prelude", part="all English books")
_QMSUM = PaperData(name="QMSum", folder="qmsum", layout="qmsum", metrics=("rouge-1", "rouge-l"), judges=("acc-l",))
_NOVELQA = replace(
    _QMSUM,
    name="NovelQA",
    folder="novelqa",
    layout="novelqa",
    part="with `Answer` and `Gold`, which are not published, in its files",
    free_form=True,
)
_STORY = replace(_QMSUM, name="ODSum-Story", folder="odsum_story", layout="odsum")
_MEETING = replace(_STORY, name="ODSum-Meeting", folder="odsum_meeting")
_FABLES = PaperData(name="FABLES", folder="fables", layout="fables", metrics=("f1-positive", "f1-negative"))
_MULTIHOP_RAG = PaperData(
    name="MultiHop-RAG",
    folder="multihop_rag",
    layout="multihop-rag",
    metrics=("em", "f1"),
    part="without questions that cannot be answered",
    leaves_out={"type": "null_query"},
)
_HELMET = PaperData(name="HELMET NarrativeQA", folder="helmet_narrativeqa", layout="helmet", metrics=("rouge-l",))

# ---------------------------------------------------------------- the experiments

_OTHER_MODEL = "the same system with another model: run again with --model NAME"
_OTHER_EMBEDDER = "the same system with another embedder: run again with --embedder NAME"
_IN_LOOP = " ".join(f"--model {role}=NAME" for role in ("answer", "probe", "encode", "fuse"))
_OTHER_IN_LOOP = f"the same index with another model in the loop: run again with {_IN_LOOP}"
_ABSENT = "it is not here"
_HIPPORAG = "the first HippoRAG is not here; name hipporag2 beside the rows"
_GPT_4O = "openai:gpt-4o"
_GPT_4O_MINI = "openai:gpt-4o-mini"
_BGE_M3 = "sentence-transformers:BAAI/bge-m3"

# ComoRAG's paper caps what every method shows at 6,000 tokens (section 3, appendix B.4); these show less by themselves.
_HIPPORAG2_6K = "hipporag2 limit=60 context=6000"
_RAPTOR_6K = "raptor context=6000"

_COMORAG = PaperExperiment(
    name="comorag-table2",
    about="What each layer of the index, and each half of the loop, brings.",
    data=(_EN_MC, _EN_QA),
    rows={
        "ComoRAG": "comorag",
        "HippoRAGv2": _HIPPORAG2_6K,
        "RAPTOR": _RAPTOR_6K,
        "w/o Veridical": "comorag:without veridical",
        "w/o Semantic": "comorag:without semantic",
        "w/o Episodic": "comorag:without episodic",
        "w/o Metacognition": "comorag:without metacognition",
        "w/o Regulation": "comorag:without regulation",
        "w/o Both": "comorag:without both",
    },
    model=_GPT_4O_MINI,
    embedder=_BGE_M3,
    force=False,  # the failure signal of algorithm 1 is a result
    passage_tokens=512,
)
_COGITORAG = PaperExperiment(
    name="cogitorag-table2",
    about="Answers to simple and to multi-hop questions, and tasks of four types over novels and guidelines.",
    data=(
        replace(_MUSIQUE, name="NQ", folder="nq", layout="nq"),
        replace(_MUSIQUE, name="PopQA", folder="popqa", layout="popqa"),
        _MUSIQUE,
        replace(_MUSIQUE, name="2Wiki", folder="2wiki", layout="2wikimultihopqa"),
        replace(_MUSIQUE, name="HotpotQA", folder="hotpotqa", layout="hotpotqa"),
        _NOVEL,
        replace(_NOVEL, name="GraphBench Medical", folder="graphrag_bench"),
    ),
    rows={
        "NV-Embed-v2": "naive",
        "GraphRAG": "graphrag",
        "LightRAG": "lightrag",
        "RAPTOR": "raptor",
        "ComoRAG": "comorag",
        "HippoRAG2": "hipporag2",
        "CogitoRAG": "cogitorag",
    },
    left_out={"None": "every answer here rests on documents", "HippoRAG": _HIPPORAG, "ToG2": _ABSENT},
    model=_GPT_4O_MINI,
    judge=_GPT_4O_MINI,
    embedder="openai:nvidia/NV-Embed-v2",
)
_HGMEM = PaperExperiment(
    name="hgmem-table2",
    about="What the choice of where to search, and the updating and merging of points, bring.",
    data=(_SENSE_MAKING, _BOOKS, _NOCHA, _PRELUDE),
    rows={
        "HGMem": "hgmem",
        "w/ GE Only": "hgmem:global only",
        "w/ LI Only": "hgmem:local only",
        "w/o Update": "hgmem:without update",
        "w/o Merging": "hgmem:without merging",
    },
    model="openai:Qwen/Qwen2.5-32B-Instruct",
    judge=_GPT_4O,
    embedder=_BGE_M3,
    passage_tokens=200,
    overlap=50,
)
_CAM = PaperExperiment(
    name="cam-table2",
    about="Answers, summaries and claims, over one document and over many.",
    data=(_NOVELQA, _QMSUM, _FABLES, _MULTIHOP_RAG, _STORY, _MEETING),
    rows={
        "FullContext": "full_context cut=true",
        "ReadAgent": "read_agent",
        "RAPTOR": "raptor",
        "GraphRAG": "graphrag:global",
        "MemTree": "memtree",
        "CAM": "cam:as published",
    },
    left_out={"MemGPT": _ABSENT, "HippoRAG": _HIPPORAG},
    model=_GPT_4O_MINI,
    judge=_GPT_4O,
    embedder="openai:text-embedding-3-small",
    passage_tokens=512,
)
_COSMIR = PaperExperiment(
    name="cosmir-table1",
    about="A ledger, beside one note that readers hand on, and beside the beginning of the text alone.",
    data=(
        _HELMET,
        replace(_HELMET, name="HELMET InfiniteBench QA", folder="helmet_infbench_qa"),
        replace(_HELMET, name="HELMET InfiniteBench MC", folder="helmet_infbench_choice", metrics=("accuracy",)),
    ),
    rows={"COSMIR": "cosmir", "CoA": "chain_of_agents chunk=64000", "truncated context": "full_context cut=true"},
    model="openai:gpt-4.1",
    embedder=BUNDLED[0],
)

PAPERS: Mapping[str, PaperExperiment] = {
    each.name: each
    for each in (
        _COMORAG,
        replace(
            _COMORAG,
            name="comorag-table3",
            about="The loop with stronger models, and around the recall of other systems.",
            data=(replace(_NARRATIVEQA, metrics=("f1",)), replace(_EN_QA, metrics=("f1",)), _EN_MC, _DETECTIVEQA),
            rows={
                "ComoRAG": "comorag",
                "HippoRAGv2": _HIPPORAG2_6K,
                "HippoRAGv2 + Our Loop": "hipporag2+probe",
                "RAPTOR": _RAPTOR_6K,
                "RAPTOR + Our Loop": "raptor+probe",
            },
            left_out={"w/ Qwen3-32B": _OTHER_IN_LOOP, "w/ GPT-4.1": _OTHER_IN_LOOP},
        ),
        replace(
            _COMORAG,
            name="comorag-figure3",
            about="Accuracy by the length of the document.",
            data=(replace(_EN_MC, slices=("length",)), replace(_DETECTIVEQA, slices=("length",))),
            rows={"ComoRAG": "comorag", "HippoRAGv2": _HIPPORAG2_6K},
        ),
        _COGITORAG,
        replace(
            _COGITORAG,
            name="cogitorag-table7",
            about="The texts from which the graph is extracted.",
            data=(_MUSIQUE,),
            rows={
                "Traditional KAG system": "cogitorag:graph from passages",
                "Summary": "cogitorag:graph from summaries",
                "Ours": "cogitorag",
            },
            left_out={"#Nodes and #Edges": "not scores: `tome show -m FILE` counts the nodes of a tome"},
        ),
        replace(
            _COGITORAG,
            name="cogitorag-table8",
            about="What each step of the search brings.",
            data=(_MUSIQUE,),
            rows={
                "Full system": "cogitorag",
                "w/o EDF": "cogitorag:without diffusion",
                "w/o CogniRank": "cogitorag:without cognirank",
                "w/o QDM": "cogitorag:without decomposition",
            },
            left_out={},
        ),
        replace(
            _COGITORAG,
            name="cogitorag-table12",
            about="What the answering role sees.",
            data=(_MUSIQUE,),
            rows={
                "Triples-as-Carrier": "cogitorag:answer from triples",
                "Passages-as-Carrier": "cogitorag:answer from passages",
                "Passages+Memory-as-Carrier": "cogitorag",
            },
            left_out={},
        ),
        _HGMEM,
        replace(
            _HGMEM,
            name="hgmem-table3",
            about="Questions about one place and questions that need many, with and without merging.",
            data=tuple(
                replace(
                    data, slices=("query_type",), part="40 queries; their types are not published: add `query_type`"
                )
                for data in (_BOOKS, _NOCHA, _PRELUDE)
            ),
            rows={"HGMem": "hgmem", "w/o Merging": "hgmem:without merging"},
            left_out={"Avg-N_v": "not a score: `vertices_per_point` in the events that `tome eval export` writes"},
        ),
        _CAM,
        replace(
            _CAM,
            name="cam-table3",
            about="CAM with other models and embedders, other searches, and without parts of its memory.",
            data=tuple(
                replace(data, metrics=data.metrics[1:]) if data.judges else data
                for data in (_NOVELQA, _QMSUM, _MULTIHOP_RAG, _STORY)
            ),
            rows={
                "CAM": "cam:as published",
                "Hierarchical Traversal": "cam:as published retrieval=hierarchical",
                "Global Retrieval": "cam:as published retrieval=global",
                "w/ Fine-Grained Modeling": "cam:as published 'foundations=passages and entities'",
                "w/o Hierarchy": "cam:as published levels=0",
                "w/o Flexibility": "cam:as published 'clusters=as published but disjoint'",
            },
            left_out={
                "Llama-3.1-8B-Instruct": _OTHER_MODEL,
                "Qwen2.5-7B-Instruct": _OTHER_MODEL,
                "text-embedding-3-large": _OTHER_EMBEDDER,
                "E5-Mistral-7B-Instruct": _OTHER_EMBEDDER,
            },
        ),
        replace(
            _CAM,
            name="cam-figure3",
            about="Memory that grows in batches of documents (b).",
            data=tuple(
                replace(data, name=f"{data.name} by {batch}", batch=batch)
                for data in (_STORY, _MEETING)
                for batch in (10, 50, 250)
            ),
            rows={"CAM": "cam:as published", "MemTree": "memtree"},
            left_out={
                "insertion time (a)": "not a score: `python bench/schemata.py batches` measures it",
                "NovelQA": "a document comes whole",
            },
        ),
        _COSMIR,
        replace(
            _COSMIR,
            name="cosmir-table2",
            about="A weaker model for one step of the reading.",
            rows={"COSMIR": "cosmir"},
            left_out={
                "weaker Extract": "another model for one role: run again with --model extract_notes=NAME",
                "weaker Infer": "another model for one role: run again with --model infer_notes=NAME",
                "weaker Refine": "another model for one role: run again with --model refine_questions=NAME",
            },
        ),
    )
}
"""The experiments by name."""
