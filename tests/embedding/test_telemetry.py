"""Nothing here reports to anybody. By itself ONNX Runtime keeps an id of this machine for its makers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = "import tomewise.embedding.bundled, onnxruntime, time; time.sleep(0.5)"


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_onnx_runtime_leaves_no_id_of_this_machine(tmp_path: Path, variable: str) -> None:
    own = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", RUN], env={**own, variable: str(tmp_path)}, check=True)
    assert not list(tmp_path.rglob("*deviceid*"))
    assert not list(tmp_path.rglob("*.db"))
