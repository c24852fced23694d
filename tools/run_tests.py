"""All tests but those of the snippets: those of Ray, which mostly wait, run in one process beside the others.

python tools/run_tests.py    # the same as `make test`
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

RAY = ("tests/cluster", "-m", "cluster")
OTHERS = ("-n", "auto", "--dist", "worksteal", "--ignore", "tests/docs/test_snippets.py")


def main() -> int:
    pytest = (sys.executable, "-m", "pytest")
    with tempfile.TemporaryFile("w+") as printed:
        with subprocess.Popen([*pytest, *RAY], stdout=printed, stderr=subprocess.STDOUT) as ray:
            others = subprocess.run([*pytest, *OTHERS, "-m", "not cluster"], check=False)
        printed.seek(0)
        print(f"\nThe tests of Ray:\n{printed.read()}")
    return ray.returncode or others.returncode


if __name__ == "__main__":
    sys.exit(main())
