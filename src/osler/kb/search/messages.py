"""Messages between a process and the search worker that it started, over two pipes.

A message is a JSON document and some bytes: numbers by the hundred travel as they lie in
memory.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

_HEAD = struct.Struct("<II")


def send_message(stream: BinaryIO, document: dict[str, Any], data: bytes = b"") -> None:
    """Raises `OSError` when nobody reads any more."""
    text = json.dumps(document, ensure_ascii=False).encode()
    stream.write(b"".join((_HEAD.pack(len(text), len(data)), text, data)))
    stream.flush()


def receive_message(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """`None` when the other side is gone, be it in the middle of a message."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    text_size, data_size = _HEAD.unpack(head)
    body = stream.read(text_size + data_size)
    if len(body) < text_size + data_size:
        return None
    return json.loads(body[:text_size]), body[text_size:]
