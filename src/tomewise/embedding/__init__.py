"""Embedders: texts to vectors, behind one protocol."""
