"""Requests for streams: the parameters of their addresses."""

import datetime as dt
import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from headrace.http.operations import Parameter
from headrace.rest.errors import bad_request
from headrace.rest.formats import Format
from headrace.rest.push import positions
from headrace.rest.push.filters import Filter, compiled

PARAMETERS = (
    Parameter("group", "Read as a member of this consumer group, after its committed offsets."),
    Parameter(
        "from",
        "earliest, latest (the default), milliseconds since 1970, or a time such as"
        " 2026-03-01T12:00:00Z. For a group: the start without a commit.",
    ),
    Parameter("offsets", "Start offsets of partitions, such as 0:15,1:20; override `from`."),
    Parameter("partitions", "Only these partitions, such as 0,2."),
    Parameter("format", "binary (the default), json, string, avro, jsonschema or protobuf."),
    Parameter("key_format", "The format of keys; defaults to `format`."),
    Parameter("filter", "A CEL expression over key, value, headers, partition, offset, timestamp."),
    Parameter("ack", "client: commit what the client acknowledges (WebSocket, with a group)."),
)

_NAMES = frozenset(one.name for one in PARAMETERS)
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_GROUP_LENGTH_MAX = 255
_MILLISECONDS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999."""


class Start(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"


class Formats(msgspec.Struct, frozen=True):
    key: Format
    value: Format

    @property
    def require_schema(self) -> bool:
        return self.key.requires_schema or self.value.requires_schema


class StreamRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a stream, validated as far as possible without a broker."""

    topic: str
    formats: Formats = Formats(Format.BINARY, Format.BINARY)
    group: str | None = None
    start: Start = Start.LATEST
    timestamp_ms: int = 0
    offsets: Mapping[int, int] = {}
    partitions: tuple[int, ...] | None = None
    filter: Filter | None = None
    acknowledges: bool = False

    @property
    def is_at_the_tail(self) -> bool:
        """True if the request is for new records only."""
        return self.start is Start.LATEST and not self.offsets and self.group is None


def parsed(
    topic: str, given: Mapping[str, str], last_event_id: str | None, *, may_acknowledge: bool
) -> StreamRequest:
    """Parse the parameters of an address; errors name the invalid parameter."""
    if unknown := sorted(set(given) - _NAMES):
        names = ", ".join(sorted(_NAMES))
        raise bad_request(f"unknown parameter {unknown[0][:40]!r}; parameters are {names}")
    if not _LEGAL_TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise bad_request(f"{topic[:80]!r} is not a topic name")
    group = _group(given)
    start, timestamp_ms = _start(given.get("from", Start.LATEST))
    offsets = positions.parsed(given["offsets"], "offsets") if "offsets" in given else {}
    if group is not None and (offsets or "partitions" in given or start is Start.TIME):
        raise bad_request("offsets, partitions and times are not allowed with a group")
    if last_event_id and group is None:
        offsets |= positions.parsed(last_event_id, "Last-Event-ID")
    return StreamRequest(
        topic=topic,
        formats=_formats(given),
        group=group,
        start=start,
        timestamp_ms=timestamp_ms,
        offsets=offsets,
        partitions=_partitions(given, offsets),
        filter=compiled(given["filter"]) if "filter" in given else None,
        acknowledges=_acknowledges(given, group, may_acknowledge=may_acknowledge),
    )


def _group(given: Mapping[str, str]) -> str | None:
    group = given.get("group")
    if group is not None and (
        not group.strip() or len(group) > _GROUP_LENGTH_MAX or not group.isprintable()
    ):
        raise bad_request(f"group must be a name of 1 to {_GROUP_LENGTH_MAX} printable characters")
    return group


def _start(text: str) -> tuple[Start, int]:
    if text in (Start.EARLIEST, Start.LATEST):
        return Start(text), 0
    if text.isascii() and text.isdecimal():
        return Start.TIME, positions.whole(text, "a time", _MILLISECONDS_MAX)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment.timestamp() < 0:
        raise bad_request(
            f"from is {text[:40]!r}; it must be earliest, latest, milliseconds since 1970, or a"
            " time with a zone, such as 2026-03-01T12:00:00Z"
        )
    return Start.TIME, round(moment.timestamp() * 1000)


def _formats(given: Mapping[str, str]) -> Formats:
    value = _format("format", given.get("format", "binary"))
    return Formats(_format("key_format", given.get("key_format", value)), value)


def _format(name: str, text: str) -> Format:
    try:
        return Format(text.upper())
    except ValueError:
        known = ", ".join(one.lower() for one in Format)
        raise bad_request(f"{name} is {text[:40]!r}; it must be one of {known}") from None


def _partitions(given: Mapping[str, str], offsets: Mapping[int, int]) -> tuple[int, ...] | None:
    if "partitions" not in given:
        return None
    found = positions.partitions(given["partitions"], "partitions")
    if stray := sorted(set(offsets) - set(found)):
        raise bad_request(f"offsets name partition {stray[0]}, which partitions leaves out")
    return found


def _acknowledges(given: Mapping[str, str], group: str | None, *, may_acknowledge: bool) -> bool:
    text = given.get("ack")
    if text is None:
        return False
    if text != "client":
        raise bad_request(f"ack is {text[:40]!r}; it must be client")
    if not may_acknowledge:
        raise bad_request("ack=client requires a WebSocket")
    if group is None:
        raise bad_request("ack=client requires a group, which commits the acknowledged records")
    return True
