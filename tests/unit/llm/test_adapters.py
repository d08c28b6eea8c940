"""Role adapters in the real engine: random ones, over a random model whose numbers are exact.

The six rules of `llm/local/adapters.py`; the base and each adapter are held to transformers and
PEFT, which keep no cache between calls.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save_tiny_gguf, tiny_pair

from osler.errors import CapabilityMissing, ModelError, ModelMissing
from osler.llm.core.base import Adapted, Completion, Message, Sampling
from osler.llm.core.grammar import Grammar, chars, repeat
from osler.llm.local.gguf_files import INVOCATION, RANK, read_adapter, read_base
from osler.llm.local.model import LlamaCpp
from osler.llm.transformers.hub import ModelPair, silence_transformers
from osler_lab.train.tune.export import write_adapter_gguf

pytestmark = [
    pytest.mark.model,
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

ROLES = ("plan", "split", "move", "rewrite")
LONG = "Oral iron treats iron deficiency anaemia. " * 100
# Letters are whole tokens: of parts of characters an adapter's log-probabilities are not told.
WORD = Grammar("word", repeat(chars("", ("a", "z")), 60, 60))
ASKED = [Message("user", LONG + "How often is it taken?")]


def adapt(folder: Path, role: str, seed: int = 0, invocation: str | None = None) -> Any:
    """Saves a random aLoRA as a training would, and returns the adapted model."""
    import peft
    import torch

    pair = tiny_pair(context=2048)
    spelt = f"<|im_end|>{role}\n" if invocation is None else invocation
    ids = pair.tokenizer(spelt, add_special_tokens=False)["input_ids"]
    config = peft.LoraConfig(
        r=4,
        lora_alpha=16,
        target_modules=["q_proj", "k_proj", "v_proj"],
        alora_invocation_tokens=ids,
        init_lora_weights=False,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(), silence_transformers():
        torch.manual_seed(seed)
        adapted = peft.get_peft_model(pair.model, config)
        for name, values in adapted.named_parameters():
            if "lora_" in name:
                torch.nn.init.normal_(values, std=0.25)
        adapted.save_pretrained(folder)
    lora = {"prompt": f"test/{role}", "invocation": spelt}
    (folder / "run.json").write_text(json.dumps({"recipe": {"lora": lora}}), encoding="utf-8")
    return adapted.eval()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gguf(tmp_path_factory.mktemp("base") / "tiny.gguf", tiny_pair(context=2048))


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Path]]:
    """Role -> the model as PEFT has it, and the GGUF file of its adapter."""
    made = {}
    for seed, role in enumerate(ROLES):
        folder = tmp_path_factory.mktemp(role)
        adapted = adapt(folder, role, seed)
        made[role] = (adapted, write_adapter_gguf(folder, base, folder / f"{role}.gguf"))
    return made


@pytest.fixture(scope="module")
def model(base: Path, trained: dict[str, tuple[Any, Path]]) -> LlamaCpp:
    files = [file for _, file in trained.values()]
    return LlamaCpp(base, name="tiny", context=2048, slots=4, adapters=files)


@pytest.fixture(scope="module")
def plain(base: Path) -> LlamaCpp:
    return LlamaCpp(base, name="plain", context=2048)


def greedy(role: str = "") -> Sampling:
    adapter = f"test/{role}" if role else ""
    return Sampling(temperature=0.0, max_tokens=6, adapter=adapter, grammar=WORD)


def numbers(reply: Completion) -> list[float]:
    return [token.logprob for token in reply.tokens]


def weighed_by_peft(adapted: Any, role: str, said: Sequence[str]) -> list[float]:
    """Log-probabilities of the tokens after the prompt, under the adapted model."""
    import torch

    tokenizer = tiny_pair().tokenizer
    turns = [{"role": one.role, "content": one.content} for one in ASKED]
    text = tokenizer.apply_chat_template(turns, tokenize=False) + f"<|im_end|>{role}\n"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    reply = tokenizer.convert_tokens_to_ids(list(said))
    with torch.no_grad():
        logits = adapted(input_ids=torch.tensor([[*ids, *reply]])).logits[0]
    logprobs = logits[len(ids) - 1 :].log_softmax(-1)
    return [float(logprobs[place, token]) for place, token in enumerate(reply)]


async def test_a_role_call_reads_its_invocation_and_the_base_stays_what_it_was(
    model: LlamaCpp, plain: LlamaCpp
) -> None:
    assert isinstance(model, Adapted)
    assert model.adapters == {f"test/{role}" for role in ROLES}
    assert plain.adapters == frozenset()
    alone = await plain.complete(ASKED, greedy())
    first = await model.complete(ASKED, greedy())
    assert first.usage.prompt_tokens >= 800
    assert numbers(first) == pytest.approx(numbers(alone), abs=1e-4)
    for role in ROLES:
        reply = await model.complete(ASKED, greedy(role))
        assert reply.usage.prompt_tokens - reply.usage.cached_tokens <= 16
        assert numbers(reply) != pytest.approx(numbers(first), abs=0.1)
        again = await model.complete(ASKED, greedy())
        assert again.usage.prompt_tokens - again.usage.cached_tokens <= 16
        assert again.text == first.text
        assert numbers(again) == pytest.approx(numbers(first), abs=1e-4)


async def test_two_hundred_mixed_calls_leave_the_base_as_it_is(
    base: Path, trained: dict[str, tuple[Any, Path]]
) -> None:
    """Beside an engine without adapters that reads the same prompts, so in the same batches."""
    order = random.Random(7)
    files = [file for _, file in trained.values()]
    mixed = LlamaCpp(base, name="mixed", context=2048, adapters=files)
    without = LlamaCpp(base, name="without", context=2048)
    asked = [[Message("user", f"{word} " * 40)] for word in ("Iron", "Vitamin", "Adrenaline")]
    roles: dict[tuple[int, str], list[float]] = {}
    for _ in range(200):
        place, role = order.randrange(len(asked)), order.choice(["", *ROLES])
        found = numbers(await mixed.complete(asked[place], greedy(role)))
        if role:
            prompt = mixed._engine.apply_template(asked[place], role=f"test/{role}")
            await without.complete([Message("raw", prompt)], greedy())
            first = roles.setdefault((place, role), found)
            assert found == pytest.approx(first, abs=0.02)
        else:
            exact = numbers(await without.complete(asked[place], greedy()))
            assert found == pytest.approx(exact, abs=1e-4)
    assert len(roles) == len(asked) * len(ROLES)


async def test_four_roles_at_once_say_what_each_says_alone(model: LlamaCpp) -> None:
    alone = [await model.complete(ASKED, greedy(role)) for role in ROLES]
    together = await asyncio.gather(*(model.complete(ASKED, greedy(role)) for role in ROLES))
    for one, other in zip(alone, together, strict=True):
        assert other.text == one.text
        # Calls that share a batch are summed in another order.
        assert numbers(other) == pytest.approx(numbers(one), abs=0.02)


@pytest.mark.parametrize("role", ROLES)
async def test_the_engine_says_token_by_token_what_peft_says(
    model: LlamaCpp, trained: dict[str, tuple[Any, Path]], role: str
) -> None:
    """The file's invocation lacks its first token: llama.cpp adapts from one token earlier."""
    await model.complete(ASKED, greedy())  # the prefix is the base's, from its cache
    reply = await model.complete(ASKED, greedy(role))
    exact = weighed_by_peft(trained[role][0], role, [token.text for token in reply.tokens])
    assert numbers(reply) == pytest.approx(exact, abs=0.03)


async def test_a_base_prompt_that_spells_an_invocation_is_read_anew(
    model: LlamaCpp, plain: LlamaCpp
) -> None:
    """Else the base would go on past the adapter's tokens in one prefix."""
    role = await model.complete(ASKED, greedy("plan"))
    turn = f"<|im_start|>user\n{ASKED[0].content}<|im_end|>\n<|im_end|>plan\n{role.text}"
    spelt = [Message("raw", turn + " and so on")]
    mine, exact = await model.complete(spelt, greedy()), await plain.complete(spelt, greedy())
    assert numbers(mine) == pytest.approx(numbers(exact), abs=0.02)
    assert mine.usage.cached_tokens == 0


async def test_the_engine_refuses_two_adapters_in_one_request(model: LlamaCpp) -> None:
    import threading

    both = [{"id": 0, "scale": 1.0}, {"id": 1, "scale": 1.0}]
    request = {"prompt": "a<|im_end|>plan\n", "n_predict": 1, "lora": both, "id_slot": 0}
    with pytest.raises(ModelError, match="multiple aLoRAs"):
        model._engine.run_request(request, threading.Event())


async def test_an_adapter_that_is_not_there_is_named(model: LlamaCpp, plain: LlamaCpp) -> None:
    for one in (model, plain):
        with pytest.raises(CapabilityMissing, match="no adapter for test/judge"):
            await one.complete(ASKED, greedy("judge"))


# Bad files, each refused before the first call


def rewrite(file: Path, target: Path, **changed: Any) -> Path:
    """Copies an adapter with other fields on its card; `None` leaves one out."""
    import gguf

    reader = gguf.GGUFReader(file)
    writer = gguf.GGUFWriter(target, "llama")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = changed.get(name.rpartition(".")[2], field.contents())
        if value is not None:
            kind, *inner = field.types
            writer.add_key_value(name, value, kind, sub_type=inner[0] if inner else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def cut_short(file: Path, target: Path) -> Path:
    target.write_bytes(file.read_bytes()[:-400])
    return target


def refuse(base: Path, *files: Path) -> pytest.ExceptionInfo[ModelError]:
    with pytest.raises(ModelError) as refused:
        LlamaCpp(base, name="tiny", context=512, adapters=files).load()
    return refused


BROKEN: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "of another rank than its card says": (
        lambda file, to: rewrite(file, to, rank=8),
        "has rank 4, and its card says 8",
    ),
    "plain": (lambda file, to: rewrite(file, to, invocation_tokens=None), "is a plain LoRA"),
    "split otherwise": (
        lambda file, to: rewrite(file, to, invocation="<|im_end|>plans\n"),
        "splits its invocation .* otherwise",
    ),
    "without a special token": (
        lambda file, to: rewrite(file, to, invocation="\nplan\n"),
        "begins with no special token",
    ),
    "begun as a turn": (
        lambda file, to: rewrite(file, to, invocation="<|im_start|>plan\n"),
        "begins as every turn does",
    ),
    "truncated": (cut_short, "cut short, or no GGUF"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_bad_adapter_is_refused_by_name(
    fault: str, base: Path, trained: dict[str, tuple[Any, Path]], tmp_path: Path
) -> None:
    make, told = BROKEN[fault]
    refused = refuse(base, make(trained["plan"][1], tmp_path / "bad.gguf"))
    refused.match(told)
    refused.match(r"bad\.gguf")


def test_an_adapter_of_another_base_or_none_or_two_for_one_role_are_refused(
    base: Path, trained: dict[str, tuple[Any, Path]], tmp_path: Path
) -> None:
    file = trained["plan"][1]
    refuse(base, file, file).match("for the same prompts")
    refuse(base, base).match("is not an adapter")
    other = save_tiny_gguf(tmp_path / "other.gguf", _wider_pair())
    refuse(other, file).match("is of another base: .* does not fit")
    twin = save_tiny_gguf(tmp_path / "twin.gguf", _retrained_pair())
    refuse(twin, file).match("is of another base: its shapes fit, its numbers are others")
    with pytest.raises(ModelMissing, match="is not there"):
        LlamaCpp(base, name="tiny", adapters=[tmp_path / "absent.gguf"]).load()


def _wider_pair() -> ModelPair:
    from transformers import LlamaConfig, LlamaForCausalLM

    pair = tiny_pair()
    config = LlamaConfig(**{**pair.model.config.to_dict(), "hidden_size": 64})
    return ModelPair(LlamaForCausalLM(config).eval(), pair.tokenizer)


def _retrained_pair() -> ModelPair:
    from copy import deepcopy

    pair = tiny_pair(context=2048)
    model = deepcopy(pair.model)
    model.model.norm.weight.data *= 1.5
    return ModelPair(model, pair.tokenizer)


def test_an_adapter_without_its_base_on_the_card_is_taken_by_its_shapes(
    base: Path, trained: dict[str, tuple[Any, Path]], tmp_path: Path
) -> None:
    old = rewrite(trained["plan"][1], tmp_path / "old.gguf", base=None)
    read_adapter(old).check_base(read_base(base))


def test_the_card_says_rank_and_invocation(trained: dict[str, tuple[Any, Path]]) -> None:
    import gguf

    file = trained["plan"][1]
    fields = gguf.GGUFReader(file).fields
    assert fields[RANK].contents() == 4
    assert fields[INVOCATION].contents() == "<|im_end|>plan\n"
    adapter = read_adapter(file)
    assert adapter.prompt == "test/plan"
    assert len(adapter.maps) == 2 * 3
