"""The command `tome`."""
