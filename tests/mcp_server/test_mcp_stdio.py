"""MCP over pipes. The cases run in a process of their own: other tests must not have replaced its standard streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).with_name("stdio_cases.py")


def test_mcp_over_pipes() -> None:
    command = [sys.executable, "-m", "pytest", str(CASES), "-q", "-p", "no:cacheprovider"]
    root = CASES.parents[2]
    ran = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:]
