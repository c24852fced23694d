"""Servers over open tomes: what the command `tome` does, for chat clients, agents and pages."""
