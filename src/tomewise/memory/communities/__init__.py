"""Communities of a graph of relations, level by level, and reports about them (GraphRAG)."""
