"""JSON by records, exports of chats by messages, YAML."""

import json

import pytest

from tomewise.reading.formats import find_format, load_reader
from tomewise.types.place import describe_place

RECORDS = {
    "a list": ([{"name": "Zoë", "tags": ["a", "b"], "at": {"town": "H", "zip": None}}, {"name": "Ü"}],
               "name: Zoë; tags: a, b; at.town: H; at.zip: null\n\nname: Ü"),
    "a list in an object": ({"count": 2, "data": [{"a": 1}, {"a": 2, "of": [{"sku": "q"}, {"sku": "r"}]}]},
                            "count: 2\n\n# data\n\na: 1\n\na: 2; of: sku: q; of: sku: r"),
    "objects by their names": ({"u1": {"n": "A"}, "u2": {"n": "B"}}, "u1.n: A\n\nu2.n: B"),
    "deep lists": ({"reply": {"ok": True, "docs": [{"a": 1}]}}, "# reply\n\nok: true\n\n# docs\n\na: 1"),
    "a long record": ([{"a": "x" * 200, "b": "y" * 200}], f"a: {'x' * 200}\nb: {'y' * 200}"),
    "words": (["x", "y"], "x, y"),
    "articles, which are no chat": ([{"author": "X", "date": "2024", "title": "T", "text": "t"}],
                                    "author: X; date: 2024; title: T; text: t"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), RECORDS.values(), ids=RECORDS)
def test_each_record_is_a_paragraph_with_its_letters(value, expected, read_document):
    assert read_document("a.json", json.dumps(value)).text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2}', "a: 1; a (2): 2"),
        ('{"n": 1.10, "id": 12345678901234567890}', "n: 1.10; id: 12345678901234567890"),
        ('{"a": 1,} // cut', '{"a": 1,} // cut'),
    ],
    ids=["a name twice", "numbers as written", "no JSON"],
)
def test_nothing_of_the_file_is_lost(text, expected, read_document):
    assert read_document("a.json", text).text == expected


GPT = {
    "title": "Trip",
    "current_node": "c",
    "mapping": {
        "a": {"message": None, "parent": None},
        "b": {
            "message": {"author": {"role": "user"}, "create_time": 1709287261.5, "content": {"parts": ["Where?"]}},
            "parent": "a",
        },
        "c": {
            "message": {"author": {"role": "assistant"}, "create_time": 1709287322, "content": {"parts": ["There."]}},
            "parent": "b",
        },
        "x": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["Dropped."]}}, "parent": "b"},
    },
}
CLAUDE = {
    "name": "Trip",
    "chat_messages": [
        {"sender": "user", "text": "Where?", "created_at": "2024-03-01T10:01:00.123456Z"},
        {"sender": "assistant", "content": [{"type": "text", "text": "There."}], "created_at": "2024-03-01T10:02:00Z"},
    ],
}
TELEGRAM = {
    "name": "Trip",
    "type": "private_group",
    "messages": [
        {
            "type": "message",
            "date": "2024-03-01T10:01:00",
            "from": "user",
            "text": ["Wh", {"type": "b", "text": "ere?"}],
        },
        {"type": "message", "date": "2024-03-01T10:02:00", "from": "assistant", "text": "There."},
    ],
}
MESSENGER = {
    "title": "Trip",
    "messages": [
        {"sender_name": "user", "timestamp_ms": 1709287261000, "content": "Where?"},
        {"sender_name": "assistant", "timestamp_ms": 1709287322000, "content": "There."},
    ],
}


@pytest.mark.parametrize("chat", [GPT, [CLAUDE], TELEGRAM, {"chats": {"list": [TELEGRAM]}}, MESSENGER])
def test_messages_have_their_speakers_and_times(chat, read_document):
    document = read_document("a.json", json.dumps(chat))
    assert document.title == "Trip"
    assert document.text == "[2024-03-01 10:01] user: Where?\n\n[2024-03-01 10:02] assistant: There."
    assert [describe_place(place) for _, place in document.marks] == [
        "2024-03-01 10:01, user",
        "2024-03-01 10:02, assistant",
    ]


def test_several_chats_of_a_file_are_several_documents(tmp_path):
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([CLAUDE, {**CLAUDE, "name": "Home"}]))
    documents = list(load_reader(find_format(".json"))(path))
    assert [(each.id, each.title) for each in documents] == [(f"{path}#1", "Trip"), (f"{path}#2", "Home")]


def test_an_export_of_slack_names_its_users_and_files(tmp_path, read_document):
    (tmp_path / "general").mkdir()
    (tmp_path / "users.json").write_text(
        json.dumps([{"id": "U1", "profile": {"real_name": "Mia Q"}}, {"id": "U2", "name": "theo"}])
    )
    messages = [
        {"type": "message", "user": "U1", "text": "Hi <@U2>", "ts": "1709287261.0001"},
        {"type": "message", "user": "U2", "text": "", "ts": "1709287300.1", "files": [{"name": "plan.pdf"}]},
        {"type": "message", "user": "U2", "text": "", "ts": "1709287301.1"},
    ]
    document = read_document("general/1.json", json.dumps(messages))
    assert document.title == "general"
    assert document.text == "[2024-03-01 10:01] Mia Q: Hi @theo\n\n[2024-03-01 10:01] theo: [not read: plan.pdf]"
    assert document.metadata["left_out"] == ["1 message without text"]


def test_escapes_of_yaml_are_read_and_its_items_are_paragraphs(read_document):
    text = '# who\npeople:\n  - name: "Zo\\u00eb \\ud83d\\ude00"\n    age: 3\n  - name: Bo\n    path: C:\\u00eb\n'
    assert read_document("a.yaml", text).text == (
        '# who\npeople:\n\n  - name: "Zoë 😀"\n    age: 3\n\n  - name: Bo\n    path: C:\\u00eb\n'
    )


def test_people_with_roles_are_no_chat(read_document):
    people = [{"name": "Ada", "role": "user", "email": "a@b.cd"}, {"name": "Bo", "role": "developer"}]
    assert read_document("a.json", json.dumps(people)).text == (
        "name: Ada; role: user; email: a@b.cd\n\nname: Bo; role: developer"
    )


def test_a_piece_of_a_message_without_text_is_named(read_document):
    pieces = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "a.png"}}]
    document = read_document("a.json", json.dumps([{"role": "user", "content": pieces}]))
    assert document.text == "user: Look:\n[not read: image_url]"


def test_an_attachment_of_a_message_is_named(read_document):
    message = {"sender": "human", "text": "Read", "attachments": [{"file_name": "a.pdf", "extracted_content": "x"}]}
    document = read_document("a.json", json.dumps({"chat_messages": [message]}))
    assert document.text == "human: Read\n[not read: a.pdf]"
