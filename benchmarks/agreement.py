"""Do the scorers agree? The same weights and texts in process, over HTTP, and in transformers.

    python benchmarks/agreement.py [--weights f32|q8]

Prints perplexities, their ratio to transformers', and how far single tokens lie apart. With
q8 (what Osler runs) llama.cpp rounds activations to 8 bits, too; with f32 the same numbers
are multiplied without rounding, so that only the programs differ.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from wide_weights import wide_gguf

from osler.llm.core.base import Likelihood, TokenScore
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import LlamaCpp
from osler.llm.server.client import Endpoint, connect_server
from osler.llm.transformers.model import open_transformers
from osler_lab.train.tune.model import dense_folder

CONTEXT = "A note for the ward:\n"
TEXTS = {
    "English": "Iron deficiency anaemia is common in pregnancy. The first choice is oral ferrous"
    " sulfate once a day, and the haemoglobin is measured again after four weeks.",
    "Chinese": "缺铁性贫血在妊娠期很常见。首选口服硫酸亚铁，每日一次，四周后复查血红蛋白。",
    "mixed": "患者女，63岁，有2型糖尿病，服用metformin 500 mg。eGFR降至28 mL/min，故停用metformin，"
    "改用insulin。The creatinine is checked again.",
}
REFERENCE = "transformers"


@dataclass(frozen=True)
class Agreement:
    """Of one scorer with the reference, on one text."""

    perplexity: float
    ratio: float
    """To the reference's perplexity."""
    apart: float
    """Nats between two tokens' log-probabilities, at the 95th percentile."""
    most: float


def perplexity(tokens: tuple[TokenScore, ...]) -> float:
    return exp(-fmean(token.logprob for token in tokens))


def compared(tokens: tuple[TokenScore, ...], exact: tuple[TokenScore, ...]) -> Agreement:
    """Raises `ValueError` when the two cut the text into other tokens."""
    if [(t.start, t.end) for t in tokens] != [(t.start, t.end) for t in exact]:
        raise ValueError("the two have other tokens")
    apart = [abs(a.logprob - b.logprob) for a, b in zip(tokens, exact, strict=True)]
    ratio = perplexity(tokens) / perplexity(exact)
    return Agreement(perplexity(tokens), ratio, quantiles(apart, n=20)[-1], max(apart))


async def scored(scorer: Likelihood) -> dict[str, tuple[TokenScore, ...]]:
    return {name: (await scorer.score(CONTEXT, text)).tokens for name, text in TEXTS.items()}


@contextmanager
def served(path: Path) -> Iterator[str]:
    """llama.cpp's own server on loopback; its address."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.kv_unified = 2048, 2, True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup, params.verbosity = False, -1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


async def everyone(gguf: Path, folder: Path) -> dict[str, dict[str, tuple[TokenScore, ...]]]:
    """What each scorer says of each text."""
    exact = open_transformers(folder, dtype="float32", device="cpu", context=2048)
    told = {REFERENCE: await scored(exact)}
    told["in process"] = await scored(LlamaCpp(gguf, name="embedded", context=2048))
    with served(gguf) as address:
        model: Any = await connect_server(Endpoint(base_url=address, model="packaged"))
        told["over HTTP"] = await scored(model)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", choices=("f32", "q8"), default="f32")
    gguf = wide_gguf() if parser.parse_args().weights == "f32" else default_gguf()
    told = asyncio.run(everyone(gguf, dense_folder(default_gguf())))
    print(f"{gguf.name}, transformers with the same weights in float32")
    heads = f"{'perplexity':>10} {'ratio':>7} {'p95':>6} {'max':>6}"
    print(f"{'text':8} {'tokens':>6} {'scorer':13} {heads}")
    for name in TEXTS:
        for scorer, texts in told.items():
            found = compared(texts[name], told[REFERENCE][name])
            print(
                f"{name:8} {len(texts[name]):6} {scorer:13} {found.perplexity:10.3f}"
                f" {found.ratio:7.4f} {found.apart:6.3f} {found.most:6.3f}"
            )


if __name__ == "__main__":
    main()
