"""Records as text, both ways: format strings and JSON lines for `consume`, JSON for `produce`.

What `consume --json` writes, `produce --from-json` reads, so that a pipe between them copies
keys, headers, times and partitions. Bytes that are not UTF-8 stand as `{"base64": "..."}`.
"""

import base64
import binascii
import re
from collections.abc import Callable
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


Formatter = Callable[[ReadRecord], bytes]

_PLACEHOLDER = re.compile(r"%(.)", re.DOTALL)
_ESCAPE = re.compile(r"\\(n|t|r|0|\\|x[0-9a-fA-F]{2})")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}

_FIELDS: dict[str, Callable[[ReadRecord], bytes]] = {
    "t": lambda r: r.topic.encode(),
    "p": lambda r: b"%d" % r.partition,
    "o": lambda r: b"%d" % r.offset,
    "T": lambda r: b"%d" % r.timestamp_ms,
    "D": lambda r: time_text(r.timestamp_ms).encode(),
    "k": lambda r: r.key or b"",
    "K": lambda r: b"%d" % (-1 if r.key is None else len(r.key)),
    "v": lambda r: r.value or b"",
    "V": lambda r: b"%d" % (-1 if r.value is None else len(r.value)),
    "s": lambda r: r.value or b"",
    "S": lambda r: b"%d" % (-1 if r.value is None else len(r.value)),
    "h": lambda r: headers_text(r.headers),
    "%": lambda r: b"%",
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

    The template is cut once into fixed bytes and field readers; per record they are only joined.
    """
    parts: list[Formatter] = []
    position = 0
    text = unescape(template)
    for found in _PLACEHOLDER.finditer(text):
        if found[1] not in _FIELDS:
            raise HeadraceError(
                f"%{found[1]} is no placeholder of --format; there are %t %p %o %T %D %k %K %v %V"
                " %h and %%"
            )
        if found.start() > position:
            parts.append(_constant(text[position : found.start()]))
        parts.append(_FIELDS[found[1]])
        position = found.end()
    if position < len(text):
        parts.append(_constant(text[position:]))
    return lambda record: b"".join([part(record) for part in parts])


def headers_text(headers: Headers) -> bytes:
    """Headers as `name=value,name=value`; a null value is NULL, as kcat shows it."""
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers
    )


def record_json(record: ReadRecord) -> bytes:
    """One JSON line of a record."""
    return _encoder.encode(
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "key": readable(record.key),
            "value": readable(record.value),
            "headers": [(name, readable(value)) for name, value in record.headers],
        }
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


def _constant(text: str) -> Formatter:
    fixed = text.encode()
    return lambda _: fixed
