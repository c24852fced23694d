"""MultiHop-RAG (Tang and Yang 2024): questions that join facts from several news articles."""

from __future__ import annotations

from pathlib import Path

from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_file, read_records
from tomewise.evaluate.items import Dataset, Item, Span
from tomewise.types import Question


def read_multihop_rag(folder: Path) -> Dataset:
    """`corpus.json` {title, body, url} and `MultiHopRAG.json` {query, answer, question_type, evidence_list}.

    An evidence {title or url, fact} names a gold article, and its fact becomes a span. If an article lacks one of the
    facts word for word, the question has no spans. Null queries have no evidence; their reference is that the articles
    do not contain the answer.
    """
    corpus_file = find_file(folder, "corpus.json*", "**/corpus.json*")
    corpus = Corpus(corpus_file)
    ids: dict[str, str] = {}  # by url and by title
    for record in read_records(corpus_file):
        title, url = record.text("title"), str(record.find("url") or "")
        ids[title] = ids[url or title] = corpus.add(record.text("body", "text"), title=title, id=url or title)
    rows = read_records(find_file(folder, "MultiHopRAG.json*", "**/MultiHopRAG.json*"))
    items = tuple(_make_item(record, str(number), ids, corpus) for number, record in enumerate(rows, 1))
    return Dataset(name="multihop-rag", documents=corpus.documents, items=items)


def _make_item(record: Record, id: str, ids: dict[str, str], corpus: Corpus) -> Item:
    evidence = record.rows("evidence_list")
    articles = [_find_article(row, ids) for row in evidence]
    by_fact = [corpus.find_spans(article, [row.text("fact")]) for article, row in zip(articles, evidence, strict=True)]
    spans: list[Span] = [span for fact_spans in by_fact for span in fact_spans] if all(by_fact) else []
    return Item(
        id=id,
        question=Question(text=record.text("query")),
        answers=record.texts("answer"),
        supporting=tuple(dict.fromkeys(articles)),
        spans=tuple(dict.fromkeys(spans)),
        slices={"type": record.text("question_type"), "hops": len(evidence)},
    )


def _find_article(evidence: Record, ids: dict[str, str]) -> str:
    """The id of the article that holds the evidence, by its url, else by its title. Raises ReadingError."""
    names = [str(evidence.find(field)) for field in ("url", "title") if evidence.find(field)]
    article = next((ids[name] for name in names if name in ids), None)
    if article is None:
        raise evidence.make_error(
            f"the corpus has no article {' or '.join(names) or 'without url and title'}: give the corpus of this file"
        )
    return article
