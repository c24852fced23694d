"""An example of parts from outside of Tomewise: one of each kind, each in a file of its own."""
