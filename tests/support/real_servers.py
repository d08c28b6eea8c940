"""Model servers that nobody here wrote, each started as its own documentation says.

| Server | From |
|---|---|
| llama.cpp | its own server, in the package xllamacpp, which Osler rests on |
| transformers | `transformers serve`, of the extra train |
| llama-cpp-python | its own server, built from source |
| LiteLLM | its proxy, with a master key, in front of llama.cpp |
| vLLM | its own server for processors: 3 GB, which `make test-servers` does not install |

Those that the tests' environment does not hold have one each, in the folder OSLER_SERVERS.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx2
import pytest

from osler.llm.local.gguf_files import default_gguf

FOLDER = "OSLER_SERVERS"
CONTEXT = 4096
KEY = "sk-osler-of-the-tests"
SECONDS = 600.0
"""Until a server must be ready; weak machines import torch for a minute."""
_LLAMA_CPP = """\
import signal, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params.n_parallel, params.kv_unified, params.warmup, params.verbosity = 2, True, False, -1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
signal.pause()
"""
_TO_FOLDER = """\
import sys
from osler.llm.transformers.hub import load_pair
from pathlib import Path
pair = load_pair(Path(sys.argv[1]), dtype="float32", device="cpu")
pair.model.save_pretrained(sys.argv[2])
pair.tokenizer.save_pretrained(sys.argv[2])
"""
_PROXY = """\
model_list:
  - model_name: small
    litellm_params: {{model: openai/small, api_base: "{url}", api_key: none}}
general_settings: {{master_key: {key}}}
"""


@dataclass(frozen=True, slots=True)
class RealServer:
    """A server that runs, and what it was started with."""

    kind: str
    url: str
    name: str
    """The model's."""
    stop: Callable[[], None]
    key: str = ""
    context: int | None = None
    """Tokens, where the server tells them to who asks."""


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def _program_of(kind: str, name: str) -> str:
    """A program of the server's own environment; skips the test where it was not made."""
    place = Path(os.environ[FOLDER]).absolute() / kind
    if not (place / "ready").is_file():
        pytest.skip(f"{kind} is not there: see the head of {Path(__file__).name}")
    return str(place / "bin" / name)


@contextmanager
def _run(
    command: Sequence[str], log: Path, ready: str, **more: str
) -> Iterator[Callable[[], None]]:
    """The process, from when the address answers; ended with the block."""
    quiet = {"HF_HUB_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as told:
        process = subprocess.Popen(  # noqa: S603
            command, stdout=told, stderr=told, env={**os.environ, **quiet, **more}
        )

    def stop() -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    try:
        _wait_until_ready(process, ready, log)
        yield stop
    finally:
        stop()


def _wait_until_ready(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        words = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        assert process.poll() is None, f"the server ended by itself: {words}"
        try:
            if httpx2.get(ready, timeout=20).status_code < 500:
                return
        except httpx2.TransportError:
            time.sleep(1)
    pytest.fail(f"not ready within {SECONDS:g} s")


@contextmanager
def _llama_cpp(folder: Path) -> Iterator[RealServer]:
    port, gguf = _free_port(), default_gguf()
    command = [sys.executable, "-c", _LLAMA_CPP, str(gguf), str(port), str(CONTEXT)]
    root = f"http://127.0.0.1:{port}"
    with _run(command, folder / "llama.cpp.log", f"{root}/health") as stop:
        yield RealServer("llama.cpp", f"{root}/v1", str(gguf), stop, context=CONTEXT)


@contextmanager
def _llama_cpp_python(folder: Path) -> Iterator[RealServer]:
    port = _free_port()
    python = _program_of("llama-cpp-python", "python")
    command = [python, "-m", "llama_cpp.server", "--model", str(default_gguf())]
    command += ["--model_alias", "small", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--n_ctx", str(CONTEXT), "--n_threads", "1", "--n_threads_batch", "1"]
    url = f"http://127.0.0.1:{port}/v1"
    with _run(command, folder / "llama-cpp-python.log", f"{url}/models") as stop:
        yield RealServer("llama-cpp-python", url, "small", stop)


@contextmanager
def _transformers(folder: Path) -> Iterator[RealServer]:
    program = Path(sys.executable).with_name("transformers")
    if not program.is_file() or not all(map(find_spec, ("torch", "transformers"))):
        pytest.skip('transformers serve is not there: pip install "osler[train]"')
    port, weights = _free_port(), _weights_folder()
    # Without a hub cache, as where a model's folder was copied, its list of models is an error.
    empty, root = str(folder / "no-hub"), f"http://127.0.0.1:{port}"
    command = [str(program), "serve", str(weights), "--device", "cpu", "--port", str(port)]
    command += ["--host", "127.0.0.1"]
    with _run(command, folder / "transformers.log", f"{root}/health", HF_HOME=empty) as stop:
        yield RealServer("transformers", f"{root}/v1", str(weights), stop)


def _weights_folder() -> Path:
    """`transformers serve` 5.23 loads no GGUF file: a configuration from one names no class."""
    folder = Path(os.environ[FOLDER]).absolute() / "SmolLM2-135M-Instruct"
    if not folder.is_dir():
        draft = folder.with_suffix(".part")
        command = [sys.executable, "-c", _TO_FOLDER, str(default_gguf()), str(draft)]
        subprocess.run(command, check=True)  # noqa: S603
        draft.rename(folder)
    return folder


@contextmanager
def _litellm(folder: Path) -> Iterator[RealServer]:
    program, port = _program_of("litellm", "litellm"), _free_port()
    with _llama_cpp(folder) as behind:
        config = folder / "litellm.yaml"
        config.write_text(_PROXY.format(url=behind.url, key=KEY), encoding="utf-8")
        command = [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        root = f"http://127.0.0.1:{port}"
        with _run(command, folder / "litellm.log", f"{root}/health/liveliness") as stop:
            yield RealServer("LiteLLM", f"{root}/v1", "small", stop, key=KEY)


@contextmanager
def _vllm(folder: Path) -> Iterator[RealServer]:
    program, port = _program_of("vLLM", "vllm"), _free_port()
    command = [program, "serve", str(_weights_folder()), "--served-model-name", "small"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", str(CONTEXT)]
    command += ["--enforce-eager", "--dtype", "bfloat16"]
    root, quiet = f"http://127.0.0.1:{port}", {"VLLM_NO_USAGE_STATS": "1"}
    quiet |= {"VLLM_CPU_KVCACHE_SPACE": "1"}
    with _run(command, folder / "vllm.log", f"{root}/health", **quiet) as stop:
        yield RealServer("vLLM", f"{root}/v1", "small", stop, context=CONTEXT)


SERVERS = {
    "llama.cpp": _llama_cpp,
    "transformers": _transformers,
    "llama-cpp-python": _llama_cpp_python,
    "LiteLLM": _litellm,
    "vLLM": _vllm,
}


@contextmanager
def start_server(kind: str, folder: Path) -> Iterator[RealServer]:
    """Starts one of `SERVERS` with the packaged model; skips the test where it is not there."""
    if FOLDER not in os.environ:
        pytest.skip("real servers are started by `make test-servers`")
    with ExitStack() as stack:
        yield stack.enter_context(SERVERS[kind](folder))
