"""Replies that fit their type but are useless: they are repaired or refused, never remembered. Real replies pass."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.language.openai_server import OpenAIServer, reply_with
from tests.texts import SHARED, needs_shared

from tomewise.errors import BadReply, UnknownName
from tomewise.language.cached import Cache
from tomewise.language.chat import ChatModel
from tomewise.language.memory_faults import find_fault, find_fault_in_names, list_strings
from tomewise.language.prompts import Prompts
from tomewise.language.roles import EXTRACT_FACTS, GIST, NARRATE, SUMMARISE, GistIn
from tomewise.language.wrapped import Wrapped
from tomewise.store.lookups import read_vectors
from tomewise.store.records import BUILDS
from tomewise.testing import ScriptedModel
from tomewise.tome.tome import Tome
from tomewise.types import Document

PASSAGE = (
    "The keeper lit the lamp at nine and walked down to the shore, where the boats had come in with the tide. Nobody "
    "spoke of the storm, or of the two men who had not returned. She counted the nets twice and went home, for there "
    "was nothing left to do before the morning but wait and listen to the wind in the chimney."
)
CHINESE = (
    "红楼梦是中国古典四大名著之一，作者曹雪芹。小说以贾、史、王、薛四大家族的兴衰为背景，以贾宝玉与林黛玉的爱情悲剧为主线，"
    "描写了一批举止见识出于须眉之上的闺阁佳人的人生百态。"
)
JAPANESE = "吾輩は猫である。名前はまだ無い。薄暗いじめじめした所で泣いていた事だけは記憶している。"
GARBAGE = {
    "an excuse": "I'm sorry, but I can't assist with that.",
    "a curly excuse": "I’m sorry, I cannot help with this request.",
    "an introduction": "As an AI language model, I do not have access to the passage.",
    "a Spanish excuse": "Lo siento, no puedo ayudar con eso.",
    "the prompt's dots": "...",
    "a word of the prompt": "<memory>",
    "a word of the schema": "string",
    "a letter": "x",
    "a megabyte of a letter": "x" * 1_000_000,
    "a control character": "The keeper lit the \x00 lamp at nine and walked down to the shore.",
    "a loop": "the lamp " * 200,
    "another text": "The quick brown fox jumps over lazy dogs and zebras eat purple bananas.",
}


@pytest.mark.parametrize(
    ("text", "source"),
    [
        *(pytest.param(text, PASSAGE, id=name) for name, text in GARBAGE.items()),
        ("抱歉，我无法提供帮助。", CHINESE),  # words are not parted
        ("今天天气很好，我们去公园散步，非常开心。", CHINESE),
    ],
)
def test_garbage_is_found_out(text: str, source: str) -> None:
    assert find_fault(text, [source])


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("红楼梦由曹雪芹所作，讲述四大家族兴衰与宝玉黛玉的悲剧爱情。", CHINESE),
        ("Dream of the Red Chamber by Cao Xueqin tells of four families in decline.", CHINESE),
        ("名前のない猫が、薄暗い場所で生まれ泣いていたことを語る。", JAPANESE),
        ("一只没有名字的猫讲述自己出生在阴暗潮湿的地方。", JAPANESE),
        ("Der Wärter zündete um neun die Lampe an, ging zum Ufer hinunter und sprach nicht vom Sturm.", PASSAGE),
        ("Vartija sytytti lampun yhdeksältä ja käveli rantaan, jonne veneet olivat saapuneet.", PASSAGE),
        ("Хранитель зажёг лампу в девять часов и спустился к берегу.", PASSAGE),
        ("A lighthouse keeper finishes her evening duties while two fishermen stay missing after a storm.", PASSAGE),
        ("I could not help but ask.", "I could not help but ask. Nobody replied to me for a very long time."),
        ("I'm sorry, but I can't help you, said Tom.", 'Tom said: "I’m sorry, but I can’t help you." He left.'),
        ("(empty)", "* * *"),
        ("x = 1", "x = 1"),
    ],
)
def test_what_a_reader_may_write_passes(text: str, source: str) -> None:
    assert find_fault(text, [source]) is None


@pytest.mark.parametrize(
    ("names", "source", "is_fault"),
    [
        (["...", "subject", "relation", "object"], PASSAGE, True),
        (["I'm sorry, but I can't assist with that."], PASSAGE, True),
        (["the keeper", "the\x1b[2Jlamp"], PASSAGE, True),
        (["keeper"] * 100_000, PASSAGE, True),
        ([], PASSAGE, False),
        (["USB"], "Two types of charging port exist (USB).", False),
        (["曹雪芹"], CHINESE, False),
        (["Cao Xueqin"], CHINESE, False),
    ],
    ids=lambda value: str(value)[:20],
)
def test_names_from_nowhere_are_found_out_and_none_are_no_fault(names, source, is_fault) -> None:
    assert (find_fault_in_names(names, [source]) is not None) == is_fault


@needs_shared
def test_no_reply_of_a_strong_model_is_refused() -> None:
    rows = [json.loads(line) for line in (SHARED / "story" / "memory.jsonl").read_text().splitlines()]
    assert len(rows) == 194
    for row in rows:
        reply = row["reply"]
        text = reply.get("memory") or reply.get("summary")
        fault = find_fault(text, row["texts"]) if text else find_fault_in_names(list_strings(reply), row["texts"])
        assert fault is None, fault


@needs_shared
def test_no_published_extraction_is_refused() -> None:
    corpus = {row["id"]: row for row in map(json.loads, (SHARED / "musique" / "corpus.jsonl").read_text().splitlines())}
    for line in (SHARED / "musique" / "openie.jsonl").read_text().splitlines():
        row = json.loads(line)
        texts = [corpus[row["id"]]["title"], corpus[row["id"]]["text"]]
        assert find_fault_in_names(list_strings([row["entities"], row["triples"]]), texts) is None, row


# ---------------------------------------------------------------- the model is shown what is wrong, once


@pytest.mark.parametrize("role", [GIST, SUMMARISE, NARRATE, EXTRACT_FACTS], ids=lambda role: role.name)
async def test_a_model_is_shown_what_is_wrong_and_given_up_after_one_repair(role) -> None:
    given = {"text": PASSAGE, "texts": [PASSAGE], "name": "keeper"}
    excuse = "I'm sorry, but I can't assist with that."
    reply = json.dumps({"memory": excuse, "summary": excuse, "entities": [excuse]})
    with OpenAIServer(lambda _: reply_with(reply)) as server:
        model = ChatModel("openai:test", base_url=server.url)
        asked = {name: value for name, value in given.items() if name in role.input.model_fields}
        with pytest.raises(BadReply, match="excuses itself"):
            await model.ask(role, role.input(**asked))
        await model.close()
    assert len(server.requests) == 2
    assert "excuses itself" in server.prompts[1]


async def test_a_kept_reply_that_would_be_refused_is_asked_for_again_and_replaced(tome: Tome) -> None:
    given, good = GistIn(text=PASSAGE), {"memory": "The keeper lit the lamp at nine."}
    model, cache = ScriptedModel({"gist": [good]}), Cache(Prompts(), tome.store.calls)
    key = cache.make_key(model, GIST, given)
    await tome.store.calls.keep(key, role="gist", model="scripted", reply='{"notes": "", "memory": "..."}')
    assert (await Wrapped(model, cache).ask(GIST, given)).memory == good["memory"]
    assert "lamp" in (await tome.store.calls.get(key) or "")


# ---------------------------------------------------------------- what becomes of a tome


class Reader:
    """Plays the role `gist`: each reply has more marks than the one before, unless a test sets another `play`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.play: Callable[[GistIn], object] = self.write_marked

    def write_marked(self, given: GistIn) -> dict[str, str]:
        self.asked.append(given.text)
        return {"memory": given.text + "!" * len(self.asked)}


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def book(here: Path, reader: Reader) -> Iterator[Tome]:
    facts = {"entities": ["keeper"], "triples": []}
    model = ScriptedModel({"gist": lambda given: reader.play(given), "extract_facts": lambda _: facts})
    with Tome.open(here / "a.tome", embedder="hash", model=model) as made:
        made.add(*(Document(id=f"d{number}", text=f"The keeper lit {number} lamps at nine.") for number in range(3)))
        yield made


def list_gists(book: Tome) -> list[str]:
    return [node.text for node in book.store.nodes("gists").values()]


def test_garbage_is_recorded_as_failed_and_asked_for_by_the_next_build(book: Tome, reader: Reader) -> None:
    reader.play = lambda _: {"memory": "I'm sorry, but I can't assist with that."}
    (report,) = [layer for layer in book.build("cogitorag").layers if layer.layer == "gists"]
    assert len(report.failed) == 3
    assert list_gists(book) == []
    reader.play = reader.write_marked
    book.build("cogitorag")
    assert len(list_gists(book)) == 3
    assert book.store.notes(BUILDS)["gists"]["replies"] == {"refused": 3}


def test_what_was_repaired_and_refused_is_shown(command, here: Path) -> None:
    def play(request):
        lamps = [number for number in (7, 8, 9) if f"{number} lamps" in request["messages"][1]["content"]]
        bad = lamps == [8] or (lamps == [7] and len(request["messages"]) == 2)
        memory = "..." if bad else f"The keeper lit {lamps[0]} lamps at nine."
        return reply_with(json.dumps({"memory": memory, "entities": ["the keeper"]}))

    rows = [{"id": str(number), "text": f"The keeper lit {number} lamps at nine."} for number in (7, 8, 9)]
    (here / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert command("add", "a.jsonl", "-m", "memory.tome").code == 0
    with OpenAIServer(play) as server:
        words = ("--model", "openai:test", "--base-url", server.url)
        assert "failed for 1" in command("build", "-s", "cogitorag", *words).out
    assert json.loads(command("show", "--json").out)["replies"] == {"gists": {"refused": 1, "repaired": 1}}
    assert "gists: of the replies of the model 1 refused and 1 repaired" in command("show").out


def test_a_layer_or_a_passage_is_made_anew_and_no_other(book: Tome, reader: Reader) -> None:
    book.build("cogitorag")
    assert len(reader.asked) == 3
    before = set(list_gists(book))
    passages = {passage.id: passage for passage in book.store.passages().values()}
    wanted = next(iter(passages))
    book.build("cogitorag", again=wanted)
    assert reader.asked[3:] == [passages[wanted].text]
    assert len(before & set(list_gists(book))) == 2
    assert {passage.id: passage for passage in book.store.passages().values()} == passages
    assert len(read_vectors(book.store, "passages").keys) == 3
    assert book.store.lexical(passages[wanted].text, 1)
    book.build("cogitorag", again="gists")
    assert all(text.count("!") > 4 for text in list_gists(book))
    book.build("cogitorag")
    assert len(reader.asked) == 7
    with pytest.raises(UnknownName, match="not a layer of this system"):
        book.build("cogitorag", again="gist")


def test_a_build_anew_that_was_stopped_repeats_no_reply_and_uses_none_from_before(book: Tome, reader: Reader) -> None:
    book.build("cogitorag")
    # The first three replies are from before.
    reader.play = lambda given: KeyError("stopped") if len(reader.asked) == 5 else reader.write_marked(given)
    with pytest.raises(KeyError):
        book.build("cogitorag", again="gists")
    reader.play = reader.write_marked
    book.build("cogitorag")
    assert len(reader.asked) == 6
    assert all(text.count("!") > 3 for text in list_gists(book))


def test_a_failed_anew_does_not_bring_back_the_old_reply(book: Tome, reader: Reader) -> None:
    book.build("cogitorag")
    reader.play = lambda _: {"memory": "..."}
    book.build("cogitorag", again="gists")
    assert list_gists(book) == []
    with closing(sqlite3.connect(book.store.path)) as file:
        assert file.execute("SELECT count(*) FROM calls WHERE role = 'gist'").fetchone() == (0,)
