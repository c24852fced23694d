"""Tomes as retrievers of other frameworks. Each needs its extra."""
