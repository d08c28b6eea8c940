"""`osler kb record`: a patient's record in a file, and from there in the knowledge base."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("jwt")

from fhir_hospital import BASE, Hospital, make_client


@pytest.fixture
def hospital(monkeypatch: pytest.MonkeyPatch) -> Hospital:
    found = Hospital()
    opened = httpx2.Client
    transport = httpx2.MockTransport(found.answer)
    monkeypatch.setattr(httpx2, "Client", lambda **_: opened(transport=transport))
    return found


def test_the_record_is_a_file_for_its_owner_alone(
    osler: Any, folder: Path, hospital: Hospital
) -> None:
    hospital.tokens.add("good")
    (folder / "token").write_text("good\n")
    given = ("kb", "record", BASE, "p-1", "--out", "record.json")
    done = osler(*given, "--token-file", "token", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["resources"] == 3
    assert (folder / "record.json").stat().st_mode & 0o777 == 0o600
    again = osler(*given, "--token-file", "token")
    assert (again.exit_code, "cannot be written" in again.stderr) == (3, True)
    added = osler("kb", "add", "record.json", "--source", "emr")
    assert added.exit_code == 0, added.output


def test_a_client_with_its_key_needs_no_token(osler: Any, folder: Path, hospital: Hospital) -> None:
    client = make_client()
    (folder / "key.pem").write_text(client.key)
    given = ("kb", "record", BASE, "p-1", "--out", "record.json")
    refused = osler(*given)
    assert (refused.exit_code, "wants a token" in refused.stderr) == (3, True)
    assert not (folder / "record.json").exists()
    done = osler(*given, "--client", client.id, "--key", "key.pem", "--key-id", client.key_id)
    assert done.exit_code == 0, done.output
    assert (folder / "record.json").exists()
