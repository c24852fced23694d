"""Questions that join several texts: MuSiQue, HotpotQA, 2WikiMultiHopQA, HippoRAG's copies of them, MultiHop-RAG."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tomewise.evaluate.datasets.corpus import Corpus
from tomewise.evaluate.datasets.data_rows import Record, find_file, read_records
from tomewise.evaluate.items import Dataset, Item, Span
from tomewise.types import Question

_TitledText = tuple[str, str]  # the title and the text of a passage


def read_multihop(folder: Path, name: str) -> Dataset:
    """The dataset in a folder: rows {id or _id, question, answer, answer_aliases?} with the passages of each question.

    MuSiQue (Trivedi et al. 2022) has `paragraphs` [{title, paragraph_text, is_supporting}]. HotpotQA (Yang et al. 2018)
    and 2WikiMultiHopQA (Ho et al. 2020) have `context` [[title, sentences]] and `supporting_facts` [[title, sentence
    number]]. The copies on Hugging Face have mappings of lists in place of these lists of pairs. The corpus holds the
    passages of all questions, each once, as in HippoRAG and later papers.
    """
    path = find_file(folder, "*dev*.json*", "*validation*.parquet", "*.jsonl", "*.json", "*.parquet")
    corpus = Corpus(path)
    return corpus.make_dataset(name, (_make_item(record, corpus) for record in read_records(path)))


def _read_passages(record: Record) -> list[tuple[_TitledText, bool]]:
    """Every passage of a question, and whether it is gold.

    Without `supporting_facts`, a passage is gold unless its `is_supporting` is false.
    """
    if record.find("supporting_facts") is not None:
        gold_titles = set(_read_gold_titles(record, record.take("supporting_facts")))
        return [((title, text), title in gold_titles) for title, text in _read_context(record)]
    rows = record.rows("paragraphs", "contexts", "supporting_facts")
    return [
        ((row.text("title"), row.text("text", "paragraph_text")), row.find("is_supporting") is not False)
        for row in rows
    ]


def _read_hops(record: Record) -> dict[str, str | int]:
    """The slice of a question by its number of hops, from MuSiQue's id or else from the decomposition; maybe empty."""
    match = re.match(r"(\d)hop", str(record.find("id") or ""))
    decomposition = record.find("question_decomposition")
    if match:
        return {"hops": int(match.group(1))}
    return {"hops": len(decomposition)} if isinstance(decomposition, list) else {}


def _make_item(record: Record, corpus: Corpus) -> Item:
    ids = [(corpus.add(text, title=title), gold) for (title, text), gold in _read_passages(record)]
    aliases = record.texts("answer_aliases") if record.find("answer_aliases") else ()
    return Item(
        id=record.text("id", "_id"),
        question=Question(text=record.text("question")),
        answers=tuple(dict.fromkeys((*record.texts("answer"), *aliases))),
        supporting=tuple(dict.fromkeys(id for id, gold in ids if gold)),
        slices=record.slices("type", "level") | _read_hops(record),
    )


def _read_gold_titles(record: Record, facts: Any) -> list[str]:
    if isinstance(facts, dict) and isinstance(facts.get("title"), list):
        return [str(title) for title in facts["title"]]
    if isinstance(facts, list) and all(isinstance(fact, list) and fact for fact in facts):
        return [str(fact[0]) for fact in facts]
    raise record.make_wrong_field_error("supporting_facts", facts, "a list of [title, sentence number]")


def _read_context(record: Record) -> list[_TitledText]:
    context = record.take("context")
    if isinstance(context, dict) and {"title", "sentences"} <= set(context):
        context = list(zip(context["title"], context["sentences"], strict=True))
    if not isinstance(context, list) or not all(isinstance(part, list | tuple) and len(part) == 2 for part in context):
        raise record.make_wrong_field_error("context", context, "a list of [title, sentences]")
    return [(str(title), _join_sentences(sentences)) for title, sentences in context]


def _join_sentences(sentences: Any) -> str:
    """The text of a passage, with one space between sentences.

    Sentences of HotpotQA begin with a space, those of 2WikiMultiHopQA do not.
    """
    parts = [sentences] if isinstance(sentences, str) else [str(sentence) for sentence in sentences]
    return re.sub(r"[ \t]+", " ", " ".join(parts)).strip()


def read_hipporag(folder: Path, name: str = "") -> Dataset:
    """`NAME.json` and `NAME_corpus.json` [{title, text, idx?}], where NAME begins with `name`.

    Gold passages come from `supporting_facts` with `context`, from `contexts`, or from `paragraphs`. The reader finds
    them in the corpus by title and text, whatever their white space. Answers come from `answer`, `gold_ans`,
    `reference` or `obj` with `possible_answers` and `o_aliases`, and from `answer_aliases`. Raises ReadingError for
    gold outside the corpus.
    """
    corpus_file = find_file(folder, f"{name}*_corpus.json")
    stem = corpus_file.name.removesuffix("_corpus.json")
    corpus = Corpus(corpus_file)
    ids: dict[tuple[str, str], str] = {}
    for number, record in enumerate(read_records(corpus_file)):
        title, text = record.text("title"), record.text("text", "paragraph_text")
        idx = record.find("idx")
        ids.setdefault(_join_words(title, text), corpus.add(text, title=title, id=str(number if idx is None else idx)))
    rows = read_records(find_file(corpus_file.parent, f"{stem}.json"))
    return corpus.make_dataset(
        stem, (_make_wiki_item(record, str(number), ids) for number, record in enumerate(rows, 1))
    )


def _make_wiki_item(record: Record, number: str, ids: dict[tuple[str, str], str]) -> Item:
    gold = [passage for passage, is_gold in _read_passages(record) if is_gold]
    for title, text in gold:
        if _join_words(title, text) not in ids:
            raise record.make_error(
                f"the gold passage {title!r} is not in the corpus: give the corpus of this question file"
            )
    return Item(
        id=str(record.find("id", "_id") or number),
        question=Question(text=record.text("question")),
        answers=_read_answers(record),
        supporting=tuple(dict.fromkeys(ids[_join_words(title, text)] for title, text in gold)),
        slices=record.slices("type", "level") | _read_hops(record),
    )


def _read_answers(record: Record) -> tuple[str, ...]:
    texts = record.texts("answer", "gold_ans", "reference", "obj")
    for name in ("possible_answers", "o_aliases", "answer_aliases"):
        if record.find(name) is not None:
            texts += tuple(alias for text in record.texts(name) for alias in _parse_aliases(record, name, text))
    return tuple(dict.fromkeys(texts))


def _parse_aliases(record: Record, name: str, text: str) -> list[str]:
    """The aliases in a text; PopQA writes a list of aliases as JSON inside a text."""
    if not (text.startswith('["') and text.endswith('"]')):
        return [text]
    try:
        return [str(alias) for alias in json.loads(text)]
    except json.JSONDecodeError as error:
        raise record.make_wrong_field_error(name, text, "a list of texts in JSON") from error


def _join_words(title: str, text: str) -> tuple[str, str]:
    return "".join(title.split()), "".join(text.split())


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
    return corpus.make_dataset(
        "multihop-rag", (_make_news_item(record, str(number), ids, corpus) for number, record in enumerate(rows, 1))
    )


def _make_news_item(record: Record, id: str, ids: dict[str, str], corpus: Corpus) -> Item:
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
