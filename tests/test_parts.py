from __future__ import annotations

from tomewise import parts


def test_every_name_is_there():
    assert parts.__all__ == sorted(parts.__all__)
    assert all(hasattr(parts, name) for name in parts.__all__)
