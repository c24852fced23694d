"""Reading text by its form, without any model: sentences, words and stems, names, dates and numbers."""
