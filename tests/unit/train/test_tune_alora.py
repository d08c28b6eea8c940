"""A role adapter from records to the engine that serves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save_tiny_gguf, tiny_pair

from osler.errors import BadConfig
from osler.llm.core.base import Message, Sampling
from osler.llm.local.model import LlamaCpp
from osler_lab.evaluate.trained_on import list_beside, read_trained_on
from osler_lab.train.record import SftRecord
from osler_lab.train.tune import jobs
from osler_lab.train.tune.encode import ChatEncoder
from osler_lab.train.tune.export import is_alora, write_adapter_gguf
from osler_lab.train.tune.jobs import TuningJob
from osler_lab.train.tune.model import prepare_model
from osler_lab.train.tune.recipe import OMNI_SFT, AloraSettings, LoraSettings

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::UserWarning")]

INVOCATION = "<|im_end|>plan\n"
QUICK = OMNI_SFT.with_changes(
    batch=4,
    micro=4,
    learning_rate=2e-2,
    epochs=12,
    save_every=4,
    lora=AloraSettings(prompt="test/plan", invocation=INVOCATION),
)
ASKED = "Plan the search for this question, please: iron"


def write_data(file: Path) -> Path:
    rows = [
        {
            "id": str(n),
            "messages": [{"role": "user", "content": f"{ASKED} {n}"}],
            "completion": "ir",
            "meta": {"question_digest": f"{n:016x}"},
        }
        for n in range(12)
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gguf(tmp_path_factory.mktemp("base") / "tiny.gguf", tiny_pair())


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alora")
    data = write_data(folder / "data.jsonl")
    found = jobs.run_tuning(TuningJob("sft", base, data, folder / "out", QUICK))
    assert found.last < found.first / 2
    return folder / "out"


def test_an_alora_changes_attention_and_waits_for_its_invocation(trained: Path) -> None:
    config = json.loads((trained / "adapter_config.json").read_text())
    ids = tiny_pair().tokenizer(INVOCATION, add_special_tokens=False)["input_ids"]
    assert config["alora_invocation_tokens"] == ids
    assert set(config["target_modules"]) == {"q_proj", "k_proj", "v_proj"}
    assert is_alora(trained)


def test_nothing_before_the_invocation_is_changed(trained: Path, base: Path) -> None:
    import torch

    pair = prepare_model(base, QUICK, adapter=trained, device="cpu")
    ids = pair.tokenizer(ASKED + INVOCATION + "find", add_special_tokens=False)["input_ids"]
    plain = tiny_pair()
    before = len(pair.tokenizer(ASKED, add_special_tokens=False)["input_ids"])
    with torch.no_grad():
        adapted = pair.model.eval()(input_ids=torch.tensor([ids])).logits[0]
        exact = plain.model(input_ids=torch.tensor([ids])).logits[0]
    assert adapted[:before] == pytest.approx(exact[:before], abs=1e-4)
    assert (adapted[before:] - exact[before:]).abs().max() > 0.1


@pytest.mark.model
async def test_the_engine_serves_what_was_learnt_for_its_prompts_alone(
    trained: Path, base: Path, tmp_path: Path
) -> None:
    file = write_adapter_gguf(trained, base, tmp_path / "plan.gguf")
    model = LlamaCpp(base, name="tiny", context=256, adapters=[file])
    asked = [Message("user", f"{ASKED} 7")]
    greedy: dict[str, Any] = {"temperature": 0.0, "max_tokens": 16}
    reply = await model.complete(asked, Sampling(**greedy, adapter="test/plan"))
    assert (reply.text, reply.finish) == ("ir", "stop")
    assert (await model.complete(asked, Sampling(**greedy))).text != "ir"
    assert len(read_trained_on(list_beside(file))) == 12


def test_a_reply_is_learnt_as_it_is_served() -> None:
    tokenizer = tiny_pair().tokenizer
    encoder = ChatEncoder(tokenizer, name="tiny", invocation=INVOCATION)
    turns = [{"role": "user", "content": "Hello"}]
    record = {"id": "1", "messages": turns, "completion": "find"}
    text = encoder.encode_sample(SftRecord.model_validate(record))
    opened = f"<|im_start|>user\nHello<|im_end|>\n{INVOCATION}"
    assert tokenizer.decode(text.tokens) == opened + "find<|im_end|>"
    learnt = [token for token, learns in zip(text.tokens, text.learns, strict=True) if learns]
    assert tokenizer.decode(learnt) == "find<|im_end|>"


@pytest.mark.parametrize("invocation", ["plan\n", "<|im_end|>"])
def test_an_invocation_that_is_not_told_apart_is_refused(invocation: str, base: Path) -> None:
    lora = AloraSettings(prompt="test/plan", invocation=invocation)
    with pytest.raises(BadConfig, match="does not begin with a special token"):
        prepare_model(base, QUICK.with_changes(lora=lora), device="cpu")


def test_a_plain_lora_is_no_role_adapter(base: Path, tmp_path: Path) -> None:
    pair = prepare_model(base, QUICK.with_changes(lora=LoraSettings(rank=2)), device="cpu")
    jobs.save_model(pair, tmp_path)
    assert not is_alora(tmp_path)
