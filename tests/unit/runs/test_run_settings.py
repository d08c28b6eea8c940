"""Settings of runs that another version recorded."""

from pathlib import Path
from typing import Any

import pytest

from osler.errors import BadRun
from osler.runs.files import RunRecord, read_run_settings
from osler.settings import Settings, TcRagSettings


def recorded(settings: dict[str, Any]) -> RunRecord:
    """A record with nothing but its settings."""
    names = dict.fromkeys(RunRecord.__dataclass_fields__)
    return RunRecord(**{**names, "settings": settings})  # type: ignore[arg-type]


def test_keys_that_are_gone_are_left_out(tmp_path: Path) -> None:
    kept = Settings(strategy=TcRagSettings(k=7), home=tmp_path)
    old = kept.model_dump(mode="json")
    old["strategy"]["restore"] = "pop"
    old["answer"]["authority"] = True
    old["forgotten"] = {"section": 1}
    record = recorded(old)
    assert read_run_settings(tmp_path, record) == kept
    assert record.settings["strategy"]["restore"] == "pop", "the record stays as it is"


def test_a_value_that_is_not_taken_is_named(tmp_path: Path) -> None:
    old = Settings(home=tmp_path).model_dump(mode="json")
    old["retrieve"]["k"] = "many"
    with pytest.raises(BadRun, match="retrieve") as caught:
        read_run_settings(tmp_path, recorded(old))
    assert "version" in caught.value.fix
