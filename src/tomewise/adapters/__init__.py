"""Tomes as parts of other frameworks, each an extra of its own."""
