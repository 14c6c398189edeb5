"""Records as text, both ways: format strings and JSON lines for `consume`, JSON for `produce`.

What `consume --json` writes, `produce --from-json` reads, so that a pipe between them copies
keys, headers, times and partitions. Bytes that are not UTF-8 stand as `{"base64": "..."}`.
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
    """The shape of a record in JSON; for producing, everything but the value may be left out."""

    topic: str | None = None
    partition: int = -1
    offset: int | None = None
    timestamp: int = -1
    timestamp_type: str | None = None
    key: Any = None
    value: Any = None
    headers: list[tuple[str, Any]] = []


class _Document(msgspec.Struct):
    """What `consume --json` writes of a record: everything, always."""

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int
    key: Any
    value: Any
    headers: list[tuple[str, Any]]


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
    r"""A separator or format as the user meant it: `\t`, `\n`, `\x1f` and the like resolved."""

    def resolve(found: re.Match[str]) -> str:
        name = found[1]
        return chr(int(name[1:], 16)) if name[0] == "x" else _ESCAPES[name]

    return _ESCAPE.sub(resolve, text)


def formatter(template: str) -> Formatter:
    """A function that writes a record by a template with kcat's placeholders.

    The template becomes a format of bytes and the readers of its fields, once; a record then
    costs a call for each field that is shown, and none for the others.
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
                f"%{found[1]} is no placeholder of --format; there are %t %p %o %T %D %k %K %v %V"
                " %h and %%"
            )
    layout += _literal(text[position:])
    fixed = bytes(layout)
    return lambda record: fixed % tuple([read(record) for read in readers])


def headers_text(headers: Headers) -> bytes:
    """Headers as `name=value,name=value`; a null value is NULL, as kcat shows it."""
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers
    )


def record_json(record: ReadRecord) -> bytes:
    """One JSON line of a record."""
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
    """A record to send, from a JSON line; a value that is no text is sent as its JSON."""
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


def readable(content: bytes | None) -> str | dict[str, str] | None:
    """Bytes for JSON: text when they are UTF-8, else base64 that says so."""
    if content is None:
        return None
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
