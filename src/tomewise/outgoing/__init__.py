"""What goes out: a model of each thing that the command prints as JSON, and that HTTP and MCP reply.

One thing has one name. An object says its own identity as `id`, and another object by its noun (`document`, `passage`,
`trace`); `place` is always an object, and `text` has the words of a thing.

A model reads our nouns by their attributes: `Answer.of(answer).write()`. Who must not show paths passes a naming, which
gives each document the name to show.
"""
