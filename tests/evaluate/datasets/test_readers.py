"""Every layout, read from tiny files of our own (see `conftest.py`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tomewise.errors import ReadingError
from tomewise.evaluate.datasets import list_layouts, read_dataset
from tomewise.evaluate.items import Dataset, Item, Span

Publish = Callable[..., Path]


def excerpts(dataset: Dataset, item: Item) -> list[str]:
    texts = {document.id: document.text for document in dataset.documents}
    return [texts[span.document][span.start : span.end] for span in item.spans]


def test_plain(publish: Publish) -> None:
    folder = publish("plain")
    dataset = read_dataset("auto", folder)
    first, second = dataset.items
    assert dataset == read_dataset("plain", folder)
    assert dataset.name == folder.name
    assert [(d.id, d.title, d.text) for d in dataset.documents] == [
        ("0", "Oslo", "Oslo lies in Norway."),
        ("b", "", "Bonn."),
    ]
    assert (first.id, first.answers, first.supporting, first.slices) == ("7", ("Norway",), ("0",), {"hops": 2})
    assert (second.question.options, second.correct, second.answers) == (("x", "y"), "B", ("y",))
    assert dataset.openie == folder / "openie.jsonl"


def test_plain_without_triples_and_with_a_letter_for_an_answer(publish: Publish) -> None:
    def change(files: dict[str, Any]) -> None:
        del files["openie.jsonl"], files["questions.jsonl"][1]["answers"]
        files["questions.jsonl"][1]["correct"] = "a"

    dataset = read_dataset("plain", publish("plain", change))
    assert dataset.openie is None
    assert (dataset.items[1].correct, dataset.items[1].answers) == ("A", ("x",))


def test_narrativeqa_reads_the_test_set(publish: Publish) -> None:
    dataset = read_dataset("narrativeqa", publish("narrativeqa"))
    (item,) = dataset.items
    assert item.question.text == "Who lit it, then?"
    assert (item.answers, item.documents, item.slices) == (("keeper", "the keeper"), ("s1",), {"kind": "gutenberg"})
    assert dataset.documents[0].text.startswith("The keeper lit")


def test_narrativeqa_rows(publish: Publish) -> None:
    (item,) = read_dataset("narrativeqa", publish("narrativeqa rows")).items
    assert (item.question.text, item.answers, item.documents) == ("Who lit it?", ("keeper", "the keeper"), ("s1",))


def test_infinitebench(publish: Publish) -> None:
    dataset = read_dataset("infinitebench-qa", publish("infinitebench-qa"))
    assert [item.id for item in dataset.items] == ["0", "1"]
    assert len(dataset.documents) == 1  # both ask about one text
    assert {item.documents for item in dataset.items} == {(dataset.documents[0].id,)}
    assert dataset.items[0].answers == ("keeper", "the keeper")


def test_infinitebench_maps_the_wording_to_a_letter(publish: Publish) -> None:
    (item,) = read_dataset("infinitebench-mc", publish("infinitebench-mc")).items
    assert (item.correct, item.answers, item.question.options) == ("B", ("The keeper",), ("The cook", "The keeper"))


def test_longbench(publish: Publish) -> None:
    (item,) = read_dataset("longbench-v2", publish("longbench-v2")).items
    assert (item.id, item.correct, item.answers) == ("x", "C", ("man C",))
    assert item.slices == {"domain": "Single-Document QA", "length": "short"}


def test_helmet(publish: Publish) -> None:
    (item,) = read_dataset("helmet", publish("helmet")).items
    assert (item.correct, item.question.options) == ("B", ("The cook", "The keeper"))


def test_detectiveqa(publish: Publish) -> None:
    dataset = read_dataset("detectiveqa", publish("detectiveqa"))
    (item,) = dataset.items
    assert (item.id, item.correct, item.documents) == ("human_anno/87/1", "B", ("87",))
    assert [text.strip() for text in excerpts(dataset, item)] == ["The keeper lit the lamp.", "Nobody saw the boat."]


def test_detectiveqa_has_no_spans_when_a_clue_is_not_in_the_novel(publish: Publish) -> None:
    def change(files: dict[str, Any]) -> None:
        files["anno_data_en/human_anno/87.json"][0]["questions"][0]["clue_position"] = [1, 99]

    assert read_dataset("detectiveqa", publish("detectiveqa", change)).items[0].spans == ()


def test_hipporag_finds_gold_in_each_of_its_forms(publish: Publish) -> None:
    dataset = read_dataset("hipporag", publish("hipporag"))
    assert [document.id for document in dataset.documents] == ["0", "1"]
    assert [item.supporting for item in dataset.items] == [("0",), ("0",), ("1",), ("0",)]
    answers = [item.answers for item in dataset.items]
    assert answers == [("Norway",), ("Norway", "Kingdom of Norway"), ("Norway",), ("Norway", "Norge")]
    assert dataset.items[0].slices == {"type": "bridge", "level": "easy"}


def test_hipporag_by_the_name_of_a_dataset(publish: Publish) -> None:
    dataset = read_dataset("nq", publish("nq"))
    assert [document.id for document in dataset.documents] == ["10", "11"]
    assert dataset.items[0].supporting == ("11",)
    assert dataset.name == "nq_rear"
    assert read_dataset("popqa", publish("popqa")).items[0].answers == ("Norway",)
    assert read_dataset("2wikimultihopqa", publish("2wikimultihopqa")).items[0].supporting == ("0",)


def test_hipporag_refuses_gold_outside_the_corpus(publish: Publish) -> None:
    folder = publish("hipporag", lambda files: files["mixed_corpus.json"].pop(1))
    with pytest.raises(ReadingError, match=r"row 3: the gold passage 'Bonn' is not in the corpus"):
        read_dataset("hipporag", folder)


def test_musique_as_its_authors_publish_it(publish: Publish) -> None:
    dataset = read_dataset("musique", publish("musique"))
    assert [(document.id, document.title) for document in dataset.documents] == [("0", "Oslo"), ("1", "Bonn")]
    assert [item.supporting for item in dataset.items] == [("0",), ("0",)]
    assert [item.slices for item in dataset.items] == [{"hops": 2}, {"hops": 3}]
    assert dataset.items[0].answers == ("Norway", "Kingdom of Norway")


@pytest.mark.parametrize("copied", [False, True])
def test_hotpotqa_as_its_authors_publish_it_and_as_copied(publish: Publish, copied: bool) -> None:
    def change(files: dict[str, Any]) -> None:
        row = files["hotpot_dev_distractor_v1.json"][0]
        if copied:
            row["context"] = {
                "title": [title for title, _ in row["context"]],
                "sentences": [s for _, s in row["context"]],
            }
            row["supporting_facts"] = {"title": ["Oslo"], "sent_id": [0]}

    dataset = read_dataset("hotpotqa", publish("hotpotqa", change))
    assert [document.text for document in dataset.documents] == [
        "Oslo lies in Norway. It is old.",
        "Bonn is on the Rhine.",
    ]
    assert dataset.items[0].supporting == ("0",)


def test_graphrag_bench(publish: Publish) -> None:
    dataset = read_dataset("graphrag-bench", publish("graphrag-bench"))
    by_id = {item.id: item for item in dataset.items}
    assert set(by_id) == {"Novel-1/q1", "Medical/q1"}
    novel = by_id["Novel-1/q1"]
    assert excerpts(dataset, novel) == ["The storm\ncame at nine."]  # found over a line break
    assert (novel.documents, novel.slices) == (("Novel-1",), {"type": "Fact Retrieval", "source": "Novel-1"})
    assert by_id["Medical/q1"].spans == ()  # its source does not contain the evidence


def test_graphrag_bench_refuses_a_source_without_corpus(publish: Publish) -> None:
    folder = publish("graphrag-bench", lambda files: files.pop("Datasets/Corpus/medical.json"))
    with pytest.raises(ReadingError, match="no corpus has the corpus_name 'Medical'"):
        read_dataset("graphrag-bench", folder)


def test_nocha_pairs_its_claims(publish: Publish) -> None:
    true, false = read_dataset("nocha", publish("nocha")).items
    assert (true.correct, false.correct) == ("A", "B")
    assert true.slices["pair"] == false.slices["pair"]
    assert true.slices["length"] == 9
    assert true.question.options == ("True", "False")
    assert true.documents == ("the_lamp",)


def test_prelude(publish: Publish) -> None:
    (item,) = read_dataset("prelude", publish("prelude")).items
    assert (item.correct, item.answers, item.question.text) == ("B", ("contradict",), "He was at sea.")
    assert "the keeper" in item.question.instructions


@pytest.mark.parametrize(("name", "letters"), [("fables", "ABB"), ("fables-strict", "AB")])
def test_fables_maps_its_labels_to_two_classes(publish: Publish, name: str, letters: str) -> None:
    items = read_dataset(name, publish("fables")).items
    assert "".join(str(item.correct) for item in items) == letters
    assert items[0].id == "The Lamp/GPT-4/1"
    assert items[0].slices == {"label": "Yes", "summariser": "GPT-4"}


def test_novelqa_in_both_versions(publish: Publish) -> None:
    with_gold, without = read_dataset("novelqa", publish("novelqa")).items
    assert (with_gold.id, with_gold.correct, with_gold.answers) == ("B1/Q1", "B", ("the old keeper",))
    assert with_gold.question.options == ("The cook", "The keeper")
    assert (without.correct, without.answers, without.documents) == (None, (), ("B2",))
    assert without.slices == {"aspect": "times", "complexity": "mh"}


def test_qmsum_turns_become_spans(publish: Publish) -> None:
    dataset = read_dataset("qmsum", publish("qmsum"))
    general, specific = dataset.items
    assert (general.id, general.spans, general.slices) == ("test-1/general-1", (), {"type": "general", "turns": 2})
    (text,) = excerpts(dataset, specific)
    assert "Ben" in text
    assert "Yes." in text
    assert "Ada" not in text


def test_multihop_rag(publish: Publish) -> None:
    dataset = read_dataset("multihop-rag", publish("multihop-rag"))
    first, null = dataset.items
    assert first.supporting == ("u/rain", "u/sun")
    assert excerpts(dataset, first) == ["rained on Monday", "shone on Tuesday"]
    assert first.slices == {"type": "temporal_query", "hops": 2}
    assert (null.supporting, null.spans, null.answers) == ((), (), ("Insufficient information.",))


def test_multihop_rag_has_no_spans_when_a_fact_is_paraphrased(publish: Publish) -> None:
    def change(files: dict[str, Any]) -> None:
        files["MultiHopRAG.json"][0]["evidence_list"][1]["fact"] = "the sun shone"

    first = read_dataset("multihop-rag", publish("multihop-rag", change)).items[0]
    assert (first.supporting, first.spans) == (("u/rain", "u/sun"), ())


def test_odsum_meetings(publish: Publish) -> None:
    dataset = read_dataset("odsum", publish("odsum"))
    (item,) = dataset.items
    assert (item.supporting, item.documents, item.answers) == (("M2", "M1"), (), ("They did.",))
    assert [document.id for document in dataset.documents] == ["M1", "M2"]


def test_odsum_stories(publish: Publish) -> None:
    dataset = read_dataset("odsum", publish("odsum stories"))
    (item,) = dataset.items
    assert item.answers == ("The keeper.", "A keeper.")
    assert item.supporting == (dataset.documents[0].id,)


def test_odsum_setting(publish: Publish) -> None:
    dataset = read_dataset("odsum", publish("odsum setting"))
    (item,) = dataset.items
    assert item.answers == ("One.", "Two.")
    assert [document.text for document in dataset.documents] == ["First text.", "Second."]
    assert item.documents == tuple(document.id for document in dataset.documents)


def test_the_sample_needs_no_folder() -> None:
    dataset = read_dataset("sample")
    assert len(dataset.documents) == 1
    for item in dataset.items:
        assert item.correct in {"A", "B", "C", "D"}
        assert all(excerpts(dataset, item))
        assert item.slices["type"] in {"factoid", "narrative", "inferential"}


def test_spans_of_items_are_spans() -> None:
    span = read_dataset("sample").items[0].spans[0]
    assert isinstance(span, Span)
    assert span.start < span.end


MISSING = [
    ("plain", "corpus.jsonl", "text"),
    ("plain", "questions.jsonl", "question"),
    ("plain", "questions.jsonl", "id"),
    ("infinitebench-qa", "longbook_qa_eng.jsonl", "input"),
    ("infinitebench-mc", "longbook_choice_eng.jsonl", "context"),
    ("infinitebench-mc", "longbook_choice_eng.jsonl", "options"),
    ("longbench-v2", "data.json", "choice_C"),
    ("longbench-v2", "data.json", "answer"),
    ("detectiveqa", "anno_data_en/human_anno/87.json", "questions"),
    ("hipporag", "mixed_corpus.json", "title"),
    ("hipporag", "mixed.json", "question"),
    ("hipporag", "mixed.json", "context"),
    ("nq", "nq_rear.json", "contexts"),
    ("popqa", "popqa.json", "obj"),
    ("musique", "musique_ans_v1.0_dev.jsonl", "paragraphs"),
    ("musique", "musique_ans_v1.0_dev.jsonl", "answer"),
    ("hotpotqa", "hotpot_dev_distractor_v1.json", "context"),
    ("2wikimultihopqa", "2wikimultihopqa.json", "answer"),
    ("graphrag-bench", "Datasets/Corpus/novel.json", "context"),
    ("graphrag-bench", "Datasets/Questions/novel_questions.json", "question_type"),
    ("nocha", "data_sample.json", "claim"),
    ("nocha", "data_sample.json", "index"),
    ("prelude", "prelude.jsonl", "label"),
    ("prelude", "prelude.jsonl", "char"),
    ("novelqa", "Data/B2.json", "Options"),
    ("qmsum", "test.jsonl", "meeting_transcripts"),
    ("qmsum", "test.jsonl", "specific_query_list"),
    ("multihop-rag", "corpus.json", "body"),
    ("multihop-rag", "MultiHopRAG.json", "evidence_list"),
    ("odsum stories", "queries.jsonl", "question_text"),
    ("odsum stories", "documents/test.jsonl", "document"),
    ("odsum setting", "test.json", "Article"),
    ("narrativeqa rows", "test.jsonl", "answers"),
]


@pytest.mark.parametrize(("layout", "file", "field"), MISSING)
def test_a_missing_field_is_named_with_its_file_and_row(publish: Publish, layout: str, file: str, field: str) -> None:
    folder = publish(layout, lambda files: files[file][0].pop(field))
    with pytest.raises(ReadingError) as caught:
        read_dataset(layout.split()[0], folder)
    message = str(caught.value)
    assert str(folder / file) in message
    assert "row 1" in message
    assert field in message
    assert "missing" in message


NESTED = [
    ("helmet", "infbench_choice_eng.json", lambda content: content["data"][0].pop("question"), "input"),
    (
        "fables",
        "FABLES.json",
        lambda content: content["FABLES"]["The Lamp"]["GPT-4"]["claims"]["0"].pop("label"),
        "label",
    ),
    ("qmsum", "test.jsonl", lambda content: content[0]["specific_query_list"][0].pop("answer"), "answer"),
    ("qmsum", "test.jsonl", lambda content: content[0]["meeting_transcripts"][1].pop("content"), "content"),
    ("multihop-rag", "MultiHopRAG.json", lambda content: content[0]["evidence_list"][0].pop("fact"), "fact"),
    ("odsum", "queries.json", lambda content: content["0"].pop("answer"), "answer"),
    ("narrativeqa rows", "test.jsonl", lambda content: content[0]["document"].pop("text"), "document.text"),
]


@pytest.mark.parametrize(("layout", "file", "change", "field"), NESTED)
def test_a_field_missing_deeper_down_is_named_too(
    publish: Publish, layout: str, file: str, change: Callable[[Any], Any], field: str
) -> None:
    folder = publish(layout, lambda files: change(files[file]))
    with pytest.raises(ReadingError, match=rf"'{field}'.* missing"):
        read_dataset(layout.split()[0], folder)


def test_a_missing_column_of_narrativeqa_is_named(publish: Publish) -> None:
    def change(files: dict[str, Any]) -> None:
        files["qaps.csv"] = files["qaps.csv"].replace("answer2", "reply2")

    with pytest.raises(ReadingError, match=r"qaps\.csv, row 1: the field 'answer2' is missing"):
        read_dataset("narrativeqa", publish("narrativeqa", change))


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("nocha", "books/the_lamp.txt"),
        ("prelude", "The Lamp.txt"),
        ("fables", "books/The Lamp.txt"),
        ("novelqa", "Books/B1.txt"),
        ("detectiveqa", "novel_data_en/87-The Lamp.txt"),
        ("narrativeqa", "tmp/s1.content"),
    ],
)
def test_a_text_that_is_not_there_is_asked_for(publish: Publish, layout: str, text: str) -> None:
    folder = publish(layout, lambda files: files.pop(text))
    with pytest.raises(ReadingError, match="put it there as"):
        read_dataset(layout, folder)


@pytest.mark.parametrize("layout", [name for name in list_layouts() if name != "sample"])
def test_an_empty_folder_is_refused_naming_what_is_wanted(tmp_path: Path, layout: str) -> None:
    with pytest.raises(ReadingError, match="holds no file"):
        read_dataset(layout, tmp_path)
