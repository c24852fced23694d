"""The `curl` lines of the README, as they stand there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.server.served import TOKEN, Served
from tests.texts import REPOSITORY

BLOCK = re.search(r"^```bash\n(.*?)^```", (REPOSITORY / "README.md").read_text(encoding="utf-8"), re.M | re.S)
LINES = [line for line in BLOCK[1].replace("\\\n", "").splitlines() if line.startswith("curl")] if BLOCK else []


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_lines_of_the_readme(served: Served, tmp_path: Path):
    (tmp_path / "novel.txt").write_text("The clerk forged the letter in May.")
    version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, version.split()[1].split(".")[:2])) < (7, 82):
        pytest.skip("this curl has no --json")
    own = {"TOME": served.url, "AUTH": f"Authorization: Bearer {TOKEN}", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    replies = []
    for line in LINES:
        ran = subprocess.run(["bash", "-c", f"{line} --fail-with-body"], cwd=tmp_path, env=own, capture_output=True)
        assert ran.returncode == 0, (line, ran.stdout)
        replies.append(ran.stdout.decode())
    assert len(replies) == 9
    assert json.loads(replies[0])["tomes"] == ["novel"]
    assert json.loads(replies[1])["system"] == "naive"
    assert "event: answer" in replies[2]
    assert json.loads(replies[3])["evidence"][0]["sources"][0]["document"] == "letter"
    added = served.wait_for_job(json.loads(replies[4])["id"])
    assert added["report"]["added"] == ["books/novel.txt"]
    assert json.loads(replies[8])["object"] == "chat.completion"
