"""`osler experts …` as it is typed."""

import json
import tomllib
from pathlib import Path
from typing import Any, Protocol

import pytest

from osler.app.wiring.experts import SWITCHES
from osler.retrieve.experts.shelf import packaged_experts
from osler.testing.scripted import HashingEncoder
from osler.train.experts import supports_job
from osler.train.experts.jobs import EXPERT_KINDS
from osler.train.experts.splits import hash_of


class Call(Protocol):
    def __call__(self, *args: str) -> Any: ...


def claim(n: int) -> dict[str, Any]:
    """A yes/no question whose evidence has a null finding where the answer is no."""
    word = ("yes", "no", "yes")[n % 3]
    said = {
        "yes": "It was effective and improved survival.",
        "no": "There was no significant difference.",
    }[word]
    return {
        "QUESTION": f"Does treatment {n} help?",
        "CONTEXTS": [said],
        "LABELS": ["RESULTS"],
        "LONG_ANSWER": said,
        "final_decision": word,
    }


@pytest.fixture
def data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    # The commands run in a home without the packaged encoder's weights.
    monkeypatch.setattr(supports_job, "MiniLMEncoder", lambda threads: HashingEncoder())
    claims = {str(n): claim(n) for n in range(60)}
    (folder / "ori_pqal_rest.json").write_text(json.dumps(claims))
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for n in range(60):
        part = "test" if n % 4 == 0 else "dev" if n % 10 == 1 else "train"
        parts[part] += [hash_of(f"pubmedqa:{n}"), hash_of(f"PMID:{n}")]
    (folder / "split.json").write_text(json.dumps(parts))
    return str(folder)


def test_an_expert_is_trained_measured_and_shown(osler: Call, data: str) -> None:
    where = ("--data", data, "--split", "split.json")
    trained = osler("experts", "train", "supports", *where, "--out", "mine", "--json")
    assert trained.exit_code == 0, trained.stderr
    assert json.loads(trained.stdout)["figures"] == []
    measured = osler("experts", "evaluate", "supports", *where, "--folder", "mine", "--json")
    assert measured.exit_code == 0, measured.stderr
    figures = {(one["on"], one["measure"]): one for one in json.loads(measured.stdout)["figures"]}
    accuracy = figures["test: pubmedqa", "accuracy"]
    assert accuracy["expert"]["value"] > 0.8 > accuracy["rule_figure"]["value"]
    shown = osler("experts", "show", "supports", "--folder", "mine")
    assert "majority" in shown.stdout
    assert "pubmedqa" in shown.stdout


def test_training_never_reads_a_test_question(osler: Call, data: str, folder: Path) -> None:
    """Test questions whose answers are turned round leave the weights as they are."""
    from osler.train.experts.claims import read_claims
    from osler.train.experts.splits import read_split

    where = ("--data", data, "--split", "split.json")
    osler("experts", "train", "supports", *where, "--out", "one")
    held = read_split(folder / "split.json").choose_items(read_claims(folder), "test")
    claims = json.loads((folder / "ori_pqal_rest.json").read_text())
    for one in held:
        claims[one.id.partition(":")[2]]["final_decision"] = "yes"
    (folder / "ori_pqal_rest.json").write_text(json.dumps(claims))
    osler("experts", "train", "supports", *where, "--out", "two")
    assert len(held) > 10
    weights = [(folder / name / "weights.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]


def test_packaged_experts_are_listed(osler: Call) -> None:
    found = json.loads(osler("experts", "list", "--json").stdout)["experts"]
    assert [one["name"] for one in found] == [one.card.name for one in packaged_experts()]
    used = {one["name"] for one in found if one["use"] not in ("", "off")}
    assert used == {"judge", "match", "supports"}, "in use by default"


@pytest.mark.parametrize("name", [one.card.name for one in packaged_experts()])
def test_a_packaged_expert_is_shown_with_its_figures(osler: Call, name: str) -> None:
    card = json.loads(osler("experts", "show", name, "--json").stdout)
    assert card["name"] == name
    assert card["figures"]


def test_use_and_off_write_one_setting_and_keep_the_rest(osler: Call, folder: Path) -> None:
    file = folder / "osler.toml"
    file.write_text('# mine\n[retrieve]\nk = 7\n\n[answer]\n#judge = "off"\nstatements = 2\n')
    assert osler("experts", "use", "judge").exit_code == 0
    used = tomllib.loads(file.read_text())
    assert used["answer"] == {"judge": "judge", "judge_path": "none", "statements": 2}
    assert used["retrieve"] == {"k": 7}
    assert "# mine" in file.read_text()
    listed = json.loads(osler("experts", "list", "--json").stdout)["experts"]
    assert {one["name"]: one["use"] for one in listed}["judge"] == "packaged"
    assert osler("experts", "off", "judge").exit_code == 0
    assert tomllib.loads(file.read_text())["answer"]["judge"] == "off"


def test_an_expert_that_nothing_uses_cannot_be_put_in_use(
    osler: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(SWITCHES, "supports")
    found = osler("experts", "use", "supports")
    assert found.exit_code == 3
    assert "nothing uses an expert 'supports' yet" in found.stderr


def test_the_choice_of_yes_and_no_is_given_back_and_taken_again(osler: Call, folder: Path) -> None:
    file = folder / "osler.toml"
    assert osler("experts", "off", "supports").exit_code == 0
    assert tomllib.loads(file.read_text())["answer"]["verdicts"] == "likelihood"
    assert osler("experts", "use", "supports").exit_code == 0
    assert tomllib.loads(file.read_text())["answer"]["verdicts"] == "supports"


def test_an_expert_is_exported_whole_and_never_over_another(osler: Call) -> None:
    found = osler("experts", "export", "supports", "--out", "copy", "--json")
    files = ["card.toml", "trained-on.txt", "weights.safetensors"]
    assert json.loads(found.stdout)["files"] == files
    again = osler("experts", "export", "supports", "--out", "copy")
    assert again.exit_code == 3


@pytest.mark.parametrize("verb", ["show", "use"])
def test_an_unknown_expert_is_an_error_with_its_fix(osler: Call, verb: str) -> None:
    found = osler("experts", verb, "nobody")
    assert found.exit_code == 5
    assert "osler experts list" in found.stderr


def test_an_unknown_expert_cannot_be_trained(osler: Call) -> None:
    found = osler("experts", "train", "nobody", "--data", ".", "--split", "s.json", "--out", "o")
    assert found.exit_code == 3
    assert all(name in found.stderr for name in EXPERT_KINDS)


@pytest.mark.parametrize(
    ("name", "more", "code", "said"),
    [
        ("teacher", (), 3, "--teacher"),
        ("match", (), 3, "--teacher"),
        ("judge", ("--seeds", "4"), 2, "--seeds"),
        ("judge", ("--device", "cuda"), 3, "judge_labels"),
    ],
)
def test_what_a_training_needs_is_told(
    osler: Call, data: str, name: str, more: tuple[str, ...], code: int, said: str
) -> None:
    where = ("--data", data, "--split", "split.json", "--out", "mine")
    found = osler("experts", "train", name, *where, *more)
    assert (found.exit_code, said in found.stderr) == (code, True), found.stderr
