"""What is true of every layout: names, detection, and the checks after reading."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tomewise.errors import MissingDependency, ReadingError, UnknownName
from tomewise.evaluate.datasets import detect_layout, list_layouts, read_dataset

Publish = Callable[..., Path]
SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"


def test_an_unknown_layout_gets_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'musique'"):
        read_dataset("musiqe", tmp_path)
    assert {"plain", "sample", "narrativeqa", "qmsum", "longbench-v2"} <= set(list_layouts())


def test_only_the_plain_layout_shows_by_its_files(publish: Publish, tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match="name its layout"):
        detect_layout(tmp_path)
    assert detect_layout(publish("plain")) == "plain"


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match="does not exist"):
        read_dataset("plain", tmp_path / "nowhere")


def corpus(files: dict[str, Any]) -> Any:
    return files["corpus.jsonl"]


def questions(files: dict[str, Any]) -> Any:
    return files["questions.jsonl"]


def test_a_file_without_questions(publish: Publish) -> None:
    with pytest.raises(ReadingError, match="holds no question in the layout 'longbench-v2'"):
        read_dataset("longbench-v2", publish("longbench-v2", lambda files: files["data.json"].clear()))


CHECKS: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (lambda files: questions(files)[0].update(supporting=[5]), "names the document '5'"),
    (lambda files: questions(files)[0].update(id="8"), "two questions have the id '8'"),
    (lambda files: corpus(files)[0].update(id="b"), "two documents have the id 'b'"),
    (lambda files: questions(files).clear(), "is empty"),
    (lambda files: questions(files)[1].update(answers=["z"]), "should be one of the options"),
    (lambda files: questions(files)[1].update(options=7), "should be a list of options"),
    (lambda files: questions(files)[0].update(question=["?"]), "'question' should be text"),
    (lambda files: questions(files)[0].update(answers=[["x"]]), "'answers' should be a list of texts"),
    (lambda files: questions(files).append("x"), "row 3: a row should be an object"),
    (lambda files: files.update({"questions.jsonl": '{"id": 1}\n{"id": '}), "line 2 is not JSON"),
    (lambda files: files.update({"questions.jsonl": "[" * 100_000}), "line 1 is not JSON"),
    (lambda files: files.update({"questions.jsonl": '{"id": ' + "1" * 5_000 + "}"}), "line 1 is not JSON"),
    (lambda files: questions(files)[1].update(options=[*map(str, range(27))], answers=["26"]), "26 options at most"),
]


@pytest.mark.parametrize(("change", "says"), CHECKS, ids=[says for _, says in CHECKS])
def test_what_is_wrong_is_named(publish: Publish, change: Callable[[dict[str, Any]], None], says: str) -> None:
    with pytest.raises(ReadingError) as caught:
        read_dataset("plain", publish("plain", change))
    assert says in str(caught.value)


def test_several_files_that_match_need_a_choice(publish: Publish) -> None:
    folder = publish("longbench-v2", lambda files: files.update({"a.json": [], "b.json": files.pop("data.json")}))
    with pytest.raises(ReadingError, match=r"several files that fit \(a.json, b.json\)"):
        read_dataset("longbench-v2", folder)
    assert read_dataset("longbench-v2", folder / "b.json").items[0].id == "x"


def test_parquet_is_read_like_json(publish: Publish) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = publish("hotpotqa")
    rows = json.loads((folder / "hotpot_dev_distractor_v1.json").read_text())
    for row in rows:
        row["context"] = {"title": [t for t, _ in row["context"]], "sentences": [s for _, s in row["context"]]}
        row["supporting_facts"] = {"title": ["Oslo"], "sent_id": [0]}
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "validation-0.parquet")
    expected = read_dataset("hotpotqa", folder / "hotpot_dev_distractor_v1.json")
    found = read_dataset("hotpotqa", folder / "validation-0.parquet")
    assert found.items == expected.items
    assert [d.text for d in found.documents] == [d.text for d in expected.documents]


def test_parquet_without_its_package_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingDependency, match=r"pip install 'tomewise\[eval\]'"):
        read_dataset("longbench-v2", tmp_path)


def test_broken_tables_are_named(publish: Publish) -> None:
    pytest.importorskip("pyarrow")
    folder = publish("longbench-v2")
    (folder / "data.json").rename(folder / "data.parquet")
    with pytest.raises(ReadingError, match=r"data\.parquet is not a Parquet file that can be read"):
        read_dataset("longbench-v2", folder)
    folder = publish("narrativeqa")
    (folder / "qaps.csv").write_text("document_id,set\n" + "s" * 200_000 + ",test\n")
    with pytest.raises(ReadingError, match=r"qaps\.csv, after line 1: field larger"):
        read_dataset("narrativeqa", folder)


@pytest.mark.parametrize("spans", [5, [5], [[0, 9]], [[1, 0]], [[-1, 0]], [["a", "b"]]])
def test_turns_that_are_not_there_are_named(publish: Publish, spans: Any) -> None:
    folder = publish(
        "qmsum", lambda files: files["test.jsonl"][0]["specific_query_list"][0].update(relevant_text_span=spans)
    )
    with pytest.raises(ReadingError, match="'relevant_text_span' should be"):
        read_dataset("qmsum", folder)


def test_aliases_that_are_not_a_list_are_named(publish: Publish) -> None:
    folder = publish("popqa", lambda files: files["popqa.json"][0].update(possible_answers='["Norway", \'x\', "y"]'))
    with pytest.raises(ReadingError, match="'possible_answers' should be a list of texts in JSON"):
        read_dataset("popqa", folder)


def test_texts_are_decoded_as_documents_are(publish: Publish) -> None:
    folder = publish("nocha")
    (folder / "books" / "the_lamp.txt").write_bytes("\ufeffCafé\r\nLamp".encode())
    assert read_dataset("nocha", folder).documents[0].text == "Café\nLamp"


def test_musique_as_shared() -> None:
    folder = SHARED / "musique"
    if not folder.is_dir():
        pytest.skip("the shared data folder ../shared/data/musique is not here")
    dataset = read_dataset("auto", folder)
    assert (dataset.name, len(dataset.documents), len(dataset.items)) == ("musique", 1890, 60)
    assert dataset.openie == folder / "openie.jsonl"
    assert {item.slices["hops"] for item in dataset.items} == {2, 3, 4}
    assert all(len(item.supporting) == item.slices["hops"] for item in dataset.items)


def test_qmsum_as_shared() -> None:
    folder = SHARED / "qmsum"
    if not folder.is_dir():
        pytest.skip("the shared data folder ../shared/data/qmsum is not here")
    dataset = read_dataset("qmsum", folder)
    kinds = [item.slices["type"] for item in dataset.items]
    assert (len(dataset.documents), kinds.count("specific")) == (35, 244)
    lengths = {document.id: len(document.text) for document in dataset.documents}
    specific = [item for item in dataset.items if item.slices["type"] == "specific"]
    assert all(item.spans for item in specific)
    assert all(0 <= span.start < span.end <= lengths[span.document] for item in specific for span in item.spans)
