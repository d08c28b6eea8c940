"""ONNX Runtime, as it is packaged, tells its maker of each session; Osler's does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

SCRIPT = """
import onnx
from onnx import TensorProto, helper
from osler.kb.encoders.base import open_session

ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in ("a", "b")]
graph = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "one", ends[:1], ends[1:])
opset = [helper.make_opsetid("", 17)]
model = helper.make_model(graph, opset_imports=opset, ir_version=10)
open_session(model.SerializeToString(), 1).run(None, {"a": __import__("numpy").zeros(1, "f4")})
"""


def run_session(home: Path, **more: str) -> list[str]:
    """Runs a session in a process of its own and lists the files that it left in its home.

    Its environment is bare: where `CI` is set the runtime tells nobody, whatever Osler does.
    """
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")}
    env |= {"HOME": str(home), **more}
    subprocess.run([sys.executable, "-c", SCRIPT], env=env, check=True)  # noqa: S603 - words of ours
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def test_a_session_makes_no_device_id_and_keeps_no_events_to_send(tmp_path: Path) -> None:
    assert run_session(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="its folder is named for Linux")
def test_who_wants_its_telemetry_may_have_it(tmp_path: Path) -> None:
    """And so the test above would see it."""
    assert any("onnxruntime" in name for name in run_session(tmp_path, ORT_DISABLE_TELEMETRY="0"))
