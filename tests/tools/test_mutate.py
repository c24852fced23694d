"""Every mutation still changes the source, and runs tests that exist."""

from __future__ import annotations

import pytest
from tools.mutate import MUTATIONS, ROOT, SOURCE, Mutation, apply


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_it_stands_once_in_its_file(mutation: Mutation) -> None:
    changed = apply(mutation, (SOURCE / "tomewise" / mutation.file).read_text("utf-8"))
    compile(changed, mutation.file, "exec")
    assert all((ROOT / test).exists() for test in mutation.tests)
