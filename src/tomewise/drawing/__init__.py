"""Draws pictures of memory in a browser: the drawing module, its style, and pages that hold both."""
