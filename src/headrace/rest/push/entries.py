"""Records for clients, encoded once per format for any number of clients."""

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from confluent_kafka import Message

from headrace.errors import HeadraceError
from headrace.rest.formats import Format
from headrace.rest.payloads import decode
from headrace.rest.push.filters import Filter
from headrace.rest.push.requested import Formats
from headrace.rest.schemas import Schemas

_OVERHEAD_BYTES = 500
"""Memory of a record in addition to its bytes."""
PIECE_BYTES = 64 << 10
"""Maximum size of a piece, which each connection may buffer."""
_PIECE_ENTRIES = 100
_VERDICTS_MAX = 64
_ENCODER = msgspec.json.Encoder()


class ShownHeader(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    """In base64."""


class ShownRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record as clients see it; `error` is the reason for a key or value that is not shown."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: list[ShownHeader] = []
    error: str | None = None


class Entry:
    """A record with its cached encodings and filter results."""

    __slots__ = (
        "_shown",
        "_verdicts",
        "headers",
        "id",
        "key",
        "offset",
        "partition",
        "size",
        "timestamp_ms",
        "topic",
        "value",
    )

    def __init__(self, message: Message) -> None:
        self.topic = message.topic() or ""
        self.partition = message.partition() or 0
        self.offset = message.offset() or 0
        self.timestamp_ms = message.timestamp()[1]
        self.key: bytes | None = _bytes(message.key())
        self.value: bytes | None = _bytes(message.value())
        self.headers = _headers(message)
        self.size = size_of(self.key, self.value, self.headers)
        self.id = ""
        """The position of the shared reader after this record."""
        self._shown: dict[Formats, bytes] = {}
        self._verdicts: dict[tuple[Formats, str], bool] = {}

    @property
    def weight(self) -> int:
        """Estimated memory: its bytes, and their encodings in one or two formats."""
        return _OVERHEAD_BYTES + 3 * self.size

    def shown(self, formats: Formats) -> bytes:
        """Return one line of JSON, encoded by `Showing.prepare`."""
        return self._shown[formats]

    def is_shown(self, formats: Formats) -> bool:
        return formats in self._shown

    def keep_shown(self, formats: Formats, text: bytes) -> None:
        self._shown[formats] = text

    def verdict(self, formats: Formats, filter: Filter) -> bool:
        """Return whether a filter accepts the record; cached for clients with the same filter."""
        known = self._verdicts.get((formats, filter.text))
        if known is None:
            known = filter.accepts(self._variables(formats))
            if len(self._verdicts) < _VERDICTS_MAX:
                self._verdicts[formats, filter.text] = known
        return known

    def _variables(self, formats: Formats) -> dict[str, Any]:
        shown = msgspec.json.decode(self._shown[formats])
        return {
            "key": _variable(self.key, formats.key, shown["key"]),
            "value": _variable(self.value, formats.value, shown["value"]),
            "headers": {name: _text(value) for name, value in self.headers},
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp_ms,
        }


class Showing:
    """Encodes records as JSON; with schemas it blocks on the registry."""

    def __init__(self, schemas: Schemas, formats: Formats) -> None:
        self._formats = formats
        self._key = _decoder(schemas, formats.key, is_key=True)
        self._value = _decoder(schemas, formats.value, is_key=False)

    def prepare(self, entries: Iterable[Entry]) -> None:
        """Encode records without a cached encoding."""
        for entry in entries:
            if not entry.is_shown(self._formats):
                entry.keep_shown(self._formats, self._made(entry))

    def _made(self, entry: Entry) -> bytes:
        key, wrong_key = _attempted(self._key, entry.key, "key")
        value, wrong_value = _attempted(self._value, entry.value, "value")
        record = ShownRecord(
            entry.topic,
            entry.partition,
            entry.offset,
            entry.timestamp_ms,
            key,
            value,
            [ShownHeader(name, _base64(part)) for name, part in entry.headers],
            wrong_key or wrong_value,
        )
        text = _ENCODER.encode(record)
        # JSON is kept as it was written; a line break would end the line of an event.
        if b"\n" in text or b"\r" in text:
            text = msgspec.json.format(text, indent=-1)
        return text


def piece_after(entries: Sequence[Entry], start: int) -> list[Entry]:
    """Return entries from an index, bounded in number and bytes, but at least one."""
    end = min(len(entries), start + _PIECE_ENTRIES)
    size = 0
    for index in range(start, end):
        size += entries[index].size
        if size > PIECE_BYTES:
            end = max(index, start + 1)
            break
    return list(entries[start:end])


def message_size(message: Message) -> int:
    """Return the size of a message."""
    return size_of(_bytes(message.key()), _bytes(message.value()), _headers(message))


def size_of(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
) -> int:
    """Return the size of a record."""
    size = len(key or b"") + len(value or b"")
    return size + sum([len(name) + len(data or b"") for name, data in headers])


def _decoder(schemas: Schemas, format: Format, *, is_key: bool) -> Callable[[bytes | None], Any]:
    if format.requires_schema:
        return schemas.decoder(format, is_key=is_key)
    return lambda data: decode(format, data)


def _attempted(
    show: Callable[[bytes | None], Any], data: bytes | None, part: str
) -> tuple[Any, str | None]:
    """Decode a part; return the error of an invalid one without affecting other records."""
    try:
        return show(data), None
    except (ValueError, HeadraceError, RecursionError) as error:
        return None, f"the {part} cannot be shown: {error}"[:500]


def _variable(data: bytes | None, format: Format, shown: Any) -> Any:
    return data if format is Format.BINARY else shown


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    given = message.headers() or []
    pairs = given.items() if isinstance(given, dict) else given
    return [(name, _bytes(value)) for name, value in pairs]


def _bytes(part: object) -> bytes | None:
    if part is None or isinstance(part, bytes):
        return part
    return str(part).encode()


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
