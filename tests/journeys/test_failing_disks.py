"""A few points of `benchmarks/faults.py`, which tries thousands."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


def test_no_write_that_fails_and_no_power_cut_loses_or_halves_anything() -> None:
    pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')
    pytest.importorskip("cryptography", reason='not installed: pip install "osler[audit]"')
    verbs = "add,rm,ask,serve,eval,train,thread,audit"  # the others take long to be prepared
    command = [sys.executable, str(SCRIPT), "24", "--seed", "5", "--verbs", verbs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 points" in done.stdout
    assert "0 problems" in done.stdout
