"""Continued pre-training from texts to weights, on a model of two layers."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save_tiny, tiny_pair

from osler.errors import BadConfig
from osler.llm.transformers.hub import load_pair
from osler_lab.train.tune import jobs
from osler_lab.train.tune.corpus import Corpus, CorpusSource
from osler_lab.train.tune.encode import EncodedText
from osler_lab.train.tune.jobs import TuningJob
from osler_lab.train.tune.loss import perplexity
from osler_lab.train.tune.recipe import PRETRAIN

pytestmark = pytest.mark.torch

QUICK = PRETRAIN.with_changes(
    batch=8, micro=8, max_tokens=32, learning_rate=5e-3, epochs=3, save_every=4
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    for name, said in (("en", "Oral iron, day {}."), ("zh", "口服铁剂，第{}天。")):
        told = [json.dumps({"text": said.format(n)}) for n in range(60)]
        (folder / f"{name}.jsonl").write_text("\n".join(told), encoding="utf-8")
    return Corpus(
        (
            CorpusSource("en", folder / "en.jsonl", None, 1.0),
            CorpusSource("zh", folder / "zh.jsonl", None, 3.0),
        ),
        0.2,
    )


@pytest.fixture(scope="module")
def read(base: Path, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("read") / "out"
    jobs.run_tuning(TuningJob("pretrain", base, corpus, out, QUICK))
    return out


def result(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "result.json").read_text()))


def test_perplexity_of_what_was_held_out_falls(read: Path, base: Path) -> None:
    told = result(read)
    before, after = told["tuned"]["perplexity"]
    assert set(before) == set(after) == {"en", "zh", "all"}
    assert all(after[name] < before[name] / 4 for name in before)
    assert [source["share"] for source in told["sources"]] == pytest.approx([0.25, 0.75], abs=0.03)
    card = (read / "README.md").read_text()
    assert f"| perplexity, before and after | {before['all']:.2f}, {after['all']:.2f} |" in card
    assert "continued pre-training, causal objective (TC-RAG, App. 8.3)" in card
    assert "| data | en, zh, sha256" in card
    assert str(base) not in card + (read / "result.json").read_text()


def test_the_model_that_is_left_is_the_one_that_was_told_of(read: Path, base: Path) -> None:
    row = EncodedText("a", (5, 6, 7, 8), (False, True, True, True))
    found = [perplexity(load_pair(folder).model, [row]) for folder in (base, read)]
    assert found[0] != pytest.approx(found[1], rel=0.01)
    assert {"model.safetensors", "tokenizer.json"} <= {path.name for path in read.iterdir()}


def test_perplexity_by_hand() -> None:
    """e to the mean over tokens, not over rows: windows differ in size."""
    import torch

    model = tiny_pair().model
    rows = [(5, 6, 7, 8, 9), (5, 9)]
    nats = []
    with torch.no_grad():
        for row in rows:
            logprobs = model(input_ids=torch.tensor([row])).logits[0].log_softmax(-1)
            nats += [-float(logprobs[n, token]) for n, token in enumerate(row[1:])]
    made = [EncodedText("", row, (False, *[True] * (len(row) - 1))) for row in rows]
    assert perplexity(model, made) == pytest.approx(math.exp(sum(nats) / 5), rel=1e-4)
    assert not model.training


def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    read: Path, base: Path, corpus: Corpus, tmp_path: Path
) -> None:
    """What a kill after the second checkpoint leaves: checkpoints, no result."""
    import shutil

    from safetensors.numpy import load_file

    out = tmp_path / "out"
    shutil.copytree(read, out)
    for name in ("model.safetensors", "result.json", "README.md"):
        (out / name).unlink()
    last = max((out / "checkpoints").iterdir(), key=lambda path: int(path.name[11:]))
    shutil.rmtree(last)
    found = jobs.run_tuning(TuningJob("pretrain", base, corpus, out, QUICK))
    assert 0 < found.resumed < found.steps
    whole, again = (load_file(folder / "model.safetensors") for folder in (read, out))
    for name, values in whole.items():
        assert again[name] == pytest.approx(values, abs=1e-5)
    assert result(out)["tuned"]["perplexity"][0] == result(read)["tuned"]["perplexity"][0]


def test_finished_pretraining_is_not_repeated_and_refuses_another_corpus(
    read: Path, base: Path, corpus: Corpus
) -> None:
    job = TuningJob("pretrain", base, corpus, read, QUICK)
    assert jobs.run_tuning(job).steps == result(read)["tuned"]["steps"]
    with pytest.raises(BadConfig, match="holds another training: data_sha256"):
        jobs.run_tuning(replace(job, data=replace(corpus, held_out=0.3)))


def test_a_dry_run_says_what_every_source_is(base: Path, corpus: Corpus, tmp_path: Path) -> None:
    plan = asdict(jobs.dry_run(TuningJob("pretrain", base, corpus, tmp_path / "out", QUICK)))
    assert plan["trained"] == plan["parameters"]
    assert plan["longest"] == 32
    assert [source["name"] for source in plan["sources"]] == ["en", "zh"]
    assert not (tmp_path / "out").exists()
