"""How the process writes its own log: lines for people, or one JSON object per line.

Plain standard `logging` beneath. Context travels as fields (`extra={"partition": "orders-0"}`)
and is written after the message, or as keys of the JSON object. Fields that sound secret are
hidden whatever they hold.
"""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

_ROOT = "headrace"
_SECRET_WORDS = ("password", "secret", "token", "credential")
_HIDDEN = "[hidden]"


def configure(format: str, levels: Iterable[str], stream: TextIO | None = None) -> None:
    """Send the log of this process to standard error; call once, and again only in tests.

    `levels` are a level for everything and others for parts: `INFO`, `storage=DEBUG`.
    """
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # Other people's libraries.
    logging.getLogger(_ROOT).setLevel(logging.INFO)
    for level in levels:
        part, separator, name = level.rpartition("=")
        logger = logging.getLogger(f"{_ROOT}.{part.strip()}" if separator else _ROOT)
        logger.setLevel(name.strip().upper())


class TextFormatter(logging.Formatter):
    """`2026-03-01 12:01:33.250 INFO broker.node: started partition=orders-0`, in local time."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        moment += f".{int(record.msecs):03d}"
        line = f"{moment} {record.levelname} {_part(record)}: {record.getMessage()}"
        line += "".join(f" {name}={value}" for name, value in _fields(record))
        trace = self._trace(record)
        return f"{line}\n{trace}" if trace else line

    def _trace(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info else ""


class JsonFormatter(TextFormatter):
    """One object per line with `time`, `level`, `logger`, `message`, the fields and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        from msgspec import json

        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": _part(record),
            "message": record.getMessage(),
        }
        entry.update((name, value) for name, value in _fields(record) if name not in entry)
        if trace := self._trace(record):
            entry["traceback"] = trace
        return json.encode(entry, enc_hook=str).decode()


def _part(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{_ROOT}.")


_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """What a caller passed as `extra`."""
    for name, value in vars(record).items():
        if name not in _STANDARD:
            yield name, _HIDDEN if any(word in name for word in _SECRET_WORDS) else value
