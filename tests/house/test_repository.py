"""The repository is fit to be published: pinned, without addresses, without a machine's paths."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHOLE = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-docs.lock",
    "requirements-libraries.lock",
)


def tracked() -> list[Path]:
    listed = subprocess.run(  # noqa: S603
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_every_dependency_is_pinned_with_hashes_and_no_address() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = {
        re.split(r"[<>=\[]", line)[0].lower().replace("_", "-")
        for line in wanted["project"]["dependencies"]
    }
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text(encoding="utf-8")
        pinned = re.findall(r"^([a-z0-9._-]+)==([^\n]*)\n(    --hash=sha256:)?", text, re.MULTILINE)
        assert lock.name not in WHOLE or names <= {name for name, _, _ in pinned}
        assert all(hashed for _, _, hashed in pinned), lock.name
        assert "://" not in text


def test_no_file_names_a_machine_s_folders() -> None:
    rude = re.compile(rb"(?:^|[\s\"'(=])/(?:root|home|Users|work)/\w")
    mine = Path(__file__)
    assert [p for p in tracked() if p != mine and rude.search(p.read_bytes())] == []


def test_no_file_is_large() -> None:
    assert [p for p in tracked() if p.stat().st_size > 1_000_000] == []
