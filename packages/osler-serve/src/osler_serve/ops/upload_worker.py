"""The process of a server that writes: it reads what is sent, stores, deletes and encodes.

A line of JSON comes in and one goes out, until the server is gone. It stands back for the
processes that answer, and reads each file in another process, which has limits.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from osler.build.knowledge import open_or_create
from osler.build.models import load_encoder
from osler.build.privacy import index_hosts, require_trusted
from osler.errors import KnowledgeBaseUnbuilt, OslerError
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.settings import Settings
from osler_serve.ops.uploads import delete_upload, reread_upload, store_upload
from osler_serve.server_log import set_up_log

_LOG = logging.getLogger("osler_serve")
_NICE = 10
SLICE = 32
"""Passages that are encoded before the next file may come: about half a second."""


def work() -> None:
    """Runs the process: settings come first, then what is asked."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no reply
    with suppress(AttributeError, OSError):
        os.nice(_NICE)
    set_up_log()
    settings = Settings.model_validate(json.loads(sys.stdin.readline()))
    verbs = _list_verbs(settings)
    for line in sys.stdin:
        verb, *asked = json.loads(line)
        print(json.dumps(_answer(verbs[verb], asked)), file=replies, flush=True)


def _answer(verb: Callable[..., Any], asked: list[str]) -> dict[str, Any]:
    try:
        return {"done": verb(*asked)}
    except OslerError as error:
        return {"failed": [type(error).__name__, error.message, error.fix]}
    except Exception:  # one file's fault ends its own upload: the next one is still read
        _LOG.exception("an upload failed")
        return {"failed": ["InternalError", "something failed inside; it is in the log", ""]}


def _list_verbs(settings: Settings) -> dict[str, Callable[..., Any]]:
    encoder = cache(lambda: load_encoder(settings))

    def store(source: str, name: str, sent: str) -> Any:
        return asdict(store_upload(settings, source, name, Path(sent)))

    def reread(source: str, name: str) -> Any:
        done = reread_upload(settings, source, name)
        return done and asdict(done)

    def delete(source: str, name: str) -> bool:
        return delete_upload(settings, source, name)

    def encode() -> int:
        with open_or_create(settings) as kb:
            return encode_slice(settings, kb, encoder)

    return {one.__name__: one for one in (store, reread, delete, encode)}


def encode_slice(settings: Settings, kb: KnowledgeBase, encoder: Callable[[], Encoder]) -> int:
    """Encodes some passages, and ends the build after the last; returns how many still wait.

    Raises `OslerError` as a build does.
    """
    if not kb.sources:
        return 0
    with suppress(KnowledgeBaseUnbuilt):
        kb.require_built(None)
        return 0
    require_trusted(settings, kb.sources, index_hosts(settings))
    waiting = kb.encode_some(encoder(), SLICE)
    if not waiting:
        kb.build(encoder())
    return waiting
