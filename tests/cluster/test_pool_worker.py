"""A worker, without a cluster: what it does before its first ask."""

from __future__ import annotations

import subprocess
import sys

import pytest

DESCRIBE = """
import asyncio
import sys
from tomewise.cluster.pool_worker import Worker
from tomewise.cluster.worker_parts import ModelParts, WorkerParts

parts = ModelParts(**{"model": sys.argv[1], "models": {"gist": sys.argv[2]}})
worker = Worker(WorkerParts(embedder="hash", model=parts), 1)
assert asyncio.run(worker.describe()).python, "it fits"
assert sys.argv[3] in sys.modules
"""


@pytest.mark.parametrize("models", [("ollama:a", "extractive"), ("extractive", "ollama:a")])
@pytest.mark.parametrize("module", ["tomewise.language.client", "tomewise.language.extractive.plays"])
def test_a_worker_imports_before_its_first_ask(models: tuple[str, str], module: str) -> None:
    """All workers do it side by side, while they start."""
    subprocess.run([sys.executable, "-c", DESCRIBE, *models, module], check=True, timeout=60)
