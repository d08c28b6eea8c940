"""The log of the server and of the process that reads uploads."""

from __future__ import annotations

import logging
import traceback
from typing import Any


class DefectFormatter(logging.Formatter):
    """Of an exception its class and where it came from: what it says may be a patient's."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # as another handler put it
        return super().format(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        _, error, frames = ei
        told = "".join(traceback.format_tb(frames)) + type(error).__name__
        cause = error.__cause__ or error.__context__
        before = self.formatException((None, cause, cause.__traceback__)) if cause else ""
        return f"{before}\n{told}".lstrip()


def set_up_log(level: int = logging.WARNING) -> None:
    """Warnings and errors go to standard error; what was asked is in none of them."""
    handler = logging.StreamHandler()
    handler.setFormatter(DefectFormatter())
    logging.basicConfig(level=level, handlers=[handler])
