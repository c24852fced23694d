"""The summary tree: passages clustered and summarised, level by level (RAPTOR)."""
