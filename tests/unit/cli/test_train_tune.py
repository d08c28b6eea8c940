"""`osler train tune` and `export` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import pytest
from tiny_models import save_tiny


class Call(Protocol):
    def __call__(self, *args: str) -> Any: ...


ASKED = [{"role": "user", "content": "Plan the search for this question, please."}]
LINES: dict[str, dict[str, Any]] = {
    "sft": {"messages": ASKED, "completion": "<book> iron </book>"},
    "dpo": {"messages": ASKED, "chosen": "<book> iron </book>", "rejected": "<wiki> what </wiki>"},
    "thinker": {"messages": [*ASKED, {"role": "assistant", "content": "<book> iron </book>"}]},
}


def data(kind: str, **other: Any) -> str:
    lines = [json.dumps({"id": str(n), **LINES[kind], **other}) for n in range(4)]
    Path("data.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return "data.jsonl"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.mark.parametrize("command", ["tune", "export"])
def test_help_names_the_folder_that_is_written(osler: Call, command: str) -> None:
    found = osler("train", command, "--help")
    assert found.exit_code == 0
    assert "--out" in found.stdout


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "whole"), [("sft", False), ("dpo", False), ("thinker", True)])
def test_a_dry_run_says_sizes_and_writes_nothing(
    osler: Call, base: str, kind: str, whole: bool
) -> None:
    words = ("--base", base, "--out", "out", "--batch", "2", "--max-tokens", "400", "--dry-run")
    found = osler("train", "tune", kind, data(kind), *words, "--json")
    assert found.exit_code == 0, found.stderr
    told = json.loads(found.stdout)
    assert (told["samples"], told["long"]) == (4, 0)
    assert (told["trained"] == told["parameters"]) is whole
    assert not Path("out").exists()


@pytest.mark.torch
def test_a_corpus_is_read_and_told_of_in_words(osler: Call, base: str) -> None:
    texts = [json.dumps({"text": f"Oral iron, day {n}."}) for n in range(40)]
    Path("en.jsonl").write_text("\n".join(texts), encoding="utf-8")
    Path("zh.txt").write_text("口服铁剂治疗缺铁性贫血。", encoding="utf-8")
    words = ["en.jsonl", "book=zh.txt", "--weight", "en=3", "--weight", "book=1"]
    more = ["--held-out", "0.2", "--max-tokens", "16", "--batch", "16", "--base", base]
    run = ("train", "tune", "pretrain", *words, *more, "--out", "out")
    plan = osler(*run, "--dry-run")
    assert plan.exit_code == 0, plan.stderr
    assert "share" in plan.stdout
    assert not Path("out").exists()
    found = osler(*run, "--learning-rate", "0.01")
    assert found.exit_code == 0, found.stderr
    assert "perplexity, all" in found.stdout
    assert (Path("out") / "model.safetensors").is_file()


@pytest.mark.torch
def test_what_was_tuned_is_merged_and_written_for_the_engine(osler: Call, base: str) -> None:
    from tiny_models import save_tiny_gguf, tiny_pair

    run = ("train", "tune", "sft", data("sft"), "--base", base, "--out", "out", "--epochs", "1")
    found = osler(*run, "--batch", "4", "--json")
    assert found.exit_code == 0, found.stderr
    told = json.loads(found.stdout)
    assert (told["steps"], told["folder"]) == (1, "out")
    merged = osler(
        "train", "export", "--adapter", "out", "--base", base, "--out", "merged", "--json"
    )
    assert json.loads(merged.stdout)["bytes"] > 100_000
    save_tiny_gguf(Path("like.gguf"), tiny_pair())
    words = ("--base", "merged", "--like", "like.gguf", "--storage", "f32")
    written = osler("train", "export", *words, "--out", "tuned.gguf")
    assert written.exit_code == 0, written.stderr
    assert Path("tuned.gguf").read_bytes()[:4] == b"GGUF"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sft", "none.jsonl"), "no training data none.jsonl"),
        (("dpo", "none.jsonl"), "no training data none.jsonl"),
        (("sft", "data.jsonl", "--epochs", "0"), "epochs is 0"),
        (("pretrain", "none.txt"), "no text files at none.txt"),
        (("pretrain", "a=x.txt", "a=y.txt"), "source names must be distinct"),
        (("pretrain", "a.txt", "--weight", "b=1"), "a weight for b, which is not a source"),
        (("pretrain", "a.txt", "--weight", "a=much"), "'a=much' is not a weight"),
        (("pretrain", "a.txt", "--held-out", "1"), "cannot be held out"),
        (("sft", "data.jsonl", "--beta", "1"), "an option of dpo is given with sft"),
        (("sft", "data.jsonl", "b.jsonl"), "one folder"),
        (("dpo", "data.jsonl", "--full"), "dpo takes no --full"),
        (("pretrain", "a.txt", "--adapter", "x"), "pretrain takes no --adapter"),
    ],
)
def test_what_makes_no_sense_is_refused_before_weights_are_loaded(
    osler: Call, words: tuple[str, ...], told: str
) -> None:
    data("sft")
    found = osler("train", "tune", *words, "--base", "none", "--out", "out", "--dry-run")
    assert found.exit_code != 0
    assert told in " ".join(found.stderr.split())
    assert not Path("out").exists()


@pytest.mark.torch
def test_long_samples_are_told_with_what_to_give(osler: Call, base: str) -> None:
    words = (
        "train",
        "tune",
        "sft",
        data("sft"),
        "--base",
        base,
        "--out",
        "out",
        "--max-tokens",
        "10",
    )
    found = osler(*words)
    assert found.exit_code != 0
    told = " ".join(found.stderr.split())
    assert "4 of 4 samples are longer than 10 tokens" in told
    assert "--skip-long" in told
