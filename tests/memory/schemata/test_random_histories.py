"""The schemata after random histories: batches of any size, in any order, and removals in between."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.schemata.test_schemata_layer import EMBEDDER, TOPICS, assert_sound, build_layer, make_model
from tests.store.plain_store import PlainStore

from tomewise.memory.schemata.network import LinkRules
from tomewise.store.export import export
from tomewise.testing import document_of, put_document

NUMBERS = st.integers(0, 40)
HISTORIES = st.lists(
    st.tuples(st.booleans(), st.sets(NUMBERS, min_size=1, max_size=12)), min_size=2, max_size=6
)  # whether documents are removed, and which
RULES = LinkRules(theta=0.2, k=3)


def live(history) -> PlainStore:
    """A store after a history, with a build and a check after each of its steps."""
    store = PlainStore()
    for removes, numbers in history:
        if removes:
            with store.write() as change:
                for number in sorted(numbers):
                    change.remove_document(f"d{number:03}")
        else:
            for number in sorted(numbers, key=lambda number: number * 17 % 41):  # not in document order
                text = f"{TOPICS[number % 3]} and {TOPICS[number % 2]} on day {number % 7} note {number}"
                put_document(store, EMBEDDER, document_of(f"d{number:03}", text))
        build_layer(store, make_model(), rules=RULES)
        assert_sound(store)
    return store


@settings(max_examples=25, deadline=None)
@given(HISTORIES)
def test_every_step_leaves_a_sound_state_and_equal_histories_end_equal(history) -> None:
    assert list(export(live(history))) == list(export(live(history)))
