"""`Tome`, the class that most users meet."""
