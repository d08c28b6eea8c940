"""`osler attack` and `osler sigma`, whole but for the model, which is a script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from osler.build import Parts, roles_of
from osler.build.composers import evidence_gate
from osler.build.models import LoadedModel
from osler.llm.core.base import Completion, Message, Sampling, Scored
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Role, Settings
from osler.types import Hit, Passage, Usage
from osler_lab.studies import sensitivity as studies
from osler_lab.testing.scripted import HashingEncoder, ScriptedRetriever, tokens_of

FACT = "Laparoscopic repair of hernias is feasible."
NEAR = "Laparoscopic surgery needs a camera."
FAR = "Bananas are yellow."
SERVER = """
[model]
kind = "openai"
url = "http://127.0.0.1:9/v1"
name = "expert"

[strategy]
kind = "tc-rag"
"""


@dataclass
class Expert:
    """Follows the evidence: throws away what holds no fact, sums up what holds noise too."""

    name: str = "expert"

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        memory = "\n".join(message.content for message in messages[1:])
        if "Tool_Observation" not in memory and "Summary:" not in memory:
            return Completion("Tool_Use: DOC_RAG\nTool_Input: laparoscopic repair")
        if FACT not in memory:
            return Completion("Backtrack: this does not help")
        if NEAR in memory or FAR in memory:
            return Completion(f"Summary: {FACT}")
        return Completion(f"Conclusion: {FACT} [1] <answer>A</answer>")

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        return Scored(tokens_of(text, 1 / 12), Usage(calls=1))


class Unscored:
    name = "expert"
    complete = Expert.complete


@pytest.fixture(autouse=True)
def expert(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "osler.toml").write_text(SERVER, encoding="utf-8")
    ready = LoadedModel(Expert(), constrains=False)

    async def cast(settings: Settings, roles: Iterable[Role]) -> dict[Role, LoadedModel]:
        return dict.fromkeys(roles, ready)

    async def live(settings: Settings) -> Parts:
        found = ScriptedRetriever({"": [Passage("book:h#0", FACT, "book", "Hernia")]})
        models = await cast(settings, roles_of(settings))
        return Parts(models, lambda *_: found, OverlapRelevance(), OverlapRelevance(), ("book",))

    monkeypatch.setattr("osler_lab.studies.sensitivity.load_roles", cast)
    monkeypatch.setattr("osler_lab.studies.sensitivity.live_parts", live)
    monkeypatch.setattr(
        "osler_lab.studies.sensitivity.load_encoder", lambda settings: HashingEncoder()
    )


def noise_set(n: int, relevant: list[str]) -> str:
    return json.dumps(
        {
            "id": f"t{n}",
            "question": "Is laparoscopic repair feasible?",
            "answer": "yes",
            "gold": [{"id": f"g{n}", "text": FACT}],
            "distractor_relevant": [{"id": f"r{i}", "text": t} for i, t in enumerate(relevant)],
            "distractor_out_of_domain": [{"id": f"i{n}", "text": FAR}],
        }
    )


@pytest.fixture
def sets(folder: Path) -> Path:
    path = folder / "sets.jsonl"
    lines = [*(noise_set(n, [NEAR]) for n in range(4)), noise_set(4, [])]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_the_cells_of_an_expert_who_follows_the_evidence(osler: Any, sets: Path) -> None:
    """He backtracks from a replacement and sums up a mixture, always, and is right."""
    told = json.loads(osler("--set", "strategy.metric=off", "attack", str(sets), "--json").stdout)[
        "cells"
    ]
    clean = told.pop(0)
    assert (clean["kind"], clean["noise"], clean["unattacked"]) == ("clean", "none", 4)
    assert (clean["backtrack"]["value"], clean["em"]["value"], clean["cited"]["value"]) == (0, 1, 1)
    assert [(cell["kind"], cell["noise"]) for cell in told] == [
        (kind, noise)
        for kind in ("structural", "partial")
        for noise in ("irrelevant", "relevant", "mixed")
    ]
    for cell in told:
        shares = (cell["backtrack"]["value"], cell["summary"]["value"], cell["em"]["value"])
        assert shares == ((1, 0, 1) if cell["kind"] == "structural" else (0, 1, 1))
        assert (cell["em"]["n"], cell["unattacked"]) == (4, 0), "a set without noise is left out"
        assert cell["em"]["low"] == pytest.approx(0.5101, abs=1e-4)


def test_the_table_has_n_and_intervals(osler: Any, sets: Path) -> None:
    done = osler("--set", "strategy.metric=off", "attack", str(sets), "--limit", "3", "--quiet")
    assert done.exit_code == 0
    row = next(line for line in done.stdout.splitlines() if line.startswith("partial     mixed"))
    assert row.endswith("1 [0.439, 1]  3")


def test_without_noise_sets_it_says_so(osler: Any, folder: Path) -> None:
    (folder / "none.jsonl").write_text(noise_set(0, []), encoding="utf-8")
    done = osler("attack", "none.jsonl")
    assert done.exit_code == 2
    assert "no noise set" in done.stderr
    assert osler("attack", "missing.jsonl").exit_code == 2


@pytest.fixture
def questions(folder: Path) -> Path:
    path = folder / "q.jsonl"
    options = ["feasible", "not feasible"]
    row = {"question": "Is laparoscopic repair feasible?", "options": options, "answer": "A"}
    path.write_text(json.dumps(row), encoding="utf-8")
    return path


def test_a_sweep_over_both_metrics_is_kept_as_json(
    osler: Any, folder: Path, questions: Path
) -> None:
    """cppl is 12; uct of N tokens is N/12 · ln 12."""
    called = ("sigma", str(questions), "--cppl", "10,20", "--uct", "90", "--out", "s.json")
    done = osler(*called)
    assert done.exit_code == 0
    assert "written to s.json" in done.stdout
    told = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    rows = [(p["metric"], p["sigma"], p["halts"]["converged"]) for p in told["points"]]
    assert rows == [("cppl", 10, 0), ("cppl", 20, 1), ("uct", 90, 1)]
    assert [run["right"] for run in told["runs"]] == [True, True, True]
    assert "1 [0.207, 1]" in done.stdout


def test_a_sweep_without_likelihoods_says_which_metric_to_leave_out(
    osler: Any, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live(settings: Settings) -> Parts:
        models = dict.fromkeys(roles_of(settings), LoadedModel(Unscored(), constrains=False))
        found, likeness = ScriptedRetriever({}), OverlapRelevance()
        return Parts(models, lambda *_: found, likeness, likeness, ("book",))

    monkeypatch.setattr("osler_lab.studies.sensitivity.live_parts", live)
    done = osler("sigma", str(questions), "--uct", "90")
    assert "needs the likelihood" in done.stderr
    assert '--cppl ""' in done.stderr


def test_a_wrong_threshold_or_file_is_refused(osler: Any, questions: Path) -> None:
    assert osler("sigma", str(questions), "--cppl", "low").exit_code == 3
    assert osler("sigma", "missing.jsonl").exit_code == 2
    done = osler("sigma", str(questions), "--uct", "", "--out", "no/s.json")
    assert done.exit_code == 3
    assert "cannot be written" in done.stderr


async def test_an_attacked_run_is_sure_by_the_expert_that_any_run_has(sets: Path) -> None:
    settings = Settings.model_validate({"strategy": {"kind": "tc-rag", "metric": "sureness"}})
    targets = studies.read_noise(sets, limit=1, seed=0)
    parts = await studies.open_attacked_parts(settings, targets)
    hits = [Hit(targets[0].passages[0], 1.0, 1, "", "research")]
    weighed = await evidence_gate(settings, parts).weigh_evidence(targets[0].question, hits)
    assert weighed.sureness is not None
