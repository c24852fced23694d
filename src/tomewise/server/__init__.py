"""A tome over HTTP: for programs, chat clients and agents. `tome serve` starts it."""
