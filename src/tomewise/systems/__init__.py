"""The ways of answering: recipes that wire parts, one file for each family."""
