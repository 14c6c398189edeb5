"""Records of version 3 as JSON: what a request says of them, and what it is told."""

import datetime as dt
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from headrace.errors import HeadraceError
from headrace.rest.errors import RestError, bad_request, invalid_batch, invalid_payload
from headrace.rest.formats import Format
from headrace.rest.numbers import INT32_MAX
from headrace.rest.payloads import without_layout
from headrace.rest.unknown_fields import names, refusal_of
from headrace.rest.v3.json_stream import JsonSplitter

_ID_LENGTH_MAX = 80
_V2_BODY = (
    ": this is a body of version 2, which goes to /topics/{topic}; one of version 3 is"
    ' {"value":{"type":"JSON","data":...}}'
)


class RecordHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    value: bytes | None = None
    """In base64."""


class RecordPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key or a value: its form, its schema in one of several ways, and its data."""

    data: Raw = msgspec.field(default_factory=lambda: Raw(b"null"))
    type: Format | None = None
    subject: str | None = None
    subject_name_strategy: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    schema: str | None = None


class RecordBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record to be produced."""

    partition_id: Annotated[int, Meta(le=INT32_MAX)] | None = None
    headers: list[RecordHeader] | None = None
    key: RecordPart | None = None
    value: RecordPart | None = None
    timestamp: Annotated[dt.datetime, Meta(tz=True)] | None = None


class BatchEntry(RecordBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record with a name by which its result is known."""

    id: Annotated[str, Meta(min_length=1, max_length=_ID_LENGTH_MAX)]


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: list[BatchEntry]


class PartAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a key or value was written."""

    type: Format | None = None
    subject: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    size: int | None = None


class RecordAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a record lies."""

    error_code: int
    cluster_id: str
    topic_name: str
    partition_id: int | None
    offset: int | None
    timestamp: str | None = None
    key: PartAnswer | None = None
    value: PartAnswer | None = None


class EntryAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the record of a batch lies."""

    id: str
    cluster_id: str
    topic_name: str
    partition_id: int | None
    offset: int | None
    timestamp: str | None = None
    key: PartAnswer | None = None
    value: PartAnswer | None = None


class EntryFailure(msgspec.Struct, frozen=True):
    id: str
    error_code: int
    message: str


class BatchAnswer(msgspec.Struct, frozen=True):
    successes: list[EntryAnswer]
    failures: list[EntryFailure]


class Decoded(msgspec.Struct):
    """A record of a request, or why it is none."""

    body: RecordBody | None = None
    failure: HeadraceError | None = None


_DECODER = msgspec.json.Decoder(RecordBody)
_BATCH_DECODER = msgspec.json.Decoder(Batch)


def records_of(body: bytes) -> list[Decoded]:
    """The records of a body that is there to its end.

    Nearly always it is one record that is fine, and then to decode it is to know where it ends.
    Only another body is cut apart, and whatever is wrong in it found and told.
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
    """One record, or why it is none."""
    try:
        return Decoded(_DECODER.decode(without_layout(value)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        hint = _V2_BODY if names(error, "records") else ""
        refusal = refusal_of(error, hint) or bad_request(f"Error processing JSON: {error}")
        return Decoded(failure=refusal)


def batch_of(body: bytes, entries_max: int) -> Batch:
    """The records of a batch; one that is wrong anywhere is refused as a whole."""
    if not body.strip():
        raise invalid_batch("Request body is empty. Data is required.")
    try:
        batch = _BATCH_DECODER.decode(without_layout(body))
    except msgspec.ValidationError as error:
        refusal = refusal_of(error, _V2_BODY if names(error, "records") else "")
        raise refusal or invalid_batch(f"the batch is not what it should be: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the body is no JSON: {error}") from None
    if not batch.entries:
        raise invalid_batch("Empty batch.")
    if len(batch.entries) > entries_max:
        raise invalid_batch(f"Too many entries in batch. At most {entries_max} are allowed.")
    if len({entry.id for entry in batch.entries}) != len(batch.entries):
        raise invalid_batch("Batch entry IDs are not distinct.")
    return batch


def no_records() -> RestError:
    """What is said to who sends no record at all."""
    return invalid_payload("Request body is empty. Data is required.")


def timestamp_of(moment: dt.datetime) -> int:
    """A time as records have it, in milliseconds."""
    found = round(moment.timestamp() * 1000)
    if found < 0:
        raise bad_request("timestamp is before 1970")
    return found


def iso(timestamp_ms: int) -> str:
    """A time of UTC by ISO 8601, always with milliseconds."""
    seconds, milliseconds = divmod(timestamp_ms, 1000)
    return f"{_iso_second(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=64)
def _iso_second(seconds: int) -> str:
    """Kept for a while, as most records of a second are of that second."""
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%S}"
