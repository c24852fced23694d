"""Embedders: texts to vectors, behind one protocol."""

import os

# ONNX Runtime 1.31 and later sends telemetry from its import on. This turns it off.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
