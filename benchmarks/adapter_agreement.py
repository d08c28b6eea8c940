"""Whether the embedded engine says with a role adapter what PEFT says with it.

    python benchmarks/adapter_agreement.py WORK [--prompts N] [--tokens N] [--epochs N] [--wide]
    python benchmarks/adapter_agreement.py WORK --adapter FOLDER --data FILE

Trains a small aLoRA of the packaged model in WORK (questions made of three templates over half of
the names of the sample's conditions, a line of search words as the reply; goes on where it was
stopped), writes it as GGUF, and asks questions over the other half greedily in the engine: Q8_0
base, F16 adapter; with --wide the same base in float32, which the engine does not round what it
multiplies with. transformers reads each reply behind its prompt, with the base's numbers in
float32. Reported: replies of which every token is also PEFT's likeliest, and the differences of the
tokens' log-probabilities, in nats. This is about the numbers of two engines, not about the adapter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
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

Turns = list[Message]
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


async def say_all(
    model: LlamaCpp, asked: list[Turns], prompt: str, tokens: int
) -> list[Completion]:
    sampling = Sampling(temperature=0.0, max_tokens=tokens, adapter=prompt)
    return [await model.complete(turns, sampling) for turns in asked]


@dataclass(frozen=True)
class Peft:
    """The adapted model as PEFT has it."""

    pair: Any
    invocation: str

    @cached_property
    def ids(self) -> dict[str, int]:
        """Text of a token to its id."""
        tokenizer = self.pair.tokenizer
        return {tokenizer.decode([number]): number for number in range(len(tokenizer))}

    def read_reply(self, turns: Turns, reply: Completion) -> tuple[bool, list[float]]:
        """Whether every token is PEFT's likeliest too, and the differences token by token; none
        of a reply that has parts of characters, whose tokens are not told.
        """
        import torch

        tokenizer = self.pair.tokenizer
        listed = [{"role": turn.role, "content": turn.content} for turn in turns]
        opened = tokenizer.apply_chat_template(listed, tokenize=False) + self.invocation
        before = tokenizer(opened, add_special_tokens=False)["input_ids"]
        # The tokens that the engine chose: the text by itself may be split otherwise.
        said = [self.ids[token.text] for token in reply.tokens if token.text in self.ids]
        if not (told := len(said) == len(reply.tokens)):
            said = tokenizer(reply.text, add_special_tokens=False)["input_ids"]
        if said[-1:] == [tokenizer.eos_token_id]:
            said.pop()
        if reply.finish == "stop":
            said = [*said, tokenizer.eos_token_id]
        with torch.no_grad():
            logits = self.pair.model(input_ids=torch.tensor([before + said])).logits[0].float()
        logprobs = logits[len(before) - 1 : -1].log_softmax(-1)
        ours = [float(logprobs[i, token]) for i, token in enumerate(said)]
        equal = logprobs.argmax(-1).tolist() == said
        pairs = zip((token.logprob for token in reply.tokens), ours, strict=False)
        return equal, [abs(one - other) for one, other in pairs if told]


def read_turns(data: Path) -> list[Turns]:
    rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
    return [[Message(**turn) for turn in row["messages"]] for row in rows]


def main(given: argparse.Namespace) -> None:
    names = condition_names()
    adapter = given.adapter or train(given.work, names[::2], given.epochs)
    lora = json.loads((adapter / "run.json").read_text("utf-8"))["recipe"]["lora"]
    file = write_adapter_gguf(adapter, default_gguf(), given.work / "adapter.gguf")
    print(f"{file.stat().st_size / 1e6:.1f} MB as GGUF")
    rows = make_rows(names[1::2])
    asked = read_turns(given.data) if given.data else [[Message("user", one)] for one, _ in rows]
    asked = asked[: given.prompts]
    base = wide_gguf() if given.wide else default_gguf()
    model = LlamaCpp(base, name="packaged", context=512, adapters=[file])
    replies = asyncio.run(say_all(model, asked, lora["prompt"], given.tokens))
    recipe = replace(OMNI_SFT, lora=AloraSettings(**lora))
    pair = prepare_model(default_gguf(), recipe, adapter=adapter)
    pair.model.eval()
    peft = Peft(pair, lora["invocation"])
    read = [peft.read_reply(*both) for both in zip(asked, replies, strict=True)]
    apart = [value for _, values in read for value in values]
    print(f"replies equal: {sum(equal for equal, _ in read)} of {len(read)}")
    for turns, reply, (equal, values) in zip(asked, replies, read, strict=True):
        if not equal:
            most = max(values, default=0)
            print(f"  {turns[-1].content!r} {reply.text!r}, at most {most:.3f} nats")
    print(
        f"per token: mean {mean(apart):.4f}, median {median(apart):.4f}, 95th percentile"
        f" {quantiles(apart, n=20)[18]:.4f}, most {max(apart):.3f} nats (n {len(apart)})"
    )
    if not given.data:
        taught = [said == reply.text for (_, said), reply in zip(rows, replies, strict=False)]
        print(f"replies as taught, over conditions that were not: {sum(taught)} of {len(read)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--wide", action="store_true", help="the engine's base in float32")
    parser.add_argument("--adapter", type=Path, help="a trained aLoRA's folder; none is trained")
    parser.add_argument("--data", type=Path, help="what it is asked: JSON lines with messages")
    main(parser.parse_args())
