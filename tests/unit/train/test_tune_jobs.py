"""Trainings from files to files, on a model of two layers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save_tiny, tiny_pair

from osler.errors import BadConfig, BadRun, ModelError, ModelMissing
from osler_lab.evaluate.trained_on import TRAINED_ON, read_trained_on
from osler_lab.train.tune import jobs, loop
from osler_lab.train.tune.jobs import TuningJob
from osler_lab.train.tune.loop import MARK, latest_checkpoint
from osler_lab.train.tune.recipe import OMNI_DPO, OMNI_SFT, THINKER, LoraSettings, TuningRecipe

pytestmark = pytest.mark.torch

QUICK = OMNI_SFT.with_changes(batch=4, micro=2, learning_rate=5e-3, epochs=2, save_every=2)

ONCE = QUICK.with_changes(epochs=1, save_every=50)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("model") / "tiny")


def data(folder: Path, kind: str) -> Path:
    """Twelve questions with plans; of the worse plans none names a book."""
    file = folder / f"{kind}.jsonl"
    lines: list[dict[str, Any]] = []
    for n in range(12):
        asked = [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": f"Plan the search for this question, please: {n}"},
        ]
        good, bad = f"<book> iron {n} </book>", f"<wiki> what is {n} </wiki>"
        meta = {"question_digest": f"{n:015x}{'d' if kind == 'dpo' else 'a'}"}
        line: dict[str, Any] = {"id": str(n), "messages": asked, "meta": meta}
        if kind == "dpo":
            line |= {"chosen": good, "rejected": bad}
        elif kind == "sft":
            line |= {"completion": good}
        else:
            more = [{"role": "user", "content": "and?"}, {"role": "assistant", "content": bad}]
            line["messages"] = [*asked, {"role": "assistant", "content": good}, *more]
        lines.append(line)
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return file


def logged(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def weights(folder: Path) -> Any:
    from safetensors.numpy import load_file

    return load_file(folder / "adapter_model.safetensors")


@pytest.fixture(scope="module")
def tuned(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sft")
    found = jobs.run_tuning(TuningJob("sft", base, data(folder, "sft"), folder / "out", QUICK))
    assert (found.steps, found.resumed) == (6, 0)
    return folder / "out"


def test_sft_learns_and_leaves_an_adapter_with_its_card(tuned: Path, base: Path) -> None:
    told = logged(tuned)
    assert [line["step"] for line in told] == [1, 2, 3, 4, 5, 6]
    assert told[-1]["loss"] < told[0]["loss"] - 0.5
    assert all(line["learning_rate"] <= 5e-3 for line in told)
    config = json.loads((tuned / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "tiny"
    assert (config["r"], config["lora_alpha"]) == (16, 32)
    card = (tuned / "README.md").read_text()
    assert card.startswith('---\nbase_model: "tiny"\nlibrary_name: "peft"\n')
    assert str(base) not in card + (tuned / "result.json").read_text()


def test_a_training_that_is_done_is_not_done_again(tuned: Path, base: Path) -> None:
    job = TuningJob("sft", base, tuned.parent / "sft.jsonl", tuned, QUICK)
    before = (tuned / "adapter_model.safetensors").stat().st_mtime_ns
    assert jobs.run_tuning(job).steps == 6
    assert (tuned / "adapter_model.safetensors").stat().st_mtime_ns == before


def test_another_training_does_not_mix_into_the_folder(tuned: Path, base: Path) -> None:
    file = tuned.parent / "sft.jsonl"
    with pytest.raises(BadConfig, match="holds another training: recipe"):
        jobs.run_tuning(TuningJob("sft", base, file, tuned, QUICK.with_changes(seed=7)))


def test_dpo_begins_at_its_reference_and_widens_the_margin(
    tuned: Path, base: Path, tmp_path: Path
) -> None:
    recipe = OMNI_DPO.with_changes(batch=4, micro=2, learning_rate=5e-3, epochs=2)
    job = TuningJob("dpo", base, data(tmp_path, "dpo"), tmp_path / "out", recipe, adapter=tuned)
    jobs.run_tuning(job)
    told = logged(tmp_path / "out")
    learnt = read_trained_on(tmp_path / "out" / TRAINED_ON)
    # What the adapter had learnt in SFT, and the questions of DPO.
    assert learnt == {f"{n:015x}{kind}" for n in range(12) for kind in "ad"}
    assert told[0]["loss"] == pytest.approx(0.693147, abs=1e-4)
    assert told[-1]["loss"] < 0.4
    assert told[-1]["margin"] > 0.5
    assert len(json.loads((tmp_path / "out" / "reference.json").read_text())) == 12
    assert any((weights(tmp_path / "out")[n] != v).any() for n, v in weights(tuned).items())


def test_a_thinker_learns_all_its_turns_with_all_its_weights(base: Path, tmp_path: Path) -> None:
    recipe = THINKER.with_changes(batch=4, epochs=1, learning_rate=1e-3, max_tokens=512)
    jobs.run_tuning(TuningJob("thinker", base, data(tmp_path, "thinker"), tmp_path / "out", recipe))
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
    assert 'library_name: "transformers"' in (tmp_path / "out" / "README.md").read_text()


@pytest.fixture(scope="module")
def plain(base: Path, tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """Losses of one epoch, two samples at once."""
    return losses(base, tmp_path_factory.mktemp("plain"), ONCE)


def losses(base: Path, folder: Path, recipe: TuningRecipe) -> list[float]:
    jobs.run_tuning(TuningJob("sft", base, data(folder, "sft"), folder / "out", recipe))
    return [line["loss"] for line in logged(folder / "out")]


@pytest.mark.parametrize(
    "recipe",
    [ONCE.with_changes(micro=4), ONCE.with_changes(recompute=True)],
    ids=["micro", "recompute"],
)
def test_what_saves_memory_is_the_same_training(
    base: Path, plain: list[float], tmp_path: Path, recipe: TuningRecipe
) -> None:
    assert len(plain) == 3
    assert losses(base, tmp_path, recipe) == pytest.approx(plain, abs=2e-3)


STOPS = """
import sys
from pathlib import Path
from osler_lab.train.tune import jobs, loop, recipe

seal = loop.seal_checkpoint

def stopping(checkpoint):
    seal(checkpoint)
    print("sealed", checkpoint.name, flush=True)
    sys.stdin.read()

loop.seal_checkpoint = stopping
quick = recipe.OMNI_SFT.with_changes(batch=4, micro=2, learning_rate=5e-3, epochs=2, save_every=2)
jobs.run_tuning(jobs.TuningJob("sft", *map(Path, sys.argv[1:]), quick))
"""
"""A training that goes no further than its first checkpoint."""


def test_a_training_killed_at_any_step_ends_as_one_that_was_not(
    base: Path, tuned: Path, tmp_path: Path
) -> None:
    file, out = data(tmp_path, "sft"), tmp_path / "out"
    work = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", STOPS, str(base), str(file), str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert work.stdout is not None
    try:
        assert "sealed checkpoint-2\n" in work.stdout
    finally:
        os.kill(work.pid, signal.SIGKILL)
        work.communicate()
    assert (out / "checkpoints" / "checkpoint-2" / MARK).is_file()
    assert not (out / "result.json").is_file()
    found = jobs.run_tuning(TuningJob("sft", base, file, out, QUICK))
    assert found.resumed == 2
    assert [line["step"] for line in logged(out)] == [1, 2, 3, 4, 5, 6]
    whole = weights(tuned)
    for name, values in weights(out).items():
        assert values == pytest.approx(whole[name], abs=1e-5)


def test_a_damaged_checkpoint_is_named_and_an_unfinished_one_passed_over(
    tuned: Path, tmp_path: Path
) -> None:
    import shutil

    folder = shutil.copytree(tuned / "checkpoints", tmp_path / "checkpoints")
    assert latest_checkpoint(folder) == folder / "checkpoint-6"
    (folder / "checkpoint-6" / MARK).unlink()
    assert latest_checkpoint(folder) == folder / "checkpoint-4"
    with (folder / "checkpoint-4" / "optimizer.pt").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(ModelMissing, match=r"checkpoint-4 is damaged: optimizer\.pt; delete"):
        latest_checkpoint(folder)
    assert latest_checkpoint(tmp_path / "none") is None


def test_a_dry_run_counts_and_writes_nothing(base: Path, tmp_path: Path) -> None:
    job = TuningJob("dpo", base, data(tmp_path, "dpo"), tmp_path / "out", QUICK)
    plan = asdict(jobs.dry_run(job))
    assert (plan["samples"], plan["long"], plan["steps"]) == (12, 0, 6)
    assert 0 < plan["trained"] < plan["parameters"]
    assert not (tmp_path / "out").exists()


def test_long_samples_are_refused_before_the_first_step(base: Path, tmp_path: Path) -> None:
    job = TuningJob(
        "sft", base, data(tmp_path, "sft"), tmp_path / "out", QUICK.with_changes(max_tokens=20)
    )
    with pytest.raises(BadConfig, match="12 of 12 samples are longer than 20 tokens"):
        jobs.run_tuning(job)


def test_lora_may_stand_beside_the_last_layers_only(base: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from osler_lab.train.tune.model import prepare_model

    recipe = replace(QUICK, lora=LoraSettings(top=1))
    names = [n for n, p in prepare_model(base, recipe).model.named_parameters() if p.requires_grad]
    assert names
    assert all(".layers.1." in name for name in names)
    with pytest.raises(BadConfig, match="the model has 2 layers"):
        prepare_model(base, replace(QUICK, lora=LoraSettings(top=3)))


@pytest.mark.parametrize("missing", ["folder", "adapter"])
def test_an_adapter_that_is_none_is_refused(base: Path, tmp_path: Path, missing: str) -> None:
    from osler_lab.train.tune.model import prepare_model

    with pytest.raises(BadConfig, match="not an adapter"):
        prepare_model(base, QUICK, adapter=tmp_path / missing)


def test_a_whole_training_with_an_adapter_is_refused(base: Path, tuned: Path) -> None:
    from osler_lab.train.tune.model import prepare_model

    with pytest.raises(BadConfig, match="merge it first"):
        prepare_model(base, THINKER, adapter=tuned)


def test_memory_that_runs_out_says_what_to_lessen() -> None:
    import torch

    for error in (torch.OutOfMemoryError("CUDA"), RuntimeError("can't allocate memory: 8 bytes")):
        told = pytest.raises(ModelError, match=r"out of memory with 2 samples.*--micro")
        with told, loop.clear_memory_errors(QUICK, ()):
            raise error
    with pytest.raises(RuntimeError, match="else"), loop.clear_memory_errors(QUICK, ()):
        raise RuntimeError("else")


def test_a_loss_that_is_no_number_stops_the_training(tmp_path: Path) -> None:
    log = loop.StepLog(tmp_path / "log.jsonl", 3, None)
    with pytest.raises(ModelError, match="the loss is nan at step 2; give a lower"):
        log.step(2, {"loss": float("nan")})


def test_a_run_file_that_cannot_be_read_is_told(base: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text("{")
    with pytest.raises(BadRun, match="cannot be read"):
        jobs.run_tuning(TuningJob("sft", base, data(tmp_path, "sft"), tmp_path / "out", QUICK))


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    pair = tiny_pair()
    pair.tokenizer.chat_template = None
    folder = save_tiny(tmp_path / "bare", pair)
    job = TuningJob("sft", folder, data(tmp_path, "sft"), tmp_path / "out", QUICK)
    with pytest.raises(ModelError, match="the tokenizer of bare has no chat template"):
        jobs.run_tuning(job)
