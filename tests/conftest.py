"""What every test may rely on."""

import gc
import os
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A verdict on a commit must not hang on a draw: there (CI is set) the same examples are tried
# each time. Everywhere else they are new ones, so many runs of 50 try more than one of 200; and
# `make laws` tries 2,000.
SAME = bool(os.environ.get("CI"))
settings.register_profile("quick", max_examples=25, deadline=None, derandomize=SAME)
settings.register_profile(
    "full",
    max_examples=50,
    deadline=None,
    derandomize=SAME,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("laws", settings.get_profile("full"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "full"))

# Ray keeps the token of the home that it was first begun in, and the servers that it begins later
# read that of the home then: tests have homes of their own.
os.environ.setdefault("RAY_AUTH_TOKEN", "0" * 64)


def pytest_collection_finish() -> None:
    """What 14,000 tests and their imports hold stays: each look through it for garbage takes a
    second."""
    gc.collect()
    gc.freeze()


LOOPBACK = ("127.", "localhost", "::1", "0.0.0.0")  # noqa: S104  compared with, never bound


class UnaskedModelRequest(AssertionError):
    """A test reached a model that it did not ask for."""


@pytest.fixture(autouse=True)
def _no_model_unasked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model requests are off. A test that needs the embedded engine says so with
    `@pytest.mark.model`; servers are doubles on loopback, and no other host is ever reached."""

    def connect(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX and not str(address[0]).startswith(LOOPBACK):
            raise UnaskedModelRequest(f"a test reached for {address[0]}")
        return reached(self, address)

    reached = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", connect)
    if request.node.get_closest_marker("model") is None:
        from osler.llm.local import engine

        def load(self: engine.LlamaEngine) -> Any:
            engine.check_gguf(self.path)  # a file that is no model is refused without loading it
            raise UnaskedModelRequest(
                f"{request.node.nodeid} loads {self.name}; mark it with pytest.mark.model"
            )

        monkeypatch.setattr(engine.LlamaEngine, "load", load)


@pytest.fixture(autouse=True, scope="session")
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Anchors of audit logs lie outside of home: not in that of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data beside the checkout; a test that needs it says so when it is not there."""
    if not SHARED.is_dir():
        pytest.skip("real data is not there: ../shared/data")
    return SHARED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `torch` say why they do not run where the extra is not installed."""
    if all(find_spec(name) for name in ("torch", "transformers", "peft")):
        return
    skipped = pytest.mark.skip(reason='not installed: pip install "osler[train]"')
    for item in items:
        if item.get_closest_marker("torch"):
            item.add_marker(skipped)
