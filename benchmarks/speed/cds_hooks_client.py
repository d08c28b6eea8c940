"""Sends stored CDS Hooks requests with HealthChain's `SandboxClient`, from others than us.

    pip install healthchain==0.16.1                     # in an environment of its own
    python benchmarks/speed/cds_hooks.py --client THAT_PYTHON

Reads a folder of requests (`SERVICE@NAME.json`), validates each request and reply by HealthChain's
own models, and prints a JSON list of [file, milliseconds, cards, what was wrong].
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from healthchain.models import CDSRequest, CDSResponse
from healthchain.sandbox import SandboxClient
from healthchain.sandbox.requestconstructors import (
    CdsRequestConstructor,
)


class WholeRequest(CDSRequest):  # type: ignore[misc]
    """HealthChain 0.16.1 leaves the hook's own context (draftOrders) out of what it sends."""

    def model_dump(self, **how: Any) -> Any:
        return super().model_dump(serialize_as_any=True, **how)


class TimedClient(httpx.Client):
    """The sandbox opens one for each call, which takes longer than its request."""

    spent = 0.0

    def post(self, *given: Any, **how: Any) -> httpx.Response:
        began = time.perf_counter()
        reply = super().post(*given, **how)
        TimedClient.spent = 1000 * (time.perf_counter() - began)
        return reply


def send_request(url: str, file: Path) -> list[Any]:
    asked = json.loads(file.read_text(encoding="utf-8"))
    service = file.name.partition("@")[0]
    client = SandboxClient(url=f"{url}/cds-services/{service}", workflow=asked["hook"])
    build = CdsRequestConstructor().construct_request
    built = build(asked["prefetch"], client.workflow, asked["context"])
    client.requests.append(WholeRequest(**dict(built)))
    (reply,) = client.send_requests()
    if "cards" not in reply:
        return [file.name, TimedClient.spent, [], "refused"]
    try:  # the sandbox lets through what its own models refuse
        CDSResponse(**reply)
    except ValueError as error:
        return [file.name, TimedClient.spent, reply["cards"], str(error)]
    return [file.name, TimedClient.spent, reply["cards"], ""]


def main() -> None:
    logging.disable(logging.CRITICAL)
    httpx.Client = TimedClient  # type: ignore[misc]
    url, folder = sys.argv[1], Path(sys.argv[2])
    print(json.dumps([send_request(url, file) for file in sorted(folder.glob("*.json"))]))


if __name__ == "__main__":
    main()
