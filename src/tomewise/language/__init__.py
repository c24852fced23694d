"""Ask a language model: roles, models, and the wrappers around them."""
