"""ODSum (Zhou et al. 2023): summaries that answer a query over many stories or meetings."""

from __future__ import annotations

from pathlib import Path

from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_file, find_files, read_records, read_text
from tomewise.evaluate.items import Dataset, Item
from tomewise.types import Question

_BETWEEN_ARTICLES = "<doc-sep>"


def read_odsum(folder: Path) -> Dataset:
    """The folder `raw` (every document, `queries.json` or `.jsonl`), or one of the settings: `test.json` with Articles.

    Raw meetings {query, answer, meetings_list} name their gold documents, which are the stems of `Documents/*.txt`. Raw
    stories {question_text, responses: [{response_text}], title} do so by title if a document has it. In a setting
    {Query, Summary or Summary_1..4, Article}, the question is asked over its own articles.
    """
    queries = sorted(folder.glob("queries.json*")) if folder.is_dir() else []
    if queries:
        return _read_raw(folder, queries[0])
    path = find_file(folder, "test.json", "*.json")
    corpus = Corpus(path)
    return corpus.make_dataset(
        "odsum",
        (_make_setting_item(record, str(number), corpus) for number, record in enumerate(read_records(path), 1)),
    )


def _read_raw(folder: Path, queries: Path) -> Dataset:
    corpus, titles = Corpus(folder), dict[str, str]()
    for path in find_files(folder, "[Dd]ocuments/*"):
        if path.suffix == ".txt":
            titles[path.stem] = corpus.add(read_text(path), id=path.stem)
            continue
        for record in read_records(path):
            title = str(record.find("title", "metadata.title") or "")
            id = corpus.add(record.text("document", "text", "article", "story"), title=title)
            titles.setdefault(title or id, id)
    rows = read_records(queries)
    # The file of meetings maps numbers to queries; that of stories is a list.
    if len(rows) == 1 and all(isinstance(value, dict) for value in rows[0].values.values()):
        rows = [rows[0].make_inner(f"query {key}", part) for key, part in rows[0].values.items()]
    return corpus.make_dataset(
        "odsum", (_make_raw_item(record, str(number), titles) for number, record in enumerate(rows, 1))
    )


def _make_raw_item(record: Record, id: str, titles: dict[str, str]) -> Item:
    responses = record.rows("responses") if record.find("responses") is not None else []
    meetings = record.texts("meetings_list") if record.find("meetings_list") is not None else ()
    if unknown := [name for name in meetings if name not in titles]:
        raise record.make_error(f"the meeting {unknown[0]!r} is not among the documents: add {unknown[0]}.txt")
    titles_of_gold = meetings or tuple(title for title in (str(record.find("title")),) if title in titles)
    return Item(
        id=id,
        question=Question(text=record.text("query", "question_text")),
        answers=tuple(row.text("response_text") for row in responses) or record.texts("answer", "responses"),
        supporting=tuple(dict.fromkeys(titles[name] for name in titles_of_gold)),
    )


def _make_setting_item(record: Record, id: str, corpus: Corpus) -> Item:
    summaries = [name for name in ("Summary_1", "Summary_2", "Summary_3", "Summary_4") if record.find(name)]
    articles = [article.strip() for article in record.text("Article").split(_BETWEEN_ARTICLES)]
    return Item(
        id=id,
        question=Question(text=record.text("Query")),
        answers=tuple(record.text(name) for name in summaries) or (record.text("Summary", "Summary_1"),),
        documents=tuple(dict.fromkeys(corpus.add(article) for article in articles if article)),
    )
