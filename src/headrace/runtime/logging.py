"""Format the log of a process: lines for people, or one JSON object per line.

The code logs with the standard `logging`. A message is a fixed event text; its context travels as
fields (`extra={"topic": "orders"}`). The text format appends the fields in parentheses, the JSON
format writes them as members. A field whose name sounds secret is hidden, whatever its value.
One record is one line, a traceback aside: line breaks in a field or a message are escaped, so no
client can forge a log line.
"""

import logging
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

_ROOT = "headrace"
_SECRET_WORDS = ("password", "secret", "token", "credential")
_HIDDEN = "[hidden]"
_LINE_BREAKS = {
    ord(character): ascii(character)[1:-1] for character in "\r\n\v\f\x1b\x85\u2028\u2029"
}


def configure(format: str, levels: Iterable[str], stream: TextIO | None = None) -> None:
    """Send the log of this process to standard error. Called once per process, more often in tests.

    `levels` holds the level of the whole process and of single parts: `INFO`,
    `storage=DEBUG`.
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
    """`2026-03-01 12:01:33.250 INFO broker.hosting: topic deleted (topic=orders)`, local time."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        moment += f".{int(record.msecs):03d}"
        line = f"{moment} {record.levelname} {_part(record)}: {event_text(record)}"
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


def event_text(record: logging.LogRecord) -> str:
    """Return the event with its fields as one line: `topic deleted (topic=orders)`."""
    fields = ", ".join(f"{name}={value}" for name, value in _fields(record))
    text = f"{record.getMessage()} ({fields})" if fields else record.getMessage()
    return text.translate(_LINE_BREAKS)


def _part(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{_ROOT}.")


_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """Yield the caller's `extra` fields, secrets hidden."""
    for name, value in vars(record).items():
        if name not in _STANDARD:
            yield name, _without_secrets(name, value)


def _without_secrets(name: str, value: Any) -> Any:
    if any(word in name.lower() for word in _SECRET_WORDS):
        return _HIDDEN
    if isinstance(value, Mapping):
        return {key: _without_secrets(str(key), inner) for key, inner in value.items()}
    return value
