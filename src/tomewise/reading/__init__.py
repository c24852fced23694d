"""Read files as documents, and split documents into passages."""
