"""Have a model of your own, behind a server of your own, write the answers.

    python examples/05_your_own_model_server.py                      # a stand-in, made here
    python examples/05_your_own_model_server.py http://HOST:8000/v1 Qwen/Qwen3-8B

Osler asks any server that speaks the OpenAI interface. Without arguments this program starts the
smallest server that is enough: one route, whose model is a Python function. It has neither
log-probabilities nor grammars; Osler finds that out when it connects, and `rag` needs neither.
"""

import asyncio
import json
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import osler
from osler.build.models import load_encoder

NOTES = """\
# Ward notes

## Hypoglycaemia

An unconscious patient is given 75 ml of 20 % glucose intravenously.

## Anticoagulation

Warfarin is stopped five days before elective surgery. The INR is measured on the day before.
"""
QUESTION = "When is warfarin stopped before surgery?"


def my_model(prompt: str) -> str:
    """Quotes the document that shares the most words with the question. Put your model here."""
    documents, _, question = prompt.partition("# Question")
    wanted = set(re.findall(r"\w+", question.lower()))
    best, most = "The evidence does not say.", 0
    for number, text in re.findall(r"^\[(\d+)\] [^:]*: (.+)$", documents, re.MULTILINE):
        shared = len(wanted & set(re.findall(r"\w+", text.lower())))
        if shared > most:
            best, most = f"{text.partition('. ')[0].rstrip('.')}. [{number}]", shared
    return best


class Handler(BaseHTTPRequestHandler):
    """`POST /v1/chat/completions`, as OpenAI has it; whatever else is asked for is not there."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        message = {"role": "assistant", "content": my_model(asked["messages"][-1]["content"])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = json.dumps({"model": asked["model"], "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: what was asked may be about a patient."""


@contextmanager
def stand_in() -> Iterator[str]:
    """The server, on a free port of this machine; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def ask(url: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        flags = {
            "home": home,
            "strategy.kind": "rag",
            "model.kind": "openai",
            "model.url": url,
            "model.name": name,
        }
        settings = osler.load(flags, cwd=Path.cwd(), env={}).settings
        notes = Path(home) / "notes.md"
        notes.write_text(NOTES, encoding="utf-8")
        with osler.KnowledgeBase.create(settings.kb.path) as kb:
            kb.add([notes], source="guideline")
            kb.build(load_encoder(settings))

        finished = asyncio.run(osler.ask(settings, osler.parse_question(QUESTION)))
        assert finished.solution is not None, "only a plan has no solution"
        answer = finished.solution.answer
        print(f"{answer.text or answer.note} ({answer.authorship}, by {finished.models['reader']})")
        for number, evidence in enumerate(answer.evidence, 1):
            print(f"[{number}] {evidence.passage.id}: {evidence.quote!r}")


def main(url: str = "", name: str = "my-model") -> None:
    if url:
        ask(url, name)
    else:
        with stand_in() as here:
            ask(here, name)


if __name__ == "__main__":
    main(*sys.argv[1:3])
