"""What the tome keeps of the builds of a layer."""

from __future__ import annotations

from tests.store.plain_store import PlainStore

from tomewise.memory.build_records import (
    count_replies,
    forget_layer,
    mark_again,
    read_build,
    record_build,
    record_writes,
)


def test_counts_cover_all_builds_and_a_mark_lasts_until_the_next():
    store = PlainStore()
    with store.write() as change:
        record_build(change, "gists", {"model": "m"})
        count_replies(change, "gists", {"mended": 1})
        mark_again(change, "gists", "mark")
    assert read_build(store, "gists") == {"model": "m", "replies": {"mended": 1}, "again": "mark"}
    with store.write() as change:
        count_replies(change, "gists", {"mended": 2})
        record_build(change, "gists", {"model": "n"})
    assert read_build(store, "gists") == {"model": "n", "replies": {"mended": 3}, "former_models": ["m"]}


def test_what_a_layer_writes_stays_until_the_layer_is_forgotten():
    store = PlainStore()
    with store.write() as change:
        record_build(change, "above", {})
        record_writes(change, "above", ["x", "y"])
        record_build(change, "above", {"model": "m"})
        change.record_intake("above", [1])
    assert read_build(store, "above") == {"model": "m", "writes": ["x", "y"]}
    with store.write() as change:
        forget_layer(change, "above")
    assert (read_build(store, "above"), store.intake("above").done) == ({}, frozenset())
