"""A few rounds of `benchmarks/kill.py`, which runs hundreds."""

import importlib.util
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill.py"


@pytest.fixture
def kill() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_kill", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kill_at_any_moment_loses_and_doubles_nothing(kill: ModuleType, tmp_path: Path) -> None:
    tallies = kill.run(tmp_path, 8, seed=7, sizes=kill.Sizes(20, 10))
    assert {kind: tally.rounds for kind, tally in tallies.items()} == dict.fromkeys(kill.KINDS, 2)
    assert sum(tally.hit for tally in tallies.values()) >= 1, "some kill came in time"
