"""Short questions to a model server, and the settings that follow from the answers.

| Module | Has |
|---|---|
| `interview` | the questions, each within what is left of a minute |
| `findings` | what was found, and the lines of `osler doctor --model` |

    continues a message?   scores a given text?   log-probabilities?   a format?   native tools?
    thinks, where, how long, can it be told not to?   follows tags?   cites?
    picks the sentence that answers, and confirms what a passage bears out?   refuses?
    how long a context, how fast, two calls beside each other?

The minute begins when the model has answered first: a server may have to load it. What keeps the
replies from being answers (no server, a web page, another model, no word, no end) is named with
its fix, and then nothing follows.

| Found | Setting |
|---|---|
| thinking can be switched off, or made short | `model.request` |
| how long it thinks | `model.thinking`, granted to every call, of 16 tokens too |
| calls beside each other | `model.parallel` |
| the context, less reply and thinking | `strategy.k` |
| scores, log-probabilities | `strategy.metric`, of strategies that have one |
| tags | `strategy.dialect` |

A key of [strategy] is written only where the file's own strategy has it: "auto" and "tolerant" are
the defaults of all others.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from osler.build.models import engine_formats, model_endpoint
from osler.doctor import Check, CheckStatus
from osler.errors import OslerError
from osler.llm.core.base import Likelihood
from osler.llm.server.client import OpenAIModel, connect_server
from osler.llm.server.connection import ServerClient
from osler.llm.server.dialects import TRAITS, Dialect
from osler.llm.server.probe import ServerFacts, read_facts
from osler.probe.findings import Findings, Thinking
from osler.probe.interview import Interview, Reply, thinking_of
from osler.settings import ModelSettings, Settings
from osler.settings.show import write_keys

MINUTE = 55.0
"""Seconds for all questions."""
_OFF: dict[Dialect, tuple[str, ...]] = {
    Dialect.OLLAMA: ("think=false",),
    Dialect.OPENROUTER: ("reasoning.enabled=false", "reasoning.effort=none"),
    Dialect.GENERIC: (
        "reasoning_effort=none",
        "reasoning_effort=minimal",
        "chat_template_kwargs.enable_thinking=false",
    ),
}
_OFF_BY_TEMPLATE = (
    "chat_template_kwargs.enable_thinking=false",
    "chat_template_kwargs.thinking=false",
    "reasoning_effort=none",
)
"""Of servers with chat templates: Qwen3's switch and DeepSeek's, then OpenAI's."""
_SHORTER = {Dialect.OLLAMA: "think=low", Dialect.OPENROUTER: "reasoning.effort=low"}
_MUCH_SHORTER = 0.6


async def probe_model(
    chosen: ModelSettings, section: str = "model", *, minute: float = MINUTE
) -> Findings:
    """Asks the model of a server. What goes wrong is a line of the findings."""
    began = time.perf_counter()
    found = Findings(section, chosen.name, chosen.url)
    try:
        model = await connect_server(model_endpoint(chosen, section))
        talk = Interview(model, time.monotonic() + minute)
        found = await _ask_all(chosen, found, talk)
    except OslerError as error:
        fault = Check("replies", "fail", error.message, error.fix)
        found = replace(found, faults=(*found.faults, fault))
    return replace(found, seconds=round(time.perf_counter() - began, 1))


async def _ask_all(chosen: ModelSettings, found: Findings, talk: Interview) -> Findings:
    first = await talk.ask_easily()
    thinking = await _find_thinking(chosen, talk, first)
    if thinking and thinking.fields:
        # What is found out from here on is of the model as the settings will ask it.
        quiet = with_request(chosen, thinking.fields)
        talk.model = await connect_server(model_endpoint(quiet, found.section))
        first = await talk.ask_easily()
    facts = await read_facts(ServerClient(model_endpoint(chosen, found.section)), _kind_of(talk))
    faults = (*_faults_of(chosen, talk, first), *_other_model(chosen, talk, first, facts))
    found = replace(
        _observed(found, talk.model, facts), thinking=thinking, faults=faults, calls=talk.calls
    )
    if any(fault.status == "fail" for fault in faults):
        return found
    talk.room = 0 if thinking is None or thinking.is_off else thinking.tokens * 2
    return await _ask_rest(found, talk)


async def _ask_rest(found: Findings, talk: Interview) -> Findings:
    speed, beside = await talk.find_speed()
    native = TRAITS[_kind_of(talk)].continues
    continues, tags, citing, chooses, refuses, tools = await asyncio.gather(
        talk.find_continuing(native=native),
        talk.find_tags(),
        talk.find_citing(),
        talk.find_choosing(),
        talk.find_refusing(),
        talk.find_tools(),
    )
    return replace(
        found,
        continues=continues,
        tools=tools,
        tags=tags,
        cites=citing[0],
        mark=citing[1],
        chooses=chooses,
        refuses=refuses,
        context=found.context or talk.context,
        speed=speed,
        beside=beside,
        calls=talk.calls,
        unread=tuple(talk.unread),
    )


def _kind_of(talk: Interview) -> Dialect:
    return talk.model.server.dialect


def _observed(found: Findings, model: OpenAIModel, facts: ServerFacts) -> Findings:
    """What was seen to work when the server was connected to, and what it tells of itself."""
    server = model.server
    return replace(
        found,
        server=f"{server.dialect.value} at {found.server}",
        scores=isinstance(model, Likelihood),
        logprobs=server.logprobs,
        formats=engine_formats(server.kinds),
        context=facts.context,
        longest=facts.longest,
        slots=facts.slots,
    )


# Thinking


async def _find_thinking(
    chosen: ModelSettings, talk: Interview, first: Reply | None
) -> Thinking | None:
    if first is None:
        return None
    thinking = thinking_of(first)
    if not thinking.place:
        return thinking
    kind = _kind_of(talk)
    for line in _OFF.get(kind, _OFF_BY_TEMPLATE):
        reply = await talk.ask_shortly(with_request(chosen, (line,)).request_fields)
        if reply and reply.text and not reply.place:
            return replace(thinking, fields=(line,))
    line = _SHORTER.get(kind, "reasoning_effort=low")
    reply = await talk.ask_easily(with_request(chosen, (line,)).request_fields)
    if reply and reply.text and reply.thought_tokens < _MUCH_SHORTER * thinking.tokens:
        return replace(thinking_of(reply), fields=(line,), shorter=True)
    return thinking


def with_request(chosen: ModelSettings, lines: tuple[str, ...]) -> ModelSettings:
    """The settings with more fields of a request, in place of those of the same names."""
    names = {line.partition("=")[0].strip() for line in lines}
    kept = [one for one in chosen.request if one.partition("=")[0].strip() not in names]
    return chosen.model_copy(update={"request": (*kept, *lines)})


# Faults


def _faults_of(chosen: ModelSettings, talk: Interview, first: Reply | None) -> list[Check]:
    """What keeps a reply from being an answer."""
    if first is None:
        if talk.context:
            return []
        why = talk.unread[-1] if talk.unread else "no reply to an easy question in half a minute"
        return [Check("replies", "fail", why, f"look into the log of the server at {chosen.url}")]
    if first.text:
        # It was given room for twenty sentences.
        return [] if first.ended or first.place else [_endless(first)]
    if first.place:
        why = f"it thinks for more than {first.thought_tokens:,} tokens before an easy question"
        return [Check("thinking", "warn", why, "model.thinking needs room for more")]
    fix = "ask the server by hand: its chat template may be missing, or it is not a chat model"
    return [Check("replies", "fail", "an easy question is answered with nothing", fix)]


def _endless(first: Reply) -> Check:
    fix = "give the server the model's own chat template, whose end of turn it stops at"
    return Check("replies", "fail", f"no reply ends: cut at {first.tokens or 'its'} tokens", fix)


def _other_model(
    chosen: ModelSettings, talk: Interview, first: Reply | None, facts: ServerFacts
) -> list[Check]:
    """Whether replies come from another model than was named."""
    served = first.served if first else ""
    named = [one for one in (*facts.models, served) if one]
    if not named or any(is_same_model(chosen.name, one) for one in facts.models):
        return []
    if is_same_model(chosen.name, served):
        # A name that comes back as it was sent may be an echo.
        echoed = bool(facts.models) and served == chosen.name
        return [_unlisted(chosen.name, facts.models)] if echoed else []
    # llama.cpp's server has one model, and answers to any name.
    status: CheckStatus = "warn" if _kind_of(talk) is Dialect.LLAMA_CPP else "fail"
    told = served or ", ".join(facts.models[:10])
    fix = f"set the model's name to {named[-1]}, if that is the one you want"
    return [Check("the model's name", status, f"the server has {told}, not {chosen.name}", fix)]


def _unlisted(name: str, listed: tuple[str, ...]) -> Check:
    told = f"the server lists {', '.join(listed[:10])}, not {name}; it may answer to any name"
    fix = f"set the model's name to {listed[-1]}, if that is the one you want"
    return Check("the model's name", "warn", told, fix)


_ADDED = re.compile(
    r"(?:[-@:.](?:\d{4,8}|\d{4}-\d\d-\d\d|latest|preview|v\d+)|@(?:main|[0-9a-f]{40}))*"
)
"""What hosts add to a model's name: a date, a version, "latest", the hub's revision."""
_WEIGHTS = re.compile(r":[^:@]+\.gguf(?=$|@)")
"""The weights file in a name: `transformers serve` takes `FOLDER:FILE` and reports the folder."""


def is_same_model(asked: str, served: str) -> bool:
    """Whether one name is the other with a folder before it, or a date or tag behind."""
    short, long = sorted((_bare_name(asked), _bare_name(served)), key=len)
    return long.startswith(short) and _ADDED.fullmatch(long.removeprefix(short)) is not None


def _bare_name(name: str) -> str:
    return _WEIGHTS.sub("", name.casefold()).rpartition("/")[2]


_LEAST_THINKING, _STEP = 2048, 512
_MUCH_HARDER = 4
"""Times the thinking before an easy question, for those that are not."""
_PASSAGE, _PROMPT = 300, 800
"""Tokens of a passage of 1,000 characters with its head; of a prompt without passages."""
_WANTED = 8192
"""Tokens of context for ten passages, thinking and a reply."""
_SEARCHES = {"tc-rag": 3, "unified": 3}
"""Searches whose passages are in one prompt; else one."""
_ALLOTS = "options.num_ctx"
"""Ollama's field that allots a context."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Values by key, of the model's section and of [strategy]."""

    section: str = "model"
    model: dict[str, object] = field(default_factory=dict)
    strategy: dict[str, object] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The settings as dotted keys, as `--set` takes them."""
        told = [f"{self.section}.{key} = {_shown(value)}" for key, value in self.model.items()]
        return [*told, *(f"strategy.{key} = {_shown(v)}" for key, v in self.strategy.items())]

    def is_set(self, chosen: ModelSettings, strategy: object) -> bool:
        """Whether the settings have it all."""
        wanted = ((chosen, self.model), (strategy, self.strategy))
        return all(
            _shown(getattr(place, key, None)) == _shown(value)
            for place, keys in wanted
            for key, value in keys.items()
        )


def advise(settings: Settings, chosen: ModelSettings, found: Findings) -> Advice:
    """The settings that follow; none where the findings have a fault."""
    if not found.ok:
        return Advice(found.section)
    model = _model_keys(chosen, found)
    thinking = int(str(model.get("thinking", 0)))
    if found.thinking and found.thinking.is_off:
        thinking = 0
    return Advice(found.section, model, _strategy_keys(settings, found, thinking))


def write_advice(path: Path, advices: Sequence[Advice]) -> None:
    """Writes the keys into the file; every other line stays. Raises `BadConfig`."""
    for advice in advices:
        if advice.model:
            write_keys(path, advice.section, advice.model)
    strategy = {key: value for advice in advices for key, value in advice.strategy.items()}
    # The smallest context is the one that all prompts must fit.
    if ks := [int(str(advice.strategy["k"])) for advice in advices if "k" in advice.strategy]:
        strategy["k"] = min(ks)
    if strategy:
        write_keys(path, "strategy", strategy)


def _model_keys(chosen: ModelSettings, found: Findings) -> dict[str, object]:
    keys: dict[str, object] = {}
    lines: tuple[str, ...] = ()
    if found.thinking and found.thinking.place:
        keys["thinking"] = _allowance(found.thinking, _context_of(found))
        lines = found.thinking.fields
    if _is_small(found):
        lines = (*lines, f"{_ALLOTS}={_context_of(found)}")
    if lines:
        keys["request"] = list(with_request(chosen, lines).request)
    if found.beside is not None:
        keys["parallel"] = _calls_at_once(chosen, found)
    return keys


def _allowance(thinking: Thinking, context: int | None) -> int:
    """Tokens of thinking in a call, a third of the context at most."""
    wanted = thinking.tokens * _MUCH_HARDER * (1 if thinking.ended else 2)
    room = max(_LEAST_THINKING, -(-wanted // _STEP) * _STEP)
    return min(room, context // 3) if context else room


def _is_small(found: Findings) -> bool:
    """Whether Ollama allots less than is wanted of what the model has."""
    if not found.server.startswith("Ollama") or found.context is None:
        return False
    return found.context < min(_WANTED, found.longest or 0)


def _context_of(found: Findings) -> int | None:
    return min(_WANTED, found.longest or 0) if _is_small(found) else found.context


def _calls_at_once(chosen: ModelSettings, found: Findings) -> int:
    if not found.beside:
        return 1
    usual = type(chosen).model_fields["parallel"].default
    return min(found.slots or usual, 64)


def _strategy_keys(settings: Settings, found: Findings, thinking: int) -> dict[str, object]:
    strategy, keys = settings.strategy, dict[str, object]()
    k, context = getattr(strategy, "k", None), _context_of(found)
    if k is not None and context is not None:
        left = context - settings.sampling.max_tokens - thinking - _PROMPT
        fits = left // (_PASSAGE * _SEARCHES.get(strategy.kind, 1))
        if fits < k:
            keys["k"] = max(1, fits)
    if not _has_metric(str(getattr(strategy, "metric", "auto")), found):
        keys["metric"] = "auto"
    if getattr(strategy, "dialect", "tolerant") != "tolerant" and found.tags != "plain":
        keys["dialect"] = "tolerant"
    return keys


def _has_metric(metric: str, found: Findings) -> bool:
    """Whether the state value that is set can be taken with this model."""
    if metric == "cppl":
        return bool(found.scores)
    return bool(found.scores or found.logprobs) or metric != "uct"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
