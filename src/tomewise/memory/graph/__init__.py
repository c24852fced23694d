"""The graph memory: entities, facts, and the passages that state them."""
