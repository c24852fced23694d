"""Storage of tomes."""
