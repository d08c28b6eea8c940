"""How long the command line takes to start: the median of ten fresh processes each.

Wanted: `osler --help` under 0.3 s, `import osler` under 0.15 s.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 10
PROGRAMS = {
    "import osler": "import osler",
    "osler --help": "from osler.cli import main; import sys; sys.argv = ['osler', '-h']; main()",
    "osler config": "from osler.cli import main; import sys;"
    " sys.argv = ['osler', 'config', 'show']; main()",
}


def seconds(program: str) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-c", program]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # noqa: S603  our own words
    return time.perf_counter() - began


if __name__ == "__main__":
    for name, program in PROGRAMS.items():
        print(f"{name:<20} {statistics.median(seconds(program) for _ in range(RUNS)):.3f} s")
