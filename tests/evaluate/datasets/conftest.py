"""A tiny dataset of our own in every layout: file name -> content (a list of rows, an object, or text)."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

Files = dict[str, Any]

STORY = "The keeper lit the lamp. The storm\ncame at nine. Nobody saw the boat."
CHOICE = {"question": "Who lit the lamp?", "options": ["The cook", "The keeper"]}
TURNS = [{"speaker": "Ada", "content": "Shall we start?"}, {"speaker": "Ben", "content": "Yes."}]
NOVELS = "[1] The keeper lit the lamp.\n[2] The storm came.\n[3] Nobody saw the boat."
WIKI = [
    {"title": "Oslo", "text": "Oslo lies in Norway. It is old."},
    {"title": "Bonn", "text": "Bonn is on the Rhine."},
]
HOTPOT_CONTEXT = [["Oslo", ["Oslo lies in Norway.", " It is old."]], ["Bonn", ["Bonn is on the Rhine."]]]
HOTPOT = {
    "_id": "h1",
    "question": "Where is Oslo?",
    "answer": "Norway",
    "type": "bridge",
    "level": "easy",
    "supporting_facts": [["Oslo", 0]],
    "context": HOTPOT_CONTEXT,
}
PARAGRAPHS = [
    {"idx": 0, "title": "Oslo", "paragraph_text": "Oslo lies in Norway. It is old.", "is_supporting": True},
    {"idx": 1, "title": "Bonn", "paragraph_text": "Bonn is on the Rhine.", "is_supporting": False},
]
MUSIQUE = {
    "id": "2hop__1_2",
    "question": "Where is Oslo?",
    "answer": "Norway",
    "answer_aliases": ["Kingdom of Norway"],
    "paragraphs": PARAGRAPHS,
}

LAYOUTS: dict[str, Files] = {
    "plain": {
        "corpus.jsonl": [{"id": 0, "title": "Oslo", "text": "Oslo lies in Norway."}, {"id": "b", "text": "Bonn."}],
        "questions.jsonl": [
            {"id": 7, "question": "Where?", "answers": ["Norway"], "supporting": [0], "hops": 2, "parts": [1]},
            {"id": "8", "options": ["x", "y"], "question": "Which?", "answers": ["y"]},
        ],
        "openie.jsonl": [{"id": 0, "entities": [], "triples": []}],
    },
    "narrativeqa": {
        "documents.csv": "document_id,set,kind\ns1,test,gutenberg\ns2,train,movie\n",
        "qaps.csv": "document_id,set,question,answer1,answer2\n"
        's1,test,"Who lit it, then?",keeper,the keeper\ns2,train,Why?,a,b\n',
        "tmp/s1.content": STORY,
    },
    "infinitebench-qa": {
        "longbook_qa_eng.jsonl": [
            {"id": 0, "context": STORY, "input": "Who?", "answer": ["keeper", "the keeper"], "options": []},
            {"id": 1, "context": STORY, "input": "When?", "answer": ["nine"], "options": []},
        ]
    },
    "infinitebench-mc": {
        "longbook_choice_eng.jsonl": [
            {"id": 3, "context": STORY, "input": "Who?", "answer": ["The keeper"], "options": CHOICE["options"]}
        ]
    },
    "longbench-v2": {
        "data.json": [
            {
                "_id": "x",
                "domain": "Single-Document QA",
                "length": "short",
                "question": "Who?",
                **{f"choice_{label}": f"man {label}" for label in "ABCD"},
                "answer": "C",
                "context": STORY,
            }
        ]
    },
    "helmet": {
        "infbench_choice_eng.json": {
            "data": [
                {
                    "context": STORY,
                    "question": "Who?",
                    "options": "A. The cook\nB. The keeper",
                    "answer": ["B", "B. The keeper"],
                }
            ]
        }
    },
    "detectiveqa": {
        "anno_data_en/human_anno/87.json": [
            {
                "novel_id": 87,
                "questions": [
                    {
                        **CHOICE,
                        "options": {"B": "The keeper", "A": "The cook"},
                        "answer": "B",
                        "clue_position": [1, 3, -1],
                    }
                ],
            }
        ],
        "novel_data_en/87-The Lamp.txt": NOVELS,
    },
    "hipporag": {
        "mixed_corpus.json": WIKI,
        "mixed.json": [
            HOTPOT,
            {**MUSIQUE, "id": "m", "paragraphs": [{**WIKI[0], "is_supporting": True}]},
            {"id": "n", "question": "?", "reference": ["Norway"], "contexts": [{**WIKI[1], "is_supporting": True}]},
            {
                "id": 4,
                "question": "?",
                "obj": "Norway",
                "possible_answers": '["Norway", "Norge"]',
                "paragraphs": [{**WIKI[0], "is_supporting": True}],
            },
        ],
    },
    "nq": {
        "nq_rear_corpus.json": [{**row, "idx": at + 10} for at, row in enumerate(WIKI)],
        "nq_rear.json": [{"question": "?", "reference": ["Norway"], "contexts": [{**WIKI[1], "is_supporting": True}]}],
    },
    "popqa": {
        "popqa_corpus.json": WIKI,
        "popqa.json": [{"id": 5, "question": "?", "obj": "Norway", "paragraphs": [{**WIKI[0], "is_supporting": True}]}],
    },
    "musique": {"musique_ans_v1.0_dev.jsonl": [MUSIQUE, {**MUSIQUE, "id": "3hop1__5"}]},
    "hotpotqa": {"hotpot_dev_distractor_v1.json": [HOTPOT]},
    "2wikimultihopqa": {"2wikimultihopqa_corpus.json": WIKI, "2wikimultihopqa.json": [HOTPOT]},
    "graphrag-bench": {
        "Datasets/Corpus/novel.json": [{"corpus_name": "Novel-1", "context": STORY}],
        "Datasets/Corpus/medical.json": {"corpus_name": "Medical", "context": "Rest helps."},
        "Datasets/Questions/novel_questions.json": [
            {
                "id": "q1",
                "source": "Novel-1",
                "question": "When?",
                "answer": "At nine.",
                "question_type": "Fact Retrieval",
                "evidence": ["The storm came at nine."],
            }
        ],
        "Datasets/Questions/medical_questions.json": [
            {
                "id": "q1",
                "source": "Medical",
                "question": "What helps?",
                "answer": "Rest.",
                "question_type": "Creative Generation",
                "evidence": "Sleep helps.",
            }
        ],
    },
    "nocha": {
        "data_sample.json": [
            {"book_title": "the_lamp", "claim": "The keeper lit it.", "type": "True", "index": 1, "length": 9},
            {"book_title": "the_lamp", "claim": "The cook lit it.", "type": False, "index": 1, "length": 9},
        ],
        "books/the_lamp.txt": STORY,
    },
    "prelude": {
        "prelude.jsonl": [
            {"id": 1, "book_name": "The Lamp", "char": "the keeper", "content": "He was at sea.", "label": "Contradict"}
        ],
        "The Lamp.txt": STORY,
    },
    "fables": {
        "FABLES.json": {
            "canary": "no training",
            "FABLES": {
                "The Lamp": {
                    "GPT-4": {
                        "summary": "...",
                        "claims": {
                            str(at): {"claim": f"claim {at}", "label": label, "evidence": [], "reason": []}
                            for at, label in enumerate(["Yes", "No", "PartialSupport", "Inapplicable"])
                        },
                    }
                }
            },
        },
        "books/The Lamp.txt": STORY,
    },
    "novelqa": {
        "Data/B1.json": {
            "Q1": {
                "Question": "Who?",
                "Options": {"A": "The cook", "B": "The keeper", "C": None},
                "Aspect": "character",
                "Complexity": "sh",
                "Gold": "B",
                "Answer": "the old keeper",
            }
        },
        "Data/B2.json": [
            {"QID": "Q2", "Question": "When?", "Options": {"A": "x", "B": "y"}, "Aspect": "times", "Complex": "mh"}
        ],
        "Books/B1.txt": STORY,
        "Books/B2.txt": "Another.",
    },
    "qmsum": {
        "test.jsonl": [
            {
                "meeting_transcripts": TURNS,
                "general_query_list": [{"query": "Summarize.", "answer": "They start."}],
                "specific_query_list": [{"query": "Ben?", "answer": "Agrees.", "relevant_text_span": [["1", "1"]]}],
            },
            {"meeting_transcripts": TURNS, "general_query_list": [], "specific_query_list": []},
        ]
    },
    "multihop-rag": {
        "corpus.json": [
            {"title": "Rain", "body": "It rained on Monday in Ghent.", "url": "u/rain"},
            {"title": "Sun", "body": "It shone on Tuesday.", "url": "u/sun"},
        ],
        "MultiHopRAG.json": [
            {
                "query": "Which came first?",
                "answer": "rain",
                "question_type": "temporal_query",
                "evidence_list": [
                    {"title": "Rain", "url": "u/rain", "fact": "rained on Monday"},
                    {"title": "Sun", "fact": "shone on Tuesday"},
                ],
            },
            {
                "query": "Snow?",
                "answer": "Insufficient information.",
                "question_type": "null_query",
                "evidence_list": [],
            },
        ],
    },
    "odsum": {
        "Documents/M1.txt": "Ada: Shall we start?",
        "Documents/M2.txt": "Ben: Yes.",
        "queries.json": {"0": {"query": "Did they start?", "answer": "They did.", "meetings_list": ["M2", "M1"]}},
    },
}

LAYOUTS["odsum stories"] = {
    "documents/test.jsonl": [{"title": "Lamp", "document": STORY}, {"document": "Untitled."}],
    "queries.jsonl": [
        {
            "question_text": "Who?",
            "title": "Lamp",
            "responses": [{"response_text": "The keeper."}, {"response_text": "A keeper."}],
        }
    ],
}

LAYOUTS["odsum setting"] = {
    "test.json": [
        {"Query": "Who?", "Summary_1": "One.", "Summary_2": "Two.", "Article": "First text. <doc-sep> Second."}
    ]
}

LAYOUTS["narrativeqa rows"] = {
    "test.jsonl": [
        {
            "document": {"id": "s1", "kind": "gutenberg", "text": STORY},
            "question": {"text": "Who lit it?"},
            "answers": [{"text": "keeper"}, {"text": "the keeper"}],
        }
    ]
}


def write(folder: Path, files: Files) -> Path:
    """Write the files and return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture
def publish(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes the files of a layout, after a change to a copy of them, and returns the folder."""

    def write_layout(layout: str, change: Callable[[Files], None] = lambda files: None) -> Path:
        files = deepcopy(LAYOUTS[layout])
        change(files)
        return write(tmp_path, files)

    return write_layout
