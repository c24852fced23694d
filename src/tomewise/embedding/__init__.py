"""Embedders: texts to vectors, behind one protocol."""

import os

# From version 1.31 on, ONNX Runtime tells its makers what it does, from the moment of its import. Here it does not.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
