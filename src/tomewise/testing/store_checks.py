"""The checks of every store: one for each protocol of `store.contract`, and `check_store` with all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from tomewise.embedding.hash import HashEmbedder
from tomewise.errors import Locked, StoreError, UnknownName
from tomewise.store.contract import Calls, Store
from tomewise.store.export import export
from tomewise.store.lookups import (
    find_derived,
    read_edges,
    read_record,
    read_setting,
    read_sources,
    read_vectors,
)
from tomewise.store.records import BUILDS, PASSAGES, SESSIONS, SETTINGS, Found
from tomewise.store.rights import hold_session, work_alone
from tomewise.types import Condition, Document, Embedder, Node, Passage, Place, Scope, content_id

_EMBEDDER = HashEmbedder(16)
_GUEST = Node(id="guest", layer="groups", text="guest", sources=())
_GIST = Node(id="g", layer="gists", text="both", sources=(), data={"n": [1]})
_TEXTS = {"b": "A dog swam in the cold sea.", "a": "A cat sat on a mat.", "c": "A cat saw the sea and the boats."}


def check_store(make: Callable[[Path], Store], path: Path) -> None:
    """Check all protocols of a store, each on a new store. `make` opens or creates the store at a path beside `path`.

    Starts an event loop of its own for the calls.
    """
    checks = (check_texts, check_spaces, check_words, check_records, check_sessions, check_changes, check_transactions)
    stores = [make(path.with_name(f"{path.stem}-{check.__name__}{path.suffix}")) for check in checks]
    for check, store in zip(checks, stores, strict=True):
        check(store)
    again = make(path.with_name(f"{path.stem}-{check_texts.__name__}{path.suffix}"))
    assert list(export(again)) == list(export(stores[0])), "another connection must see what was committed"
    asyncio.run(check_calls(stores[0].calls))
    stores[0].close()
    with expect_error(StoreError, "a closed store must raise StoreError"):
        stores[0].documents()


def check_texts(store: Store) -> None:
    """Check that an empty store returns documents, passages, nodes and sources as they were added, in order."""
    assert not store.holds_documents(), "a new store must be empty"
    order = [a, b, c] = _add_texts(store)
    assert store.holds_documents()
    assert store.count_passages() == 3
    records = store.documents()
    assert [record.id for record in records] == ["a", "b", "c"], "documents must be ordered by id"
    assert records[1].metadata == {"year": 1911}, "documents must keep their metadata"
    assert store.document("b") == _make_document("b"), "a document must come back as it was added"
    assert read_record(store, "b") == records[1]
    assert store.documents(["c", "none", "b"]) == records[1:], "of the ids that exist"
    text, end = _TEXTS["b"], len(_TEXTS["b"])
    for start, stop in ((2, 6), (end - 3, end + 9), (6, 2), (end + 9, end + 10)):
        assert store.text_between("b", start, stop) == text[start:stop], "a part ends where the text ends"
    assert {(record.source, record.folder) for record in records} == {("memory", "")}
    assert all(record.digest for record in records)
    _check_folders(store)
    assert list(store.passages()) == store.node_keys(PASSAGES) == order, "passages must be in document order"
    assert list(store.passages([c, 10**9, a])) == [c, a], "keys give the order"
    placed, documents, positions = store.passage_order()
    assert placed.tolist() == order, "passages must be in document order"
    assert len(set(documents.tolist())) == 3, "each document has its number"
    assert positions.tolist() == [0, 0, 0]
    assert {column.dtype for column in (placed, documents, positions)} == {np.dtype(np.int64)}
    passage = store.passages(documents=["b", "none"])[b]
    assert passage.text == text
    assert store.passages(documents=["b"], between=(end - 1, end + 9)) == {b: passage}
    assert store.passages(documents=["b"], between=(end, end + 9)) == {}, "the character at the end is not held"
    (gist,) = store.nodes("gists")
    found = {passage.id: Found(b, PASSAGES, "b", 0), "g": Found(gist, "gists", None, 0)}
    assert store.find([passage.id, "no such node", "g"]) == found
    assert store.find_dependants([b]) == {"gists": 1}, "a gist goes with any of its sources"
    assert store.nodes_at([10**9, gist])[gist] == _GIST
    assert read_sources(store, [gist], "gists") == {gist: [a, b]}, "sources must be in document order"
    assert find_derived(store, [a, c], "made-of:gists") == {a: [gist], c: []}
    assert store.keys_within(Scope()) is None, "an empty scope is the whole tome"
    scope = Scope(documents=frozenset("bc"))
    assert _list_within(store, scope, PASSAGES) == sorted((b, c)), "a scope names documents"
    assert _list_within(store, scope, "gists") == [], "a gist is within if all that it was made from is"
    assert _list_within(store, Scope(documents=frozenset("ab")), "gists") == [gist]
    later = Scope(where=(Condition("year", ">", 1911),))
    assert _list_within(store, later, PASSAGES) == [], "a scope tests the metadata"
    assert store.documents(later) == [], "a scope chooses documents too"
    with store.write() as change:
        change.move_document("b", replace(_make_document("b"), metadata={"year": 1912}), "another digest")
    newer = Scope(where=(Condition("year", "=", 1912),))
    assert _list_within(store, newer, PASSAGES) == [b], "new metadata counts, and the passages stay"
    _check_places(store)
    for ask in (store.document, lambda name: store.text_between(name, 0, 9)):
        with expect_error(UnknownName, "an unknown document must raise UnknownName"):
            ask("no such document")


def _check_folders(store: Store) -> None:
    before = store.versions(["documents"])
    with store.write() as change:
        change.set_folders({"a": "/letters", "no such document": "/"})
    assert [record.folder for record in store.documents()] == ["/letters", "", ""]
    assert store.versions(["documents"]) != before, "the version of the documents must change with their folders"


def _check_places(store: Store) -> None:
    document, first = document_of("placed", "Rain"), Place(page=1)
    passage = replace(
        _make_passage(document), place=replace(first, last_page=2), marks=((-3, first), (2, Place(page=2)))
    )
    with store.write() as change:
        (key,) = change.put_document(document, "digest", [passage])
    assert store.passages([key]) == {key: passage}, "a passage must keep its place and its marks"


def check_spaces(store: Store) -> None:
    """Check on an empty store that vectors and edges are exact, restricted to `among`, and as new as the last change.

    Ties, removed rows and rows that were added out of order are among what is searched.
    """
    nothing = store.nearest("none", np.ones(16, np.float32), 3)
    assert len(nothing.keys) == len(read_vectors(store, "none").keys) == len(read_edges(store, "none").keys) == 0
    keys = [a, b, c] = _add_texts(store)
    rows = _EMBEDDER.embed([_TEXTS[name] for name in "abc"])
    query = rows[0]
    cosines = dict(zip(keys, (rows @ query).tolist(), strict=True))
    found, scores = store.scores(PASSAGES, query)
    assert found.tolist() == sorted(keys)
    assert np.allclose(scores, [cosines[key] for key in sorted(keys)], atol=1e-4), "scores must be exact cosines"
    nearest = store.nearest(PASSAGES, query, 1)
    assert nearest.keys.tolist() == [a], "the nearest row is the query's own"
    assert abs(nearest.lowest - min(cosines.values())) < 1e-5, "the lowest is that of all rows"
    several = store.nearest(PASSAGES, rows[:2], 2)
    assert set(several.keys.tolist()) == {a, b}, "a row is as near as its nearest query"
    rest = sorted((b, c))
    allowed = np.array([*rest, 10**9])
    within = store.nearest(PASSAGES, query, 3, among=allowed)
    assert sorted(within.keys.tolist()) == rest, "`among` must restrict the search"
    assert store.scores(PASSAGES, query, among=allowed)[0].tolist() == rest
    assert np.allclose(store.rows(PASSAGES, [c, a]), rows[[2, 0]])
    pairs = store.alike(PASSAGES, rows[[1, 0]], 0.99)
    assert sorted(zip(pairs.new.tolist(), pairs.neighbours.tolist(), strict=True)) == [(0, b), (1, a)]
    link = [a, b, 0.5]
    assert store.edges_at(["links", "none"], [b], "b").tolist() == [link], "edges that end at a node"
    assert store.edges_at(["links"], [b], "a").tolist() == [], "and none that begin there"
    before = store.versions(["vectors/passages", "edges/links", "edges/none"])
    assert before["edges/none"] == 0
    content = np.arange(9, dtype=np.int8)
    store.keep("made of both", before, content)
    kept = store.find_kept("made of both", before)
    assert kept is None or kept.tolist() == content.tolist(), "what is kept must be what was given"
    _remove(store, "a")
    spaces = store.arrays(before)
    assert spaces["vectors/passages"].keys.tolist() == rest, "arrays must follow a removal"
    assert spaces["edges/links"].rows.shape == (0, 3), "edges go with their ends"
    after = store.versions(before)
    assert store.find_kept("made of both", after) is None, "what is kept at one version must not be found at another"
    assert all(after[name] != before[name] for name in ("vectors/passages", "edges/links")), "a change, a new version"
    assert {name: rows.version for name, rows in spaces.items()} == after
    assert a not in store.nearest(PASSAGES, query, 9).keys.tolist(), "what was removed must not be found"
    with expect_error(KeyError, "a key without a vector must raise KeyError"):
        store.rows(PASSAGES, [a])


def check_words(store: Store) -> None:
    """Check on an empty store that passages are found by their words, rare words first, as they are now."""
    assert store.lexical("cat", 3) == []
    a, b, c = _add_texts(store)
    assert {key for key, _ in store.lexical("cat", 5)} == {a, c}
    assert store.lexical("DOG or cat", 5)[0][0] == b, "a rare word counts more"
    assert [key for key, _ in store.lexical("dog", 5)] == [b]
    assert all(score > 0 for _, score in store.lexical("dog", 5)), "higher is better"
    assert len(store.lexical("cat", 1)) == 1
    assert [key for key, _ in store.lexical("cat", 5, within=Scope(documents=frozenset("c")))] == [c]
    assert store.lexical('"', 5) == store.lexical("", 5) == [], "signs are not words"
    assert store.exact("who saw “Dog”?", 5) == {b: 1}, "quoted words count"
    assert store.exact('"cat"', 1) == store.exact("dog", 5) == {}, "neither what many hold nor what is not quoted does"
    among = np.array(sorted((b, c)), np.int64)
    holders = [(count, found.tolist()) for count, found in store.find_holders(["Cat", "dog", "owl", '"'], among)]
    assert holders == [(2, [c]), (1, [b]), (0, []), (0, [])], "a word is held where it is found"
    _remove(store, "b")
    assert store.lexical("dog", 5) == [], "what was removed must not be found"


def check_records(store: Store) -> None:
    """Check on an empty store the settings, intakes, builds, sessions and traces."""
    a, b, c = _add_texts(store)
    assert (read_setting(store, "dimensions"), read_setting(store, "none")) == ("16", None)
    pending = store.find_pending_keys("gists", [PASSAGES])
    assert pending == [b, c], "what failed and what is new must be pending, in document order"
    assert store.count_taken("gists") == len(store.intake("gists").done) == 1, "failures do not count"
    for among, done in ((None, [a]), ([b, c, 10**9], [])):
        intake = store.intake("gists", among)
        assert (list(intake.done), intake.failed) == (done, {b: "refused"}), "of the nodes given alone"
    assert store.layers() == {"gists": {"nodes": 1, "failed": 1}, PASSAGES: {"nodes": 3, "failed": 0}}
    record = {"model": "n", "levels": 2}
    with store.write() as change:
        change.put_note(BUILDS, "gists", record)
        assert change.note(BUILDS, "gists") == record, "a transaction sees its own changes"
    assert store.notes(BUILDS) == {"gists": record}
    with store.write() as change:
        change.forget_intake("gists")
        assert change.remove_note(BUILDS, "gists")
    assert (store.notes(BUILDS), store.note(BUILDS, "gists"), store.intake("gists").done) == ({}, None, frozenset())
    assert store.find_pending_keys("gists", [PASSAGES]) == [a, b, c], "all nodes are new again"
    for question in ("first", "second"):
        saved = store.save_trace(asked="now", question=question, record={"text": question})
        assert saved == store.trace_numbers(limit=1)[0], "save_trace does not return the number of the trace"
    latest, earliest = (store.trace(number) or {} for number in store.trace_numbers())
    assert (latest["question"], earliest["text"]) == ("second", "first"), "the newest trace must come first"
    assert store.delete_trace(latest["number"])
    assert not store.delete_trace(latest["number"])
    assert store.trace(latest["number"]) is None
    store.save_trace(asked="now", question="Third Élan", record={"text": "of", "quoted": "all"})
    assert store.trace_numbers(matching="ÉLAN of all") == store.trace_numbers(1), "matching: whatever the case"
    assert store.trace_numbers(matching="third first") == [], "matching: all words"
    assert store.trace_numbers(1, matching="ir") == store.trace_numbers(1), "matching: the latest first"
    assert store.trace_numbers(before=latest["number"]) == [earliest["number"]], "before: lower numbers"
    assert store.trace_numbers(1)[0] > latest["number"], "the number of a trace must never be used again"


def check_sessions(store: Store) -> None:
    """Check on an empty store that sessions are kept, replaced, removed, exported and held by one at a time."""
    with store.write() as change:
        change.put_note(SESSIONS, "b", {"turns": [1]})
        change.put_note(SESSIONS, "a", {"turns": []})
        change.put_note(SESSIONS, "b", {"turns": [1, 2]})
    assert (store.note_names(SESSIONS), store.note(SESSIONS, "a")) == (["a", "b"], {"turns": []})
    assert (store.note(SESSIONS, "b"), store.note(SESSIONS, "c")) == ({"turns": [1, 2]}, None)
    assert [line for line in export(store) if '"kind": "session"' in line], "sessions must be exported"
    with (
        hold_session(store, "a"),
        hold_session(store, "b"),
        expect_error(Locked, "a session must be held by one at a time"),
        hold_session(store, "a"),
    ):
        pass
    with hold_session(store, "a"), store.write() as change:
        assert change.remove_note(SESSIONS, "a")
        assert not change.remove_note(SESSIONS, "a")
    assert store.note_names(SESSIONS) == ["b"]


async def check_calls(calls: Calls) -> None:
    """Check that replies are kept, replaced, found under their mark, and dropped."""
    assert await calls.get("k") is None
    await calls.keep("k", role="gist", model="m", reply="one")
    await calls.keep("k", role="gist", model="m", reply="two", since="mark")
    assert (await calls.get("k"), await calls.get("k", since="mark")) == ("two", "two")
    assert await calls.get("k", since="another mark") is None, "only a reply under the mark counts"
    await calls.drop("k")
    assert await calls.get("k") is None
    assert calls.mean_reply_bytes("gist", "m") is None
    for number in range(8):
        await calls.keep(f"k{number}", role="gist", model="m", reply="é" * 5)
    assert calls.mean_reply_bytes("gist", "m") == 10, "replies are measured in bytes"
    assert calls.mean_reply_bytes("gist", "another model") is None


def check_changes(store: Store) -> None:
    """Check on an empty store that nodes live as long as they should, and that nodes and edges change in place."""
    keys = [_, b, c] = _add_texts(store)
    ids = [passage.id for passage in store.passages(keys).values()]
    word = Node(id="word", layer="words", text="word", sources=tuple(ids[:2]))
    group = replace(word, id="group", layer="groups", text="group")
    with store.write() as change:
        (word_key,) = change.put_nodes([word], lifetime="any").values()
        (group_key,) = change.put_nodes([group], lifetime="layer").values()
        change.record_intake("above", [word_key, group_key, *keys])
    both = Scope(documents=frozenset("ab"))
    assert [_list_within(store, both, layer) for layer in ("words", "groups")] == [[word_key], [group_key]]
    changed = replace(group, text="other", level=1, data={"n": 2}, sources=tuple(ids[1:]))
    with store.write() as change:
        assert change.update_nodes([changed], lifetime="layer") == {"group": group_key}, "an update keeps the key"
    assert store.nodes("groups") == {group_key: replace(changed, sources=())}
    assert read_sources(store, [group_key], "groups") == {group_key: [b, c]}
    assert store.find_removed_ids("above") == ("group",), "a new text is a removal for the layers above"
    assert group_key in store.find_pending_keys("above", ["groups"]), "and an addition"
    _remove(store, "b")
    assert store.nodes("gists") == {}, "a node goes with any of its sources"
    assert list(store.nodes("words")) == [word_key], "a node that lives with any source stays while one does"
    _remove(store, "a", "c")
    assert store.nodes("words") == {}, "and goes with the last"
    assert read_sources(store, store.nodes("groups"), "groups") == {group_key: []}, "only its layer removes it"
    assert store.find_removed_ids("above") == tuple(sorted((*ids, "group", "word")))
    with store.write() as change:
        change.record_intake("above", [])
    assert store.find_removed_ids("above") == (), "a build has followed the removals"
    _check_rows_that_change(store, group_key)


def _check_rows_that_change(store: Store, key: int) -> None:
    rows = _EMBEDDER.embed(["first", "second"])
    with store.write() as change:
        others = change.put_nodes([replace(_GUEST, id=name) for name in "xyz"], lifetime="layer")
        x, y, z = others.values()
        pairs = np.array([[key, x], [key, y], [key, z]])
        change.put_vectors("groups", [key], rows[:1], replace=True)
        change.put_vectors("groups", [key], rows[1:], replace=True)
        change.put_edges("pairs", pairs[:, 0], pairs[:, 1], np.array([0.1, 0.2, 0.3]))
    assert np.allclose(store.rows("groups", [key]), rows[1:]), "a vector is replaced"
    with store.write() as change:
        change.put_edges("pairs", pairs[:2, 0], pairs[:2, 1], np.array([0.5, 0.6]), replace=True)
        change.put_edges("pairs", pairs[:1, 0], pairs[:1, 1], np.array([0.9]))
        change.remove_edges("pairs", np.array([[key, z], [z, key]]))
    assert sorted(read_edges(store, "pairs").rows.tolist()) == [[key, x, 0.5], [key, y, 0.6]], (
        "edges change by their pairs"
    )
    with expect_error(ValueError, "what does not exist cannot be changed: raise ValueError"), store.write() as change:
        change.update_nodes([_GUEST])
    with store.write() as change:
        change.remove_edges("pairs")
    assert not len(read_edges(store, "pairs").keys)


def check_transactions(store: Store) -> None:
    """Check on an empty store that failures leave nothing, keys are never used again, and nodes go with their sources.

    Also that the right to build is exclusive.
    """
    two = document_of("two", "The second text.")
    first = put_document(store, _EMBEDDER, document_of("one", "The first text."))
    before = list(export(store))
    second = put_document(store, _EMBEDDER, two)
    assert read_vectors(store, PASSAGES).keys.tolist() == first + second, "arrays must follow an addition"
    with store.snapshot() as moment:
        known = moment.passages()
        third = put_document(store, _EMBEDDER, document_of("third", "The third text."))
        assert moment.passages() == known, "a snapshot is of one moment"
        assert read_vectors(moment, PASSAGES).keys.tolist() == first + second, "for arrays too"
    assert _remove(store, "third") == third
    ids = [passage.id for passage in store.passages().values()]
    gist = replace(_GIST, sources=(ids[1],))
    word = Node(id="w1", layer="words", text="text", sources=tuple(ids))
    versions = store.versions(["vectors/passages", "edges/made-of:gists"])
    with suppress(KeyError), store.write() as change:
        change.put_nodes([gist])
        change.remove_document("one")
        raise KeyError("stop")
    assert store.nodes("gists") == {}, "a failed transaction must leave nothing"
    assert store.versions(versions) == versions, "a failed transaction must change no array"
    assert len(store.documents()) == 2
    with store.write() as change:
        change.put_nodes([gist])
        change.put_nodes([word], lifetime="any")
        change.record_intake("gists", second)
    removed = _remove(store, "two")
    assert len(removed) == 2, "a document must take with it what was derived from it alone"
    assert len(store.nodes("words")) == 1, "a node that lives with any source stays while one of them does"
    with store.write() as change:
        change.remove_nodes(store.node_keys("words"))
    assert list(export(store)) == before, "adding and removing a document must leave no trace"
    (key,) = put_document(store, _EMBEDDER, two)
    assert key not in (*first, *removed), "keys must never be used again"
    moved = replace(two, id="three")
    with store.write() as change:
        change.put_nodes([replace(word, layer="pages", sources=(ids[1],), data={"document": "two"})])
    with store.write() as change:
        change.move_document("two", moved, "digest")
    assert store.document("three") == moved, "a document that moved has its new id"
    assert store.passages()[key] == _make_passage(moved), "its passages keep their keys and get new ids"
    assert key in read_vectors(store, PASSAGES).keys.tolist(), "its passages keep their vectors"
    (page,) = store.nodes("pages").values()
    assert page.id != "w1", "what was made from a document that moved has new ids"
    assert page.data == {"document": "three"}, "and names the new id"
    with store.write() as change:
        change.move_document("three", two, "digest")
    with store.write() as change:
        renewed = change.renew_passage(key)
    assert renewed != key, "a renewed passage has a new key"
    assert store.passages()[renewed].text == "The second text."
    assert renewed in read_vectors(store, PASSAGES).keys.tolist(), "a renewed passage keeps its vector"
    for _ in range(2):  # the first refusal leaves the right free
        with expect_error(Locked, "one alone may build"), work_alone(store, "build"), work_alone(store, "build"):
            pass


@contextmanager
def expect_error(kind: type[Exception], rule: str) -> Iterator[None]:
    """Check that what is done inside raises an error of this kind. Raises AssertionError with the `rule` otherwise."""
    try:
        yield
    except kind:
        return
    raise AssertionError(rule)


def document_of(name: str, text: str) -> Document:
    """A document with this id and text."""
    return Document(id=name, text=text)


def put_document(store: Store, embedder: Embedder, document: Document) -> list[int]:
    """Add a document as one passage, embedded. Returns its key."""
    passage = _make_passage(document)
    with store.write() as change:
        change.put_note(SETTINGS, "dimensions", str(embedder.dimensions))
        keys = change.put_document(document, content_id("d", document.text), [passage])
        change.put_vectors(PASSAGES, keys, embedder.embed([passage.content]))
    return keys


def _make_passage(document: Document) -> Passage:
    """The whole document as one passage."""
    end = len(document.text)
    name = content_id("p", document.id, 0, end, document.text)
    return Passage(id=name, document=document.id, position=0, start=0, end=end, text=document.text)


def _make_document(name: str) -> Document:
    return Document(id=name, text=_TEXTS[name], metadata={"year": 1911})


def _add_texts(store: Store) -> list[int]:
    """Add the documents, a gist of two of them, an edge, and the record of a build.

    Returns the keys of the passages of `a`, `b` and `c`.
    """
    keys = {name: put_document(store, _EMBEDDER, _make_document(name))[0] for name in _TEXTS}
    a, b, c = (keys[name] for name in "abc")
    passages = store.passages()
    with store.write() as change:
        change.put_nodes([replace(_GIST, sources=(passages[b].id, passages[a].id))])
        change.put_edges("links", np.array([a]), np.array([b]), np.array([0.5]))
        change.record_intake("gists", [a], {b: "refused"})
        change.put_note(BUILDS, "gists", {"model": "m"})
    return [a, b, c]


def _remove(store: Store, *documents: str) -> list[int]:
    """Remove documents. Returns the keys of all nodes that went with them."""
    with store.write() as change:
        return [key for document in documents for key in change.remove_document(document)]


def _list_within(store: Store, scope: Scope, layer: str) -> list[int]:
    keys = store.keys_within(scope, layer)
    assert keys is not None, "only an empty scope is the whole tome"
    return [int(key) for key in keys]
