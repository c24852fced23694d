"""Every layout, read from tiny files of our own (in `layouts`), and what is wrong with the files of others."""

from __future__ import annotations

import csv
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tomewise.errors import MissingDependency, ReadingError, UnknownName
from tomewise.evaluate.datasets import detect_layout, list_layouts, read_dataset
from tomewise.evaluate.items import Dataset, Item

Publish = Callable[..., Path]
Change = Callable[[Any], object]
SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "musique"
KEEPER = {"options": ("The cook", "The keeper"), "correct": "B"}
CLAIM = {"options": ("True", "False"), "documents": ("the_lamp",), "slices": {"length": 9, "pair": "the_lamp/1"}}
BRIDGE = {"supporting": ("0",), "slices": {"type": "bridge", "level": "easy"}}


def expect(id: str, *answers: str, **fields: Any) -> dict[str, Any]:
    """An item with this id, these answers, and some of the fields that `describe` has."""
    return {"id": id, "answers": answers, **fields}


def describe(dataset: Dataset, item: Item) -> dict[str, Any]:
    """The fields of an item and of its question, with the texts of its spans as `excerpts`."""
    texts = {document.id: document.text for document in dataset.documents}
    excerpts = [texts[span.document][span.start : span.end].strip() for span in item.spans]
    fields = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    return {**fields, "question": item.question.text, "options": item.question.options, "excerpts": excerpts}


ITEMS = {
    "plain": [
        expect("7", "Norway", supporting=("0",), slices={"hops": 2}, options=()),
        expect("8", "y", options=("x", "y"), correct="B"),
    ],
    "narrativeqa": [  # of the test set alone
        expect("qaps-row-1", "keeper", "the keeper", question="Who lit it, then?", slices={"kind": "gutenberg"})
    ],
    "narrativeqa rows": [expect("1", "keeper", "the keeper", question="Who lit it?", documents=("s1",))],
    "infinitebench-qa": [
        expect("0", "keeper", "the keeper", documents=("0",)),
        expect("1", "nine", documents=("0",)),
    ],
    "infinitebench-mc": [expect("3", "The keeper", **KEEPER)],
    "longbench-v2": [
        expect("x", "man C", correct="C", slices={"domain": "Single-Document QA", "length": "short"}),
    ],
    "helmet": [expect("1", "The keeper", **KEEPER)],
    "detectiveqa": [
        expect(
            "human_anno/87/1",
            "The keeper",
            documents=("87",),
            excerpts=["The keeper lit the lamp.", "Nobody saw the boat."],
            **KEEPER,
        )
    ],
    "hipporag": [
        expect("h1", "Norway", **BRIDGE),
        expect("m", "Norway", "Kingdom of Norway", supporting=("0",)),
        expect("n", "Norway", supporting=("1",)),
        expect("4", "Norway", "Norge", supporting=("0",)),
    ],
    "nq": [expect("1", "Norway", supporting=("11",))],
    "popqa": [expect("5", "Norway", supporting=("0",))],
    "2wikimultihopqa": [expect("h1", "Norway", **BRIDGE)],
    "hotpotqa": [expect("h1", "Norway", **BRIDGE)],
    "musique": [
        expect("2hop__1_2", "Norway", "Kingdom of Norway", supporting=("0",), slices={"hops": 2}),
        expect("3hop1__5", "Norway", "Kingdom of Norway", supporting=("0",), slices={"hops": 3}),
    ],
    "graphrag-bench": [
        expect("Medical/q1", "Rest.", documents=("Medical",), excerpts=[]),  # its source does not contain the evidence
        expect(
            "Novel-1/q1",
            "At nine.",
            documents=("Novel-1",),
            slices={"type": "Fact Retrieval", "source": "Novel-1"},
            excerpts=["The storm\ncame at nine."],  # found over a line break
        ),
    ],
    "nocha": [
        expect("the_lamp/1/True", "True", correct="A", **CLAIM),
        expect("the_lamp/1/False", "False", correct="B", **CLAIM),
    ],
    "prelude": [expect("1", "contradict", correct="B", question="He was at sea.", slices={"book": "The Lamp"})],
    "fables": [
        expect("The Lamp/GPT-4/1", "True", correct="A", slices={"label": "Yes", "summariser": "GPT-4"}),
        expect("The Lamp/GPT-4/2", "False", correct="B"),
        expect("The Lamp/GPT-4/3", "False", correct="B", slices={"label": "PartialSupport", "summariser": "GPT-4"}),
    ],
    "novelqa": [
        expect("B1/Q1", "the old keeper", slices={"aspect": "character", "complexity": "sh"}, **KEEPER),
        expect("B2/Q2", correct=None, documents=("B2",), slices={"aspect": "times", "complexity": "mh"}),
    ],
    "qmsum": [
        expect("test-1/general-1", "They start.", excerpts=[], slices={"type": "general", "turns": 2}),
        expect("test-1/specific-1", "Agrees.", excerpts=["Ben: Yes."], documents=("test-1",)),
    ],
    "locomo": [
        expect(
            "conv-1/1",
            "a boat",
            excerpts=["Ben: Look! [shows a boat]", "Ada: The lamp is lit."],
            documents=("conv-1/session_2", "conv-1/session_10"),
            slices={"category": 1},
        ),
        expect("conv-1/2", "2022", excerpts=[]),  # one of its turns does not exist
        expect("conv-1/3", excerpts=["Ada: Hello."]),
    ],
    "multihop-rag": [
        expect(
            "1",
            "rain",
            supporting=("u/rain", "u/sun"),
            excerpts=["rained on Monday", "shone on Tuesday"],
            slices={"type": "temporal_query", "hops": 2},
        ),
        expect("2", "Insufficient information.", supporting=(), excerpts=[]),
    ],
    "odsum": [expect("1", "They did.", supporting=("M2", "M1"), documents=())],
    "odsum stories": [expect("1", "The keeper.", "A keeper.", supporting=("0",))],
    "odsum setting": [expect("1", "One.", "Two.", documents=("0", "1"))],
}
OSLO, BONN = "Oslo lies in Norway. It is old.", "Bonn is on the Rhine."
DOCUMENTS = {
    "plain": [("0", "Oslo", "Oslo lies in Norway."), ("b", "", "Bonn.")],
    "nq": [("10", "Oslo", OSLO), ("11", "Bonn", BONN)],
    "hipporag": [("0", "Oslo", OSLO), ("1", "Bonn", BONN)],
    "hotpotqa": [("0", "Oslo", OSLO), ("1", "Bonn", BONN)],
    "musique": [("0", "Oslo", OSLO), ("1", "Bonn", BONN)],
    "odsum": [("M1", "", "Ada: Shall we start?"), ("M2", "", "Ben: Yes.")],
    "odsum setting": [("0", "", "First text."), ("1", "", "Second.")],
    "qmsum": [(name, "", "Ada: Shall we start?\nBen: Yes.") for name in ("test-1", "test-2")],
}


@pytest.mark.parametrize("layout", ITEMS)
def test_questions_and_documents_are_those_of_the_files(publish: Publish, layout: str) -> None:
    dataset = read_dataset(layout.split()[0], publish(layout))
    for item, expected in zip(dataset.items, ITEMS[layout], strict=True):
        found = describe(dataset, item)
        assert {name: found[name] for name in expected} == expected
    documents = [(document.id, document.title, document.text) for document in dataset.documents]
    assert documents == DOCUMENTS.get(layout, documents)
    if layout.startswith("infinitebench"):
        assert len(documents) == 1, "both questions are about one text"


def test_layouts_say_more_in_their_own_way(publish: Publish) -> None:
    (item,) = read_dataset("prelude", publish("prelude")).items
    assert "the keeper" in item.question.instructions
    assert read_dataset("nq", publish("nq")).name == "nq_rear"
    for layout in ("qmsum", "odsum", "odsum stories"):
        questions = [item.question for item in read_dataset(layout.split()[0], publish(layout)).items]
        assert {each.instructions for each in questions} == {
            "Write a summary of about 10 words, in connected sentences."
        }
        assert {each.form for each in questions} == {"summary"}
    folder = publish("qmsum", lambda files: files["test.jsonl"][0]["general_query_list"][0].update(answer="a " * 137))
    asked = {item.question.instructions for item in read_dataset("qmsum", folder).items}
    assert asked == {"Write a summary of about 70 words, in connected sentences."}, "the mean of 137 and 1"
    folder = publish("plain")
    dataset = read_dataset("auto", folder)
    assert dataset == read_dataset("plain", folder)
    assert (dataset.name, dataset.openie) == (folder.name, folder / "openie.jsonl")
    strict = read_dataset("fables-strict", publish("fables"))
    assert [item.correct for item in strict.items] == ["A", "B"]
    assert [document.title for document in strict.documents] == ["The Lamp"]


def test_plain_without_triples_and_with_a_letter_for_an_answer(publish: Publish) -> None:
    def change(files: dict[str, Any]) -> None:
        del files["openie.jsonl"], files["questions.jsonl"][1]["answers"]
        files["questions.jsonl"][1]["correct"] = "a"

    dataset = read_dataset("plain", publish("plain", change))
    assert dataset.openie is None
    assert (dataset.items[1].correct, dataset.items[1].answers) == ("A", ("x",))


def test_without_all_of_its_evidence_a_question_has_no_spans(publish: Publish) -> None:
    changes: dict[str, Change] = {
        "detectiveqa": lambda files: files["anno_data_en/human_anno/87.json"][0]["questions"][0].update(
            clue_position=[1, 99]
        ),
        "multihop-rag": lambda files: files["MultiHopRAG.json"][0]["evidence_list"][1].update(fact="the sun shone"),
        "graphrag-bench": lambda files: files["Datasets/Questions/novel_questions.json"][0]["evidence"].append("No."),
    }
    for layout, change in changes.items():
        items = read_dataset(layout, publish(layout, change)).items
        assert [item.spans for item in items] == [()] * len(items)
        assert items[0].supporting == (("u/rain", "u/sun") if layout == "multihop-rag" else ())


def copy_hotpot(row: dict[str, Any]) -> None:
    """Write a row of HotpotQA as its copies have it."""
    row["context"] = {"title": [t for t, _ in row["context"]], "sentences": [s for _, s in row["context"]]}
    row["supporting_facts"] = {"title": ["Oslo"], "sent_id": [0]}


def test_copies_and_parquet_are_read_like_the_files_of_the_authors(publish: Publish) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = read_dataset("hotpotqa", publish("hotpotqa"))
    folder = publish("hotpotqa", lambda files: copy_hotpot(files["hotpot_dev_distractor_v1.json"][0]))
    file = folder / "hotpot_dev_distractor_v1.json"
    table = pyarrow.Table.from_pylist(json.loads(file.read_text()))
    parquet.write_table(table, folder / "validation-0.parquet")
    for path in (file, folder / "validation-0.parquet"):
        found = read_dataset("hotpotqa", path)
        assert found.items == expected.items
        assert [document.text for document in found.documents] == [document.text for document in expected.documents]


def test_the_sample_needs_no_folder() -> None:
    dataset = read_dataset("sample")
    assert len(dataset.documents) == 1
    for item in dataset.items:
        assert item.correct in {"A", "B", "C", "D"}
        assert all(describe(dataset, item)["excerpts"])
        assert item.slices["type"] in {"factoid", "narrative", "inferential"}
    assert dataset.items[0].spans


def test_texts_are_decoded_as_documents_are(publish: Publish) -> None:
    folder = publish("nocha")
    (folder / "books" / "the_lamp.txt").write_bytes("\ufeffCafé\r\nLamp".encode())
    assert read_dataset("nocha", folder).documents[0].text == "Café\nLamp"


MISSING = {
    "plain corpus.jsonl": ("text",),
    "plain questions.jsonl": ("question", "id"),
    "longbench-v2 data.json": ("choice_C", "answer"),
    "detectiveqa anno_data_en/human_anno/87.json": ("questions",),
    "hipporag mixed_corpus.json": ("title",),
    "hipporag mixed.json": ("question", "context"),
    "graphrag-bench Datasets/Questions/novel_questions.json": ("question_type",),
    "nocha data_sample.json": ("claim", "index"),
    "qmsum test.jsonl": ("meeting_transcripts", "specific_query_list"),
    "locomo locomo10.json": ("conversation", "qa"),
    "multihop-rag MultiHopRAG.json": ("evidence_list",),
    "narrativeqa rows test.jsonl": ("answers",),
}


@pytest.mark.parametrize(("file", "field"), [(file, field) for file, fields in MISSING.items() for field in fields])
def test_a_missing_field_is_named_with_its_file_and_row(publish: Publish, file: str, field: str) -> None:
    layout, _, name = file.rpartition(" ")
    folder = publish(layout, lambda files: files[name][0].pop(field))
    with pytest.raises(ReadingError) as caught:
        read_dataset(layout.split()[0], folder)
    for part in (str(folder / name), "row 1", field, "missing"):
        assert part in str(caught.value)


def ask_claims(files: Any) -> Any:
    return files["FABLES.json"]["FABLES"]["The Lamp"]["GPT-4"]["claims"]


def change_spans(spans: Any) -> Change:
    return lambda files: files["test.jsonl"][0]["specific_query_list"][0].update(relevant_text_span=spans)


FAULTS: list[tuple[str, Change, str]] = [
    # fields that are missing deeper down
    ("fables", lambda files: ask_claims(files)["0"].pop("label"), "'label'.* missing"),
    ("multihop-rag", lambda files: files["MultiHopRAG.json"][0]["evidence_list"][0].pop("fact"), "'fact'.* missing"),
    ("narrativeqa rows", lambda files: files["test.jsonl"][0]["document"].pop("text"), "'document.text'.* missing"),
    (
        "narrativeqa",
        lambda files: files.update({"qaps.csv": files["qaps.csv"].replace("answer2", "reply2")}),
        r"qaps\.csv, row 1: the field 'answer2' is missing",
    ),
    # texts that are not there
    ("nocha", lambda files: files.pop("books/the_lamp.txt"), "put it there as"),
    ("detectiveqa", lambda files: files.pop("novel_data_en/87-The Lamp.txt"), "put it there as"),
    ("narrativeqa", lambda files: files.pop("tmp/s1.content"), "put it there as"),
    # gold and sources outside of the corpus
    (
        "hipporag",
        lambda files: files["mixed_corpus.json"].pop(1),
        "row 3: the gold passage 'Bonn' is not in",
    ),
    ("graphrag-bench", lambda files: files.pop("Datasets/Corpus/medical.json"), "has the corpus_name 'Medical'"),
    # what has another form
    ("longbench-v2", lambda files: files["data.json"].clear(), "holds no question in the layout 'longbench-v2'"),
    (
        "popqa",
        lambda files: files["popqa.json"][0].update(possible_answers='["Norway", \'x\', "y"]'),
        "'possible_answers' should be a list of texts in JSON",
    ),
    *(
        ("qmsum", change_spans(spans), "'relevant_text_span' should be")
        for spans in (5, [5], [[0, 2]], [[1, 0]], [[-1, 0]])
    ),
    ("plain", lambda files: files["questions.jsonl"][0].update(supporting=[5]), "names the document '5'"),
    ("plain", lambda files: files["questions.jsonl"][0].update(id="8"), "two questions have the id '8'"),
    ("plain", lambda files: files["corpus.jsonl"][0].update(id="b"), "two documents have the id 'b'"),
    ("plain", lambda files: files["questions.jsonl"][1].update(answers=["z"]), "should be one of the options"),
    ("plain", lambda files: files["questions.jsonl"][0].update(question=["?"]), "'question' should be text"),
    ("plain", lambda files: files["questions.jsonl"][0].update(answers=[["x"]]), "'answers' should be a list of texts"),
    ("plain", lambda files: files["questions.jsonl"].append("x"), "row 3: a row should be an object"),
    ("plain", lambda files: files.update({"questions.jsonl": '{"id": 1}\n{"id": '}), "line 2 is not JSON"),
    ("plain", lambda files: files.update({"questions.jsonl": "[" * 100_000}), "line 1 is not JSON"),
    ("plain", lambda files: files.update({"questions.jsonl": '{"id": ' + "1" * 5_000 + "}"}), "line 1 is not JSON"),
    (
        "plain",
        lambda files: files["questions.jsonl"][1].update(options=[*map(str, range(27))], answers=["26"]),
        "26 options at most",
    ),
]


@pytest.mark.parametrize(("layout", "change", "message"), FAULTS)
def test_what_is_wrong_is_named(publish: Publish, layout: str, change: Change, message: str) -> None:
    with pytest.raises(ReadingError, match=message):
        read_dataset(layout.split()[0], publish(layout, change))


def test_several_files_that_match_need_a_choice(publish: Publish) -> None:
    folder = publish("longbench-v2", lambda files: files.update({"a.json": [], "b.json": files.pop("data.json")}))
    with pytest.raises(ReadingError, match=r"several files that fit \(a.json, b.json\)"):
        read_dataset("longbench-v2", folder)
    assert read_dataset("longbench-v2", folder / "b.json").items[0].id == "x"


def test_broken_tables_are_named(publish: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    folder = publish("longbench-v2")
    (folder / "data.json").rename(folder / "data.parquet")
    with pytest.raises(ReadingError, match=r"data\.parquet is not a Parquet file that can be read"):
        read_dataset("longbench-v2", folder)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingDependency, match=r"pip install 'tomewise\[eval\]'"):
        read_dataset("longbench-v2", folder)
    folder = publish("narrativeqa")
    csv.field_size_limit(100_000)  # readers of documents raise it
    (folder / "qaps.csv").write_text("document_id,set\n" + "s" * 200_000 + ",test\n")
    with pytest.raises(ReadingError, match=r"qaps\.csv, after line 1: field larger"):
        read_dataset("narrativeqa", folder)


@pytest.mark.parametrize("layout", [name for name in list_layouts() if name != "sample"])
def test_an_empty_folder_is_refused_naming_what_is_wanted(tmp_path: Path, layout: str) -> None:
    with pytest.raises(ReadingError, match="holds no file"):
        read_dataset(layout, tmp_path)


def test_an_unknown_layout_or_folder_is_named(publish: Publish, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'musique'"):
        read_dataset("musiqe", tmp_path)
    with pytest.raises(ReadingError, match="does not exist"):
        read_dataset("plain", tmp_path / "nowhere")
    with pytest.raises(ReadingError, match="name its layout"):
        detect_layout(tmp_path)
    assert detect_layout(publish("plain")) == "plain", "it alone shows by its files"


def test_musique_as_shared() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared data folder ../shared/data/musique is not here")
    dataset = read_dataset("auto", SHARED)
    assert (dataset.name, len(dataset.documents), len(dataset.items)) == ("musique", 1890, 60)
    assert dataset.openie == SHARED / "openie.jsonl"
    assert {item.slices["hops"] for item in dataset.items} == {2, 3, 4}
    assert all(len(item.supporting) == item.slices["hops"] for item in dataset.items)
