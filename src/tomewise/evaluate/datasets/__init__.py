"""Readers of published datasets; nothing is downloaded and nothing is unpickled."""

from tomewise.evaluate.datasets.layouts import detect_layout, list_layouts, read_dataset

__all__ = ["detect_layout", "list_layouts", "read_dataset"]
