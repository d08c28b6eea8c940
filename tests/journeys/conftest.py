"""A stranger's machine: the real command, the real models, an empty home, no network."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from osler.errors import ModelMissing
from osler.llm.local.weights import DEFAULTS, locate_weights

Osler = Callable[..., "subprocess.CompletedProcess[str]"]

# Where a proxy is named that nobody serves, whatever reached for the network would fail.
OFFLINE = dict.fromkeys(
    ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"
) | {"PIP_NO_INDEX": "1", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for file in DEFAULTS:
        try:
            locate_weights(file)
        except ModelMissing as error:
            pytest.skip(f"the packaged weights are not there: {error}")
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def osler(home: Path) -> Osler:
    """Runs `osler …` in a process of its own, as a shell would."""
    environment = {**os.environ, **OFFLINE, "OSLER__HOME": str(home), "COLUMNS": "100"}

    def call(
        *words: str,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        language: str = "",
        own: Path | None = None,
    ) -> object:
        in_own = {"OSLER__HOME": str(own)} if own else {}
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "osler", *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=cwd or home,
            env=environment | in_own | ({"LANG": language, "LC_ALL": ""} if language else {}),
            timeout=300,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return call  # type: ignore[return-value]


@pytest.fixture(scope="session")
def built(osler: Osler, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Osler:
    """The same, with the sample knowledge base built: once in a test run, then copied."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers
    sample, draft = shared / "sample-kb", shared / "sample-kb.part"
    with (shared / "sample-kb.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed, also where a worker dies
        if not sample.is_dir():
            done = osler("--kb", str(draft), "kb", "build", "--sample")
            assert done.returncode == 0, done.stderr
            draft.rename(sample)
    shutil.copytree(sample, home / "kb")
    return osler
