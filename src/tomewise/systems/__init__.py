"""The ways of answering: recipes that wire parts, a file a family."""
