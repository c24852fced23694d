"""Entities and facts that were extracted elsewhere."""
