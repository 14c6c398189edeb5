"""Records of version 3 as JSON: their bodies and answers."""

import datetime as dt
import re
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from headrace.errors import HeadraceError
from headrace.rest.errors import RestError, bad_request, invalid_batch, invalid_payload
from headrace.rest.formats import Format
from headrace.rest.numbers import INT32_MAX
from headrace.rest.payloads import decoded_body, without_layout
from headrace.rest.schemas import V3Schema
from headrace.rest.v3.json_stream import JsonSplitter

_UNKNOWN = re.compile(r"unknown field `(?P<field>.*?)`(?P<place> - at `\$[^`]*`)?\Z", re.DOTALL)
_SHOWN_MAX = 80
_ID_LENGTH_MAX = 80
_V2_BODY = (
    ": this is a body of version 2 for /topics/{topic}; a body of version 3 is"
    ' {"value":{"type":"JSON","data":...}}'
)


class RecordHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    value: bytes | None = None
    """In base64."""


class RecordPart(V3Schema, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key or a value."""

    data: Raw = msgspec.field(default_factory=lambda: Raw(b"null"))


class RecordBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record to be produced."""

    partition_id: Annotated[int, Meta(le=INT32_MAX)] | None = None
    headers: list[RecordHeader] | None = None
    key: RecordPart | None = None
    value: RecordPart | None = None
    timestamp: Annotated[dt.datetime, Meta(tz=True)] | None = None


class BatchEntry(RecordBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record with an id for its result."""

    id: Annotated[str, Meta(min_length=1, max_length=_ID_LENGTH_MAX)]


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: list[BatchEntry]


class PartAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The format, schema and size of a written key or value."""

    type: Format | None = None
    subject: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    size: int | None = None


class Written(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The place of a written record."""

    cluster_id: str
    topic_name: str
    partition_id: int | None
    offset: int | None
    timestamp: str | None = None
    key: PartAnswer | None = None
    value: PartAnswer | None = None


class RecordAnswer(Written, frozen=True, omit_defaults=True, kw_only=True):
    error_code: int


class EntryAnswer(Written, frozen=True, omit_defaults=True, kw_only=True):
    """The place of a record of a batch."""

    id: str


class EntryFailure(msgspec.Struct, frozen=True):
    id: str
    error_code: int
    message: str


class BatchAnswer(msgspec.Struct, frozen=True):
    successes: list[EntryAnswer]
    failures: list[EntryFailure]


class Decoded(msgspec.Struct):
    """A decoded record, or the error of its decoding."""

    body: RecordBody | None = None
    failure: HeadraceError | None = None


_DECODER = msgspec.json.Decoder(RecordBody)
_BATCH_DECODER = msgspec.json.Decoder(Batch)


def records_of(body: bytes) -> list[Decoded]:
    """Decode the records of a complete body.

    Most bodies are one valid record, so that is tried first. Other bodies are split into values.
    """
    try:
        return [Decoded(_DECODER.decode(without_layout(body)))]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        splitter = JsonSplitter()
        values = [*splitter.feed(body), *splitter.finish()]
    if not values:
        raise no_records()
    return [decoded(one) for one in values]


def decoded(value: bytes) -> Decoded:
    """Decode one record, or return its error."""
    try:
        return Decoded(_DECODER.decode(without_layout(value)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        hint = _V2_BODY if names(error, "records") else ""
        refusal = unknown_field(error, hint) or bad_request(f"Error processing JSON: {error}")
        return Decoded(failure=refusal)


def batch_of(body: bytes, entries_max: int) -> Batch:
    """Decode a batch, which is rejected as a whole if any part is invalid."""
    if not body.strip():
        raise invalid_batch("Request body is empty. Data is required.")
    batch = decoded_body(body, _BATCH_DECODER, _invalid_batch, has_raw_parts=True)
    if not batch.entries:
        raise invalid_batch("Empty batch.")
    if len(batch.entries) > entries_max:
        raise invalid_batch(f"Too many entries in batch. At most {entries_max} are allowed.")
    if len({entry.id for entry in batch.entries}) != len(batch.entries):
        raise invalid_batch("Batch entry IDs are not distinct.")
    return batch


def _invalid_batch(error: msgspec.ValidationError) -> RestError:
    refusal = unknown_field(error, _V2_BODY if names(error, "records") else "")
    return refusal or invalid_batch(f"the batch is invalid: {error}")


def unknown_field(error: Exception, hint: str = "") -> RestError | None:
    """Return the error for an unknown field; None for other errors."""
    found = _UNKNOWN.search(str(error)) if isinstance(error, msgspec.ValidationError) else None
    if found is None:
        return None
    field = found["field"][:_SHOWN_MAX]
    return bad_request(f'Unrecognized field "{field}"{found["place"] or ""}{hint}')


def names(error: Exception, field: str) -> bool:
    """Return whether the unknown field is this one, at the top of the body."""
    return str(error).endswith(f"unknown field `{field}`")


def no_records() -> RestError:
    """Return the error for a body without records."""
    return invalid_payload("Request body is empty. Data is required.")


def timestamp_of(moment: dt.datetime) -> int:
    """Convert a time to milliseconds since 1970."""
    found = round(moment.timestamp() * 1000)
    if found < 0:
        raise bad_request("timestamp is before 1970")
    return found


def iso(timestamp_ms: int) -> str:
    """Format a time in UTC by ISO 8601 with milliseconds."""
    seconds, milliseconds = divmod(timestamp_ms, 1000)
    return f"{_iso_second(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=64)
def _iso_second(seconds: int) -> str:
    """Format a second; cached, because consecutive records often share it."""
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%S}"
