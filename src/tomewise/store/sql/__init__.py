"""A tome in one SQLite file."""
