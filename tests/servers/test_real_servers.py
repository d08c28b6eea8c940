"""Osler with model servers that nobody here wrote, in front of the packaged small model.

It talks nonsense; what is held is that each request is accepted, that the probe's answers are right
about the server, that what is shown is an answer or a reason, and that a failure names its cause.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from asked_by_hand import Asker, Truth
from real_servers import FOLDER, SERVERS, RealServer, start_server

QUESTION = "What is given first in anaphylaxis?"
QUICK = ("--set", "sampling.max_tokens=24", "--set", "budget.calls=4")
PLAIN = ("ask", "--k", "1", "--strategy", "rag")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "doctor": ("doctor", "--model"),
    "ask": ("ask", QUESTION),
    "rag": (*PLAIN, QUESTION),
    "tc-rag": ("ask", "--k", "1", "--strategy", "tc-rag", QUESTION),
    "kag-thinker": ("ask", "--k", "1", "--strategy", "kag-thinker", QUESTION),
    "omni-rag": ("ask", "--k", "1", "--strategy", "omni-rag", QUESTION),
    "unified": ("ask", "--k", "1", "--strategy", "unified", QUESTION),
    "the model alone": ("ask", "--strategy", "direct", QUESTION),
    "in Chinese": (*PLAIN, "过敏性休克首选什么药物？"),
    "with options": (*PLAIN, "--option", "adrenaline", "--option", "aspirin", QUESTION),
}
"""What a newcomer runs after `osler init --model`; what each must end with is `told_by`'s."""
OWN_FIELDS = ("llama.cpp", "vLLM")
"""Servers whose own fields are used; others may have the same behind them."""
ENDINGS = {0, 1, 6}
"""Answered; the evidence does not say; some replies could not be read."""
DEBRIS = ("<|im_", "<think>", "</think>", "Traceback", "[INST]", "```")
TAGS = ("Tool_Use:", "Tool_Input:", "Conclusion:", "[Actions", "\\boxed", "<answer>")

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module", params=SERVERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealServer]:
    with start_server(request.param, tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def truth(server: RealServer) -> Truth:
    return Asker(server.url, server.name, server.key).find_truth()


@pytest.fixture(scope="module")
def osler(server: RealServer, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs `osler …` where `osler init` wrote what it found of the server."""
    place = tmp_path_factory.mktemp("place")

    def call(*words: str, key: str = server.key) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "OSLER__HOME": str(home), "COLUMNS": "100"}
        environment |= {"OPENAI_API_KEY": key, "OSLER__MODEL__TIMEOUT_S": "600"}
        command, began = [sys.executable, "-m", "osler", *words], time.monotonic()
        done = subprocess.run(  # noqa: S603
            command,
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        took = {"seconds": round(time.monotonic() - began, 1), "rc": done.returncode}
        with (Path(os.environ[FOLDER]) / f"{server.kind}.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"words": words, **took, "shown": done.stdout}) + "\n")
        return done

    done = call("init", "--model", server.url, "--name", server.name)
    assert done.returncode == 0, done.stdout + done.stderr
    return call


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the sample knowledge base."""
    place = tmp_path_factory.mktemp("home")
    command = [sys.executable, "-m", "osler", "kb", "build", "--sample"]
    subprocess.run(  # noqa: S603
        command, env={**os.environ, "OSLER__HOME": str(place)}, check=True, capture_output=True
    )
    return place


def told_by(done: subprocess.CompletedProcess[str]) -> str:
    """What is shown, which is no debris; no answer is told with its reason."""
    shown = done.stdout + done.stderr
    assert done.returncode in ENDINGS, shown
    assert not [mark for mark in (*DEBRIS, *TAGS) if mark in shown], shown
    assert done.stdout.strip()
    if "How: " in shown and done.returncode == 1:
        assert re.search(r"no_evidence|budget|refused|malformed", shown), shown
    return done.stdout


# The probe


def test_the_probe_is_right_about_the_server(
    osler: Command, server: RealServer, truth: Truth
) -> None:
    done = osler("doctor", "--model", "--json")
    (Path(os.environ[FOLDER]) / f"{server.kind}.json").write_text(done.stdout, encoding="utf-8")
    (found,) = json.loads(done.stdout)["models"]
    assert found["ok"], found["rows"]
    # llama.cpp's scores come of forced tokens, which its own test holds to the engine's.
    assert found["scores"] == (truth.scores or server.kind == "llama.cpp")
    assert found["logprobs"] == truth.logprobs
    assert ("JSON schema" in found["formats"]) == truth.schema
    assert ("GBNF" in found["formats"]) == (truth.grammar and server.kind in OWN_FIELDS)
    assert found["tools"] == truth.calls_tools
    assert found["thinking"]["place"] == ""
    # Of other servers than those that are known to, none is relied on to continue.
    assert (found["continues"] == "yes") <= truth.continues
    assert found["context"] == server.context
    if not truth.beside:
        assert found["beside"] is False


def test_replies_are_streamed(truth: Truth) -> None:
    assert truth.streams


# Commands, end to end


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_with_an_answer_or_a_reason(osler: Command, command: str) -> None:
    told_by(osler(*QUICK, *COMMANDS[command]))


def test_the_ledger_has_what_the_server_counts(
    osler: Command, server: RealServer, truth: Truth
) -> None:
    price = ("--set", "prices.currency=EUR", "--set", f"prices.models={server.name}=1/1/2")
    used = json.loads(told_by(osler(*QUICK, *price, *PLAIN, "--json", QUESTION)))["usage"]
    assert used["calls"] == used["searches"] == 1
    assert (used["prompt_tokens"] > 100) == truth.counts
    assert (0 < used["completion_tokens"] <= 24) == truth.counts
    assert bool(used["money"]) == truth.counts


def test_an_evaluation_and_its_report(osler: Command) -> None:
    asked = ("--tasks", "sample", "--strategies", "rag", "--limit", "2")
    done = osler(*QUICK, "eval", "run", "--log-dir", "log", *asked, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told_by(osler("eval", "report", "--log-dir", "log"))


def test_a_conversation(osler: Command) -> None:
    for words in (QUESTION, "And in children?"):
        told_by(osler(*QUICK, *PLAIN, "--thread", "one", words))


def test_extraction(osler: Command) -> None:
    extract = ("kb", "extract", "--by", "model", "--limit", "1", "--unit", "entities")
    told_by(osler("--set", "sampling.max_tokens=64", *extract))


# What goes wrong


def refusal_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 5, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_prompt_that_is_too_long_is_told_by_the_server_s_own_words(
    osler: Command, server: RealServer
) -> None:
    if server.kind == "transformers":
        pytest.skip("it reads a prompt of any length")
    # A question has 8,000 characters at most; each of these is two or three of its tokens.
    told = refusal_of(osler(*QUICK, "ask", "--strategy", "direct", "过敏性休克" * 1500))
    assert "context" in told
    assert "check that a model server runs" not in told


def test_another_model_s_name(osler: Command, server: RealServer) -> None:
    done = osler("--set", "model.name=other", "doctor", "--model", "--json")
    (found,) = json.loads(done.stdout)["models"]
    rows = {row["name"]: row for row in found["rows"]}
    said: Any = rows.get("the model's name") or rows["replies"]
    any_name = ("llama.cpp", "llama-cpp-python")
    assert said["status"] == ("warn" if server.kind in any_name else "fail")
    assert "other" in said["detail"]


def test_a_wrong_key(osler: Command, server: RealServer) -> None:
    if not server.key:
        pytest.skip("it has no key")
    told = refusal_of(osler(*QUICK, "ask", "--strategy", "direct", QUESTION, key="sk-wrong"))
    assert "key refused" in told
    assert "OPENAI_API_KEY" in told


def test_zz_a_server_that_was_stopped(osler: Command, server: RealServer) -> None:
    """The last: the server is gone then."""
    server.stop()
    told = refusal_of(osler(*QUICK, "ask", "--strategy", "direct", QUESTION))
    assert "check that a model server runs" in told
