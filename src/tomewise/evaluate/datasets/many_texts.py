"""Questions on a corpus of many texts: our own layout, multi-hop questions, whole domains, summaries of meetings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from tomewise.errors import ReadingError
from tomewise.evaluate.datasets.data_rows import Record, find_file, find_files, read_records, read_text
from tomewise.evaluate.datasets.row_layout import Corpus, Layout, find_wording, read_correct_letter, read_options
from tomewise.evaluate.items import Dataset, Span
from tomewise.reading.places import join_turns, mark_headings
from tomewise.sample import QUESTIONS, STORY

_TitledText = tuple[str, str]  # the title and the text of a passage


# ---------------------------------------------------------------- our own layout

_KNOWN = frozenset({"id", "question", "answers", "options", "correct", "supporting"})


def _read_plain(folder: Path) -> Dataset:
    """`corpus.jsonl` {id, title?, text}; `questions.jsonl` {id, question, answers, options?, correct?, supporting?}.

    Ids are compared as text. `correct` (a letter or a wording) may replace `answers`. Other keys with text or whole
    numbers are slices.
    """
    corpus_file, questions = find_file(folder, "corpus.jsonl"), find_file(folder, "questions.jsonl")
    corpus = Corpus(corpus_file)
    for record in read_records(corpus_file):
        corpus.add(record.text("text"), title=str(record.find("title") or ""), id=record.text("id"))
    openie = folder / "openie.jsonl"
    rows = map(_add_gold, read_records(questions))
    return Layout(name=folder.resolve().name).make_dataset(corpus, rows, openie if openie.is_file() else None)


def _add_gold(record: Record) -> Record:
    options = read_options(record, "options") if record.find("options") else ()
    correct = read_correct_letter(record, options, "correct answers") if options else None
    has_answers = record.find("answers") is not None or correct is None
    return record.add(
        id=record.text("id"),
        options=options,
        correct=correct,
        answers=record.texts("answers") if has_answers else find_wording(options, correct),
        supporting=record.find_texts("supporting"),
        slices=record.slices(key for key in record.values if key not in _KNOWN),
    )


def _read_sample(_folder: Path) -> Dataset:
    """The story that comes with Tomewise, and its questions; their supporting excerpts become spans. Needs no folder.

    Raises ReadingError when the story lacks an excerpt: then the installation is damaged.
    """
    corpus = Corpus(STORY)
    text = read_text(STORY)
    story = corpus.add(text, id=STORY.name, marks=mark_headings(text))
    rows = (_add_excerpts(_add_gold(record), story, corpus) for record in read_records(QUESTIONS))
    return Layout(name="sample", slices="type").make_dataset(corpus, rows)


def _add_excerpts(record: Record, story: str, corpus: Corpus) -> Record:
    spans = corpus.find_spans(story, record.added["supporting"])
    if not spans:
        id = record.added["id"]
        raise ReadingError(f"{STORY} lacks an excerpt that question {id!r} rests on: install Tomewise again")
    return record.add(spans=spans, supporting=(), slices=record.slices(["type"]))


# ---------------------------------------------------------------- multi-hop questions on passages of Wikipedia


def _read_multihop(folder: Path, name: str, begins: str) -> Dataset:
    """A dataset that HippoRAG publishes too: in HippoRAG's layout if it has a corpus file, else in its own.

    Its own has rows {id or _id, question, answer, answer_aliases?} with the passages of each question. MuSiQue (Trivedi
    et al. 2022) has `paragraphs` [{title, paragraph_text, is_supporting}]. HotpotQA (Yang et al. 2018) and
    2WikiMultiHopQA (Ho et al. 2020) have `context` [[title, sentences]] and `supporting_facts` [[title, sentence
    number]]. The copies on Hugging Face have mappings of lists in place of these lists of pairs. The corpus holds the
    passages of all questions, each once, as in HippoRAG and later papers.
    """
    if folder.is_dir() and any(folder.glob(f"{begins}*_corpus.json")):
        return _read_hipporag(folder, begins)
    patterns = "*dev*.json* *validation*.parquet *.jsonl *.json *.parquet"
    layout = Layout(name=name, files=patterns, rows=_read_wiki_questions, form="short", slices="type level hops")
    return layout.read(folder)


def _read_wiki_questions(path: Path, corpus: Corpus) -> Iterator[Record]:
    for record in read_records(path):
        ids = [(corpus.add(text, title=title), gold) for (title, text), gold in _read_passages(record)]
        yield record.add(
            id=record.text("id _id"),
            answers=tuple(dict.fromkeys([*record.texts("answer"), *record.find_texts("answer_aliases")])),
            supporting=tuple(dict.fromkeys(id for id, gold in ids if gold)),
            hops=_count_hops(record),
        )


def _read_passages(record: Record) -> list[tuple[_TitledText, bool]]:
    """Every passage of a question, and whether it is gold.

    Without `supporting_facts`, a passage is gold unless its `is_supporting` is false.
    """
    if record.find("supporting_facts") is not None:
        facts = _read_pairs(record, "supporting_facts", ("title", "sent_id"), "sentence number")
        gold_titles = {str(title) for title, _ in facts}
        context = _read_pairs(record, "context", ("title", "sentences"), "sentences")
        return [((str(title), _join_sentences(parts)), str(title) in gold_titles) for title, parts in context]
    rows = record.rows("paragraphs contexts supporting_facts")
    return [
        ((row.text("title"), row.text("text paragraph_text")), row.find("is_supporting") is not False) for row in rows
    ]


def _count_hops(record: Record) -> int | None:
    """The number of hops of a question, from MuSiQue's id or else from the decomposition, if it has one."""
    if match := re.match(r"(\d)hop", str(record.find("id") or "")):
        return int(match.group(1))
    decomposition = record.find("question_decomposition")
    return len(decomposition) if isinstance(decomposition, list) else None


def _read_pairs(record: Record, name: str, keys: tuple[str, str], second: str) -> list[tuple[Any, Any]]:
    """The pairs of a title and something else: a list of them, or a mapping of two lists, as copies have it."""
    value = record.take(name)
    lists = [value.get(key) for key in keys] if isinstance(value, dict) else []
    pairs = list(zip(*lists, strict=False)) if lists and all(isinstance(part, list) for part in lists) else value
    if not isinstance(pairs, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise record.make_wrong_field_error(name, value, f"a list of [title, {second}]")
    return pairs


def _join_sentences(sentences: Any) -> str:
    """The text of a passage, with one space between sentences.

    Sentences of HotpotQA begin with a space, those of 2WikiMultiHopQA do not.
    """
    parts = [sentences] if isinstance(sentences, str) else [str(sentence) for sentence in sentences]
    return re.sub(r"[ \t]+", " ", " ".join(parts)).strip()


def _read_hipporag(folder: Path, name: str = "") -> Dataset:
    """`NAME.json` and `NAME_corpus.json` [{title, text, idx?}], where NAME begins with `name`.

    Gold passages come from `supporting_facts` with `context`, from `contexts`, or from `paragraphs`. The reader finds
    them in the corpus by title and text, whatever their white space. Answers come from `answer`, `gold_ans`,
    `reference` or `obj` with `possible_answers` and `o_aliases`, and from `answer_aliases`. Raises ReadingError for
    gold outside the corpus.
    """
    corpus_file = find_file(folder, f"{name}*_corpus.json")
    stem = corpus_file.name.removesuffix("_corpus.json")
    corpus = Corpus(corpus_file)
    ids: dict[_TitledText, str] = {}
    for number, record in enumerate(read_records(corpus_file)):
        title, text = record.text("title"), record.text("text paragraph_text")
        idx = record.find("idx")
        ids.setdefault(_join_words(title, text), corpus.add(text, title=title, id=str(number if idx is None else idx)))
    rows = read_records(find_file(corpus_file.parent, f"{stem}.json"))
    layout = Layout(name=stem, form="short", slices="type level hops")
    return layout.make_dataset(corpus, (_add_wiki_gold(record, number, ids) for number, record in enumerate(rows, 1)))


def _add_wiki_gold(record: Record, number: int, ids: Mapping[_TitledText, str]) -> Record:
    gold = [passage for passage, is_gold in _read_passages(record) if is_gold]
    for title, text in gold:
        if _join_words(title, text) not in ids:
            raise record.make_error(
                f"the gold passage {title!r} is not in the corpus: give the corpus of this question file"
            )
    return record.add(
        id=record.find("id _id") or number,
        answers=_read_answers(record),
        supporting=tuple(dict.fromkeys(ids[_join_words(title, text)] for title, text in gold)),
        hops=_count_hops(record),
    )


def _read_answers(record: Record) -> tuple[str, ...]:
    texts = record.texts("answer gold_ans reference obj")
    for name in ("possible_answers", "o_aliases", "answer_aliases"):
        texts += tuple(alias for text in record.find_texts(name) for alias in _parse_aliases(record, name, text))
    return tuple(dict.fromkeys(texts))


def _parse_aliases(record: Record, name: str, text: str) -> list[str]:
    """The aliases in a text; PopQA writes a list of aliases as JSON inside a text."""
    if not (text.startswith('["') and text.endswith('"]')):
        return [text]
    try:
        return [str(alias) for alias in json.loads(text)]
    except json.JSONDecodeError as error:
        raise record.make_wrong_field_error(name, text, "a list of texts in JSON") from error


def _join_words(title: str, text: str) -> _TitledText:
    return "".join(title.split()), "".join(text.split())


# ---------------------------------------------------------------- news, novels and guidelines


def _read_multihop_rag(folder: Path) -> Dataset:
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
        ids[title] = ids[url or title] = corpus.add(record.text("body text"), title=title, id=url or title)
    rows = read_records(find_file(folder, "MultiHopRAG.json*", "**/MultiHopRAG.json*"))
    layout = Layout(name="multihop-rag", id="", question="query", form="short")
    return layout.make_dataset(corpus, (_add_articles(record, ids, corpus) for record in rows))


def _add_articles(record: Record, ids: Mapping[str, str], corpus: Corpus) -> Record:
    evidence = record.rows("evidence_list")
    articles = [_find_article(row, ids) for row in evidence]
    by_fact = [corpus.find_spans(article, [row.text("fact")]) for article, row in zip(articles, evidence, strict=True)]
    return record.add(
        supporting=tuple(dict.fromkeys(articles)),
        spans=tuple(dict.fromkeys(span for spans in by_fact for span in spans)) if all(by_fact) else (),
        slices={"type": record.text("question_type"), "hops": len(evidence)},
    )


def _find_article(evidence: Record, ids: Mapping[str, str]) -> str:
    """The id of the article that holds the evidence, by its url, else by its title. Raises ReadingError."""
    names = [str(evidence.find(field)) for field in ("url", "title") if evidence.find(field)]
    article = next((ids[name] for name in names if name in ids), None)
    if article is None:
        raise evidence.make_error(
            f"the corpus has no article {' or '.join(names) or 'without url and title'}: give the corpus of this file"
        )
    return article


def _read_graphrag_bench(folder: Path) -> Dataset:
    """GraphRAG-Bench (Xiang et al. 2025): questions of four types on novels and on medical guidelines.

    `Corpus/*.json` {corpus_name, context} and `Questions/*.json` {id, source, question, answer, question_type, ...}.
    Sources share ids, so the id of an item holds source and id. `evidence` becomes spans if its source contains all of
    it word for word. Raises ReadingError for a source without a corpus.
    """
    corpus = Corpus(folder)
    for path in find_files(folder, "Datasets/Corpus/*.json", "Corpus/*.json", "*corpus*.json"):
        for record in read_records(path):
            name = record.text("corpus_name source id")
            corpus.add(record.text("context text"), id=name)
    questions = find_files(folder, "Datasets/Questions/*.json", "Questions/*.json", "*question*.json")
    rows = [record for path in questions for record in read_records(path)]
    layout = Layout(name="graphrag-bench", answers="answer ground_truth")
    return layout.make_dataset(corpus, (_add_source(record, corpus) for record in rows))


def _add_source(record: Record, corpus: Corpus) -> Record:
    source = record.text("source")
    if not corpus.has(source):
        raise record.make_error(f"no corpus has the corpus_name {source!r}: add that corpus")
    return record.add(
        id=f"{source}/{record.text('id')}",
        spans=corpus.find_spans(source, record.find_texts("evidence")),
        documents=(source,),
        slices={"type": record.text("question_type"), "source": source},
    )


# ---------------------------------------------------------------- summaries


def _ask_for_summaries(read: Callable[[Path], Dataset], folder: Path) -> Dataset:
    """The dataset; each question asks for a summary of so many words as references have on average, in tens."""
    dataset = read(folder)
    lengths = [len(answer.split()) for item in dataset.items for answer in item.answers]
    words = max(1, round(sum(lengths) / max(1, len(lengths)) / 10)) * 10
    asked = f"Write a summary of about {words} words, in connected sentences."
    items = (
        replace(item, question=replace(item.question, instructions=asked, form="summary")) for item in dataset.items
    )
    return replace(dataset, items=tuple(items))


def _read_odsum(folder: Path) -> Dataset:
    """ODSum (Zhou et al. 2023): summaries that answer a query over many stories or meetings.

    The folder `raw` (every document, `queries.json` or `.jsonl`), or one of the settings: `test.json` with Articles.
    Raw meetings {query, answer, meetings_list} name their gold documents, which are the stems of `Documents/*.txt`. Raw
    stories {question_text, responses: [{response_text}], title} do so by title if a document has it. In a setting
    {Query, Summary or Summary_1..4, Article}, the question is asked over its own articles.
    """
    if not folder.is_dir() or not (queries := sorted(folder.glob("queries.json*"))):
        return Layout(name="odsum", files="test.json *.json", rows=_read_setting, id="", question="Query").read(folder)
    corpus, titles = Corpus(folder), dict[str, str]()
    for path in find_files(folder, "[Dd]ocuments/*"):
        if path.suffix == ".txt":
            titles[path.stem] = corpus.add(read_text(path), id=path.stem)
            continue
        for record in read_records(path):
            title = str(record.find("title metadata.title") or "")
            id = corpus.add(record.text("document text article story"), title=title)
            titles.setdefault(title or id, id)
    rows = read_records(queries[0])
    # The file of meetings maps numbers to queries; that of stories is a list.
    if len(rows) == 1 and all(isinstance(value, dict) for value in rows[0].values.values()):
        rows = [rows[0].make_inner(f"query {key}", part) for key, part in rows[0].values.items()]
    layout = Layout(name="odsum", id="", question="query question_text")
    return layout.make_dataset(corpus, (_add_summaries(record, titles) for record in rows))


def _add_summaries(record: Record, titles: Mapping[str, str]) -> Record:
    responses = record.rows("responses") if record.find("responses") is not None else []
    meetings = record.find_texts("meetings_list")
    if unknown := [name for name in meetings if name not in titles]:
        raise record.make_error(f"the meeting {unknown[0]!r} is not among the documents: add {unknown[0]}.txt")
    titles_of_gold = meetings or tuple(title for title in (str(record.find("title")),) if title in titles)
    return record.add(
        answers=tuple(row.text("response_text") for row in responses) or record.texts("answer responses"),
        supporting=tuple(dict.fromkeys(titles[name] for name in titles_of_gold)),
    )


def _read_setting(path: Path, corpus: Corpus) -> Iterator[Record]:
    for record in read_records(path):
        summaries = [name for name in ("Summary_1", "Summary_2", "Summary_3", "Summary_4") if record.find(name)]
        articles = [article.strip() for article in record.text("Article").split("<doc-sep>")]
        yield record.add(
            answers=tuple(record.text(name) for name in summaries) or (record.text("Summary Summary_1"),),
            documents=tuple(dict.fromkeys(corpus.add(article) for article in articles if article)),
        )


def _read_meetings(path: Path, corpus: Corpus) -> Iterator[Record]:
    rows = read_records(path)
    for number, record in enumerate(rows, 1):
        meeting = f"{path.stem}-{number}" if len(rows) > 1 else path.stem
        spoken = [
            {field: turn.text(field) for field in ("speaker", "content")} for turn in record.rows("meeting_transcripts")
        ]
        text, marks = join_turns(spoken)
        corpus.add(text, id=meeting, marks=marks)
        places = list(pairwise([*(start for start, _ in marks), len(text) + 1]))
        for kind in ("general", "specific"):
            for position, query in enumerate(record.rows(f"{kind}_query_list"), 1):
                yield query.add(
                    id=f"{meeting}/{kind}-{position}",
                    spans=_read_turns(query, meeting, places) if kind == "specific" else (),
                    documents=(meeting,),
                    slices={"type": kind, "turns": len(spoken)},
                )


def _read_turns(record: Record, meeting: str, places: list[tuple[int, int]]) -> tuple[Span, ...]:
    pairs = record.take("relevant_text_span")
    if not isinstance(pairs, list):
        raise record.make_wrong_field_error("relevant_text_span", pairs, "a list of pairs of turns")
    return tuple(_make_span(record, pair, meeting, places) for pair in pairs)


def _make_span(record: Record, pair: Any, meeting: str, places: list[tuple[int, int]]) -> Span:
    try:
        first, last = (int(turn) for turn in pair)
    except (TypeError, ValueError):
        first = last = -1
    if not 0 <= first <= last < len(places):
        raise record.make_wrong_field_error("relevant_text_span", pair, f"[first, last] turn below {len(places)}")
    return Span(document=meeting, start=places[first][0], end=places[last][1] - 1)


_QMSUM = Layout(
    name="qmsum",
    files="test.jsonl test/*.json *.jsonl *.json",
    several=True,
    rows=_read_meetings,
    question="query",
)
"""QMSum (Zhong et al. 2021): queries on meeting transcripts, with reference summaries and the turns behind them.

A meeting per row of `test.jsonl` (or of `*.jsonl`), or per file `*.json`, in QMSum's own form. `tomewise.reading`
writes out the turns. The turns from first to last of `relevant_text_span` (counted from 0, both included) become a
span of characters. General queries are about the whole meeting and have no spans.
"""

_TURN = re.compile(r"D(\d+):0*([1-9]\d*)")


def _read_conversations(path: Path, corpus: Corpus) -> Iterator[Record]:
    for number, record in enumerate(read_records(path), 1):
        name = str(record.find("sample_id") or number)
        talk = record.make_inner("conversation", record.take("conversation"))
        turns: dict[tuple[str, str], Span] = {}
        for session in sorted(
            (key for key in talk.values if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])
        ):
            spoken = talk.rows(session)
            text, marks = join_turns(
                [{"speaker": turn.text("speaker"), "content": _write_turn(turn)} for turn in spoken]
            )
            id = corpus.add(
                text, id=f"{name}/{session}", title=str(talk.find(f"{session}_date_time") or ""), marks=marks
            )
            places = pairwise([*(start for start, _ in marks), len(text) + 1])
            for turn, (start, end) in zip(spoken, places, strict=True):
                if found := _TURN.fullmatch(turn.text("dia_id")):
                    turns[found[1], found[2]] = Span(document=id, start=start, end=end - 1)
        sessions = tuple(dict.fromkeys(span.document for span in turns.values()))
        for position, question in enumerate(record.rows("qa"), 1):
            evidence = _TURN.findall(" ".join(question.find_texts("evidence")))
            yield question.add(
                id=f"{name}/{position}",
                spans=tuple(turns[turn] for turn in dict.fromkeys(evidence)) if turns.keys() >= set(evidence) else (),
                documents=sessions,
                answers=question.find_texts("answer"),
            )


def _write_turn(turn: Record) -> str:
    caption = turn.find("blip_caption")
    return f"{turn.text('text')} [shows {caption}]" if caption else turn.text("text")


_LOCOMO = Layout(
    name="locomo", files="locomo10.json locomo*.json *.json", rows=_read_conversations, id="id", slices="category"
)
"""LoCoMo (Maharana et al. 2024): questions on long conversations, and the turns behind each.

A document per session, with its date as title and its turns as written out for QMSum, what a picture shows in square
brackets. `evidence` names turns ("D1:3"), which become spans unless one of them is missing; 1,979 of 1,985 questions
have them. Questions of category 5 have no answer in the text.
"""


MANY_TEXTS: Mapping[str, Callable[[Path], Dataset]] = {
    "plain": _read_plain,
    "sample": _read_sample,
    "hipporag": _read_hipporag,
    "nq": partial(_read_hipporag, name="nq"),
    "popqa": partial(_read_hipporag, name="popqa"),
    "musique": partial(_read_multihop, name="musique", begins="musique"),
    "2wikimultihopqa": partial(_read_multihop, name="2wikimultihopqa", begins="2wiki"),
    "hotpotqa": partial(_read_multihop, name="hotpotqa", begins="hotpot"),
    "multihop-rag": _read_multihop_rag,
    "graphrag-bench": _read_graphrag_bench,
    "odsum": partial(_ask_for_summaries, _read_odsum),
    "locomo": _LOCOMO.read,
    "qmsum": partial(_ask_for_summaries, _QMSUM.read),
}
"""The readers by the name of the layout."""
