"""Formats records as text and parses them: templates and JSON lines.

The output of `consume --json` is the input of `produce --from-json`, so that a pipe between them
copies keys, headers, times and partitions. Bytes that are not UTF-8 become `{"base64": "..."}`.
"""

import base64
import binascii
import re
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import msgspec

from headrace.cli.output import time_text
from headrace.client.records import Headers, OutgoingRecord, ReadRecord
from headrace.errors import HeadraceError


class JsonRecord(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A record in JSON; only the value is required for producing."""

    topic: str | None = None
    partition: int = -1
    offset: int | None = None
    timestamp: int = -1
    timestamp_type: str | None = None
    key: Any = None
    value: Any = None
    headers: list[tuple[str, Any]] = []


class _Document(msgspec.Struct):
    """Output of `consume --json`, with all fields."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int
    key: Any
    value: Any
    headers: list[tuple[str, Any]]


class JsonText(bytes):
    """A key or value that is a JSON document already, such as a decoded one."""


Formatter = Callable[[ReadRecord], bytes]

_PLACEHOLDER = re.compile(r"%(.)", re.DOTALL)
_ESCAPE = re.compile(r"\\(n|t|r|0|\\|x[0-9a-fA-F]{2})")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}

_FIELDS: dict[str, tuple[bytes, Callable[[ReadRecord], Any]]] = {
    "t": (b"%b", lambda r: (r.topic() or "").encode()),
    "p": (b"%d", methodcaller("partition")),
    "o": (b"%d", methodcaller("offset")),
    "T": (b"%d", lambda r: r.timestamp()[1]),
    "D": (b"%b", lambda r: time_text(r.timestamp()[1]).encode()),
    "k": (b"%b", lambda r: r.key() or b""),
    "K": (b"%d", lambda r: _size(r.key())),
    "v": (b"%b", lambda r: r.value() or b""),
    "V": (b"%d", lambda r: _size(r.value())),
    "s": (b"%b", lambda r: r.value() or b""),
    "S": (b"%d", lambda r: _size(r.value())),
    "h": (b"%b", lambda r: headers_text(r.headers() or ())),
}

_decoder = msgspec.json.Decoder(JsonRecord)
_encoder = msgspec.json.Encoder()


def unescape(text: str) -> str:
    r"""Resolve escapes such as `\t`, `\n` and `\x1f` in a separator or template."""

    def resolve(found: re.Match[str]) -> str:
        name = found[1]
        return chr(int(name[1:], 16)) if name[0] == "x" else _ESCAPES[name]

    return _ESCAPE.sub(resolve, text)


def formatter(template: str) -> Formatter:
    """Return a function that formats a record by a template with kcat's placeholders.

    The template is compiled once to a format of bytes and readers of its fields; a record then
    costs one call per shown field.
    """
    layout = bytearray()
    readers: list[Callable[[ReadRecord], Any]] = []
    position = 0
    text = unescape(template)
    for found in _PLACEHOLDER.finditer(text):
        layout += _literal(text[position : found.start()])
        position = found.end()
        if found[1] == "%":
            layout += b"%%"
        elif found[1] in _FIELDS:
            kind, read = _FIELDS[found[1]]
            layout += kind
            readers.append(read)
        else:
            raise HeadraceError(
                f"%{found[1]} is not a placeholder of --format; use %t %p %o %T %D %k %K %v %V"
                " %h and %%"
            )
    layout += _literal(text[position:])
    fixed = bytes(layout)
    return lambda record: fixed % tuple([read(record) for read in readers])


def headers_text(headers: Headers) -> bytes:
    """Format headers as `name=value,name=value`; a null value is NULL, as in kcat."""
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers
    )


def record_json(record: ReadRecord) -> bytes:
    """Format a record as one JSON line."""
    headers = record.headers()
    return _encoder.encode(
        _Document(
            record.topic(),
            record.partition(),
            record.offset(),
            record.timestamp()[1],
            readable(record.key()),
            readable(record.value()),
            [(name, readable(value)) for name, value in headers] if headers else [],
        )
    )


def parse_json_record(line: bytes) -> OutgoingRecord:
    """Parse a record from a JSON line; a value that is not a text is sent as its JSON."""
    try:
        found = _decoder.decode(line)
        return OutgoingRecord(
            value=_binary(found.value),
            key=_binary(found.key),
            headers=tuple((name, _binary(value)) for name, value in found.headers),
            timestamp_ms=max(found.timestamp, 0),
            partition=found.partition,
        )
    except (msgspec.DecodeError, msgspec.ValidationError, binascii.Error) as error:
        raise HeadraceError(f"not a JSON record: {error}") from error


def readable(content: bytes | None) -> str | dict[str, str] | msgspec.Raw | None:
    """Convert bytes for JSON: text if they are UTF-8, or an object with base64."""
    if content is None:
        return None
    if isinstance(content, JsonText):
        return msgspec.Raw(content)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _binary(content: Any) -> bytes | None:
    match content:
        case None:
            return None
        case str():
            return content.encode()
        case {"base64": str(text)} if len(content) == 1:
            return base64.b64decode(text, validate=True)
        case _:
            return _encoder.encode(content)


def _literal(text: str) -> bytes:
    return text.encode().replace(b"%", b"%%")


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)
