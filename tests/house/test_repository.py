"""The repository is fit to be published: pinned, without addresses, without a machine's paths."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

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


def read_project(package: str) -> dict[str, Any]:
    text = (ROOT / "packages" / package / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def test_the_packages_are_of_one_version_and_ask_for_it() -> None:
    core, *others = map(read_project, ("osler", "osler-lab", "osler-serve"))
    assert {one["version"] for one in others} == {core["version"]}
    same = f"osler=={core['version']}"
    assert all(same in one["dependencies"] for one in others)
    pinned = {name for extra in core["optional-dependencies"].values() for name in extra}
    own = {name for name in pinned if name.startswith("osler-")}
    assert own == {f"{one['name']}=={core['version']}" for one in others}


def test_every_package_has_the_licence() -> None:
    for name in ("LICENSE", "NOTICE"):
        folders = (ROOT, *(ROOT / "packages").iterdir())
        texts = {(folder / name).read_bytes() for folder in folders}
        assert len(texts) == 1


def test_every_dependency_is_pinned_with_hashes_and_no_address() -> None:
    names = {
        re.split(r"[<>=\[]", line)[0].lower().replace("_", "-")
        for line in read_project("osler")["dependencies"]
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
