"""What holds for every system whose settings do not say otherwise."""

CONTEXT = 6000  # tokens of evidence shown to the answering role
