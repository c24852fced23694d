"""What tests of loops share with those of recall."""

from tests.recall.conftest import open_store

__all__ = ["open_store"]
