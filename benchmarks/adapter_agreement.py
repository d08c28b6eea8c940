"""Whether the embedded engine says with a role adapter what PEFT says with it.

    python benchmarks/adapter_agreement.py WORK [--prompts N] [--tokens N] [--epochs N]

Trains a small aLoRA of the packaged model in WORK (questions made of three templates over half of
the names of the sample's conditions, a line of search words as the reply; goes on where it was
stopped), writes it as GGUF, and asks questions over the other half greedily in the engine: Q8_0
base, F16 adapter; with --wide the same base in float32, which the engine does not round what it
multiplies with. transformers reads each reply behind its prompt, with the base's numbers in
float32. Reported: replies of which every token is also PEFT's likeliest, and the differences of the
tokens' log-probabilities, in nats. This is about
the numbers of two engines, not about the adapter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.local.model import LlamaCpp
from osler.llm.local.quantise import default_gguf, wide_gguf
from osler.train.tune.adapter_gguf import write_adapter_gguf
from osler.train.tune.jobs import TuningJob, run_tuning
from osler.train.tune.model import prepare_model
from osler.train.tune.recipe import OMNI_SFT, AloraSettings

SAMPLES = 48
PROMPT, INVOCATION = "benchmark/words", "<|im_end|>words\n"
TEMPLATES = {
    "What is the treatment of {}?": "search: {} treatment",
    "How is {} diagnosed?": "search: {} diagnosis",
    "Which signs does {} have?": "search: {} signs",
}


def make_rows(names: list[str]) -> list[tuple[str, str]]:
    return [(ask.format(n), say.format(n)) for n, (ask, say) in product(names, TEMPLATES.items())]


def condition_names() -> list[str]:
    text = (files("osler") / "sample" / "graph" / "conditions.obo").read_text("utf-8")
    found = re.findall(r'^(?:name: |synonym: ")([^"\n]+)', text, re.MULTILINE)
    return sorted({name.lower() for name in found})


def train(work: Path, names: list[str], epochs: float) -> Path:
    lines = [
        {"id": str(i), "messages": [{"role": "user", "content": asked}], "completion": said}
        for i, (asked, said) in enumerate(make_rows(names)[:SAMPLES])
    ]
    work.mkdir(parents=True, exist_ok=True)
    data = work / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    lora = AloraSettings(prompt=PROMPT, invocation=INVOCATION)
    recipe = replace(OMNI_SFT, lora=lora).with_changes(
        epochs=epochs, batch=8, micro=8, learning_rate=2e-3, save_every=5
    )
    job = TuningJob("sft", default_gguf(), data, work / "adapter", recipe, name="packaged")
    tuned = run_tuning(job)
    print(f"{len(lines)} samples, {tuned.steps} steps, loss {tuned.first:.3f} to {tuned.last:.3f}")
    return work / "adapter"


async def say_all(model: LlamaCpp, asked: list[str], tokens: int) -> list[Completion]:
    sampling = Sampling(temperature=0.0, max_tokens=tokens, adapter=PROMPT)
    return [await model.complete([Message("user", one)], sampling) for one in asked]


def read_with_peft(pair: Any, asked: str, reply: Completion) -> tuple[bool, list[float]]:
    """Whether every token is PEFT's likeliest too, and the differences token by token."""
    import torch

    tokenizer = pair.tokenizer
    turn = [{"role": "user", "content": asked}]
    ids = tokenizer.apply_chat_template(turn, tokenize=False) + INVOCATION
    before = tokenizer(ids, add_special_tokens=False)["input_ids"]
    # The tokens that the engine chose: the text by itself may be split otherwise.
    pieces = [token.text.replace(" ", "Ġ").replace("\n", "Ċ") for token in reply.tokens]
    said = tokenizer.convert_tokens_to_ids(pieces)
    if len(said) and reply.finish == "stop" and said[-1] == tokenizer.eos_token_id:
        said.pop()
    if reply.finish == "stop":
        said = [*said, tokenizer.eos_token_id]
    with torch.no_grad():
        logits = pair.model(input_ids=torch.tensor([before + said])).logits[0].float()
    logprobs = logits[len(before) - 1 : -1].log_softmax(-1)
    ours = [float(logprobs[i, token]) for i, token in enumerate(said)]
    equal = logprobs.argmax(-1).tolist() == said
    pairs = zip((token.logprob for token in reply.tokens), ours, strict=False)
    return equal, [abs(one - other) for one, other in pairs]


def main(work: Path, prompts: int, tokens: int, epochs: float, *, wide: bool) -> None:
    names = condition_names()
    adapter = train(work, names[::2], epochs)
    file = write_adapter_gguf(adapter, default_gguf(), work / "adapter.gguf")
    print(f"{file.stat().st_size / 1e6:.1f} MB as GGUF")
    asked = [question for question, _ in make_rows(names[1::2])][:prompts]
    wanted = dict(make_rows(names[1::2]))
    base = wide_gguf() if wide else default_gguf()
    model = LlamaCpp(base, name="packaged", context=512, adapters=[file])
    replies = asyncio.run(say_all(model, asked, tokens))
    lora = AloraSettings(prompt=PROMPT, invocation=INVOCATION)
    pair = prepare_model(default_gguf(), replace(OMNI_SFT, lora=lora), adapter=adapter)
    pair.model.eval()
    read = [read_with_peft(pair, *both) for both in zip(asked, replies, strict=True)]
    apart = [value for _, values in read for value in values]
    taught = [wanted[one] == reply.text for one, reply in zip(asked, replies, strict=True)]
    print(f"replies equal: {sum(equal for equal, _ in read)} of {len(read)}")
    for one, reply, (equal, values) in zip(asked, replies, read, strict=True):
        if not equal:
            print(f"  {one} {reply.text!r}, at most {max(values):.3f} nats")
    print(
        f"per token: mean {mean(apart):.4f}, median {median(apart):.4f}, 95th percentile"
        f" {quantiles(apart, n=20)[18]:.4f}, most {max(apart):.3f} nats (n {len(apart)})"
    )
    print(f"replies as taught, over conditions that were not: {sum(taught)} of {len(read)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--wide", action="store_true", help="the engine's base in float32")
    given = parser.parse_args()
    main(given.work, given.prompts, given.tokens, given.epochs, wide=given.wide)
