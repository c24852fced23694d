"""What a build costs, a cap that holds, and a build that is killed: nothing is paid twice.

python examples/budget.py     # the bundled story; with a model of yours the same lines name dollars
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tomewise import Tome
from tomewise.errors import BudgetExceeded
from tomewise.sample import STORY
from tomewise.types import Progress

TOME, SYSTEM = "budget.tome", "comorag"
SYSTEMS = ("hybrid", "associative", "hipporag2", "cogitorag", "raptor", "cam", "read_agent", "hgmem", "comorag")


def kill_after(calls: int) -> None:
    """Build, and end this process without a farewell once some calls are made."""

    def look(progress: Progress) -> None:
        if progress.done >= calls:
            os.kill(os.getpid(), signal.SIGKILL)

    with Tome.open(TOME) as tome:
        tome.build(SYSTEM, on_progress=look)


def main() -> None:
    """Estimate, build under a cap, be killed, and go on."""
    with Tome.open(TOME) as tome:  # model="openai:gpt-4o-mini", settings={"budget": "$0.15"} bounds dollars
        tome.add(STORY)
        for system in SYSTEMS:
            total = tome.memory.estimate(system).total
            print(f"{system:12} {total.calls:4} calls {total.tokens:8,} tokens")

    with Tome.open(TOME, settings={"budget": "20 calls"}) as tome:
        try:
            tome.build(SYSTEM)
        except BudgetExceeded as error:
            print(f"capped: {error}")

    killed = subprocess.run([sys.executable, __file__, "kill"], check=False)
    with Tome.open(TOME) as tome:
        print(f"killed with signal {-killed.returncode}")
        cost = tome.build(SYSTEM).cost
        print(f"the last build made {cost.calls} calls, and found {cost.kept} replies that were kept")


if __name__ == "__main__":
    kill_after(30) if sys.argv[1:] == ["kill"] else main()
