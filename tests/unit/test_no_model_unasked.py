"""The guard of the suite: nothing reaches a model that the test did not ask for."""

import socket
from pathlib import Path

import pytest

from osler.llm.core.base import Message, Sampling
from osler.llm.local.model import LlamaCpp


async def test_an_engine_that_was_not_asked_for_is_refused(tmp_path: Path) -> None:
    weights = tmp_path / "any.gguf"
    weights.write_bytes(b"GGUF")
    with pytest.raises(AssertionError, match=r"loads any; mark it with pytest\.mark\.model"):
        await LlamaCpp(weights, name="any").complete([Message("user", "Hello")], Sampling())


def test_a_host_that_is_not_this_one_is_refused() -> None:
    with socket.socket() as door, pytest.raises(AssertionError, match=r"reached for 192\.0\.2\.1"):
        door.connect(("192.0.2.1", 80))


def test_this_host_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door, socket.socket() as knock:
        knock.connect(door.getsockname())
        assert knock.getpeername() == door.getsockname()
