"""Ways to find evidence, one in each file."""
