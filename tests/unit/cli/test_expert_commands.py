"""`osler experts` as it is typed."""

import json
import tomllib
from pathlib import Path
from typing import Any, Protocol

import pytest

from osler.retrieve.experts.cards import packaged_experts
from osler_lab.build.experts import SWITCHES


class Call(Protocol):
    def __call__(self, *args: str) -> Any: ...


def test_packaged_experts_are_listed(osler: Call) -> None:
    found = json.loads(osler("experts", "--json").stdout)["experts"]
    assert [one["name"] for one in found] == [one.card.name for one in packaged_experts()]
    used = {one["name"] for one in found if one["use"] not in ("", "off")}
    assert used == {"judge", "match", "supports"}, "in use by default"


@pytest.mark.parametrize("name", [one.card.name for one in packaged_experts()])
def test_a_packaged_expert_is_shown_with_its_figures(osler: Call, name: str) -> None:
    card = json.loads(osler("experts", name, "--json").stdout)
    assert card["name"] == name
    assert card["figures"]


def test_use_and_off_write_one_setting_and_keep_the_rest(osler: Call, folder: Path) -> None:
    file = folder / "osler.toml"
    file.write_text('# mine\n[retrieve]\nk = 7\n\n[answer]\n#judge = "off"\nstatements = 2\n')
    assert osler("experts", "judge", "--use").exit_code == 0
    used = tomllib.loads(file.read_text())
    assert used["answer"] == {"judge": "judge", "judge_path": "none", "statements": 2}
    assert used["retrieve"] == {"k": 7}
    assert "# mine" in file.read_text()
    listed = json.loads(osler("experts", "--json").stdout)["experts"]
    assert {one["name"]: one["use"] for one in listed}["judge"] == "packaged"
    assert osler("experts", "judge", "--off").exit_code == 0
    assert tomllib.loads(file.read_text())["answer"]["judge"] == "off"


def test_an_expert_that_nothing_uses_cannot_be_put_in_use(
    osler: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(SWITCHES, "supports")
    found = osler("experts", "supports", "--use")
    assert found.exit_code == 3
    assert "nothing uses an expert 'supports' yet" in found.stderr


def test_the_choice_of_yes_and_no_is_given_back_and_taken_again(osler: Call, folder: Path) -> None:
    file = folder / "osler.toml"
    assert osler("experts", "supports", "--off").exit_code == 0
    assert tomllib.loads(file.read_text())["answer"]["verdicts"] == "likelihood"
    assert osler("experts", "supports", "--use").exit_code == 0
    assert tomllib.loads(file.read_text())["answer"]["verdicts"] == "supports"


def test_an_expert_is_exported_whole_and_never_over_another(osler: Call) -> None:
    found = osler("experts", "supports", "--out", "copy", "--json")
    files = ["card.toml", "trained-on.txt", "weights.safetensors"]
    assert json.loads(found.stdout)["files"] == files
    again = osler("experts", "supports", "--out", "copy")
    assert again.exit_code == 3


@pytest.mark.parametrize("option", [[], ["--use"]])
def test_an_unknown_expert_is_an_error_with_its_fix(osler: Call, option: list[str]) -> None:
    found = osler("experts", "nobody", *option)
    assert found.exit_code == 5
    assert "`osler experts` lists them" in found.stderr
