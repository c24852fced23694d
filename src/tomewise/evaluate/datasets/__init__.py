"""Readers of published datasets; nothing is downloaded and nothing is unpickled."""

from tomewise.evaluate.datasets.layouts import layout_of, layouts, read_dataset

__all__ = ["layout_of", "layouts", "read_dataset"]
