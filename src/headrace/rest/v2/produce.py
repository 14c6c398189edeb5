"""Produce records to a topic or a partition: POST /topics/{topic}[/partitions/{partition}]."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.librdkafka import exception_for
from headrace.client.loop_producer import ANY_PARTITION, OutgoingRecord, RecordSender, Sent
from headrace.errors import HeadraceError
from headrace.http.bodies import read_body
from headrace.http.operations import Method
from headrace.rest import overrides
from headrace.rest.errors import (
    KAFKA_AUTHENTICATION,
    KAFKA_AUTHORIZATION,
    KAFKA_ERROR,
    KAFKA_RETRIABLE,
    PARTITION_NOT_FOUND,
    RestError,
    bad_request,
    body_of,
    key_schema_missing,
    of_client,
    partition_not_found,
    value_schema_missing,
)
from headrace.rest.formats import V2_BODY_TYPES, V2_JSON, answer_type, produced_format
from headrace.rest.numbers import Int32, Int64, whole
from headrace.rest.payloads import at_record, decoded_body, encoder, invalid_body
from headrace.rest.routing import Routes, operation
from headrace.rest.schemas import V2Schemas

_RECORD_CODES = frozenset({KAFKA_AUTHENTICATION, KAFKA_AUTHORIZATION, KAFKA_RETRIABLE})
_STATUS_OF = {KAFKA_AUTHENTICATION: 401, KAFKA_AUTHORIZATION: 403}

Encode = Callable[[Raw], bytes | None]


class ProducedRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A record; the Content-Type names the format of its key and value."""

    value: Raw | UnsetType = UNSET
    key: Raw | UnsetType = UNSET
    partition: Int32 | None = None
    timestamp: Int64 | None = None


class ProduceBody(V2Schemas, forbid_unknown_fields=True, kw_only=True):
    """Records, and their schemas for formats that require them."""

    records: Annotated[list[ProducedRecord], Meta(min_length=1)]


class PartitionOffset(msgspec.Struct, gc=False):
    """The partition and offset of a record, or its error."""

    partition: int | None
    offset: int | None
    error_code: int | None = None
    error: str | None = None


class ProduceAnswer(msgspec.Struct):
    """One entry per record, in the order of the records."""

    offsets: list[PartitionOffset]
    key_schema_id: int | None = None
    value_schema_id: int | None = None


_DECODER = msgspec.json.Decoder(ProduceBody)
_ENCODER = msgspec.json.Encoder()


def _produce(path: str, summary: str) -> Callable[[Method], Method]:
    return operation(
        "POST",
        path,
        summary,
        *overrides.PARAMETERS,
        body=ProduceBody,
        body_types=V2_BODY_TYPES,
        answer=ProduceAnswer,
        answer_types=(V2_JSON,),
        errors={
            400: "The body is not valid JSON, or a key or value does not have its format.",
            404: "The topic or partition does not exist.",
            408: "The registry did not answer.",
            413: "The body is too large, or has too many records.",
            415: "The Content-Type does not name a format of records.",
            422: "The body has another shape, or a value does not match its schema.",
        },
    )


class ProduceRoutes(Routes):
    """Produce records by version 2."""

    @_produce("/topics/{topic}", "Produce records to a topic.")
    async def to_topic(self, request: Request) -> Response:
        return await self._produce(request, None)

    @_produce("/topics/{topic}/partitions/{partition}", "Produce records to a partition.")
    async def to_partition(self, request: Request) -> Response:
        return await self._produce(request, partition_in(request))

    async def _produce(self, request: Request, partition: int | None) -> Response:
        format, media_type = produced_format(request), answer_type(request)
        sender = self.service.sender(request)
        topic = request.path_params["topic"]
        body = await read_body(request, self.service.settings.request_max_bytes)
        given = _parsed(body, self.service.settings.produce_records_max)
        keys = values = None
        if format.requires_schema:
            keys, values = await self.service.schemas.of_v2(topic, format, given)
        plain = None if format.requires_schema else encoder(format)
        records = _outgoing(
            given.records,
            partition,
            plain or _only_null(key_schema_missing) if keys is None else keys.encode,
            plain or _only_null(value_schema_missing) if values is None else values.encode,
        )
        if partition is not None and partition >= await _size(sender, topic, partition):
            raise partition_not_found()
        answer = ProduceAnswer(
            await send_all(sender, topic, records),
            None if keys is None else keys.schema_id,
            None if values is None else values.schema_id,
        )
        return Response(_ENCODER.encode(answer), _status(answer), media_type=media_type)


def _only_null(missing: Callable[[], RestError]) -> Encode:
    """Return the encoder of parts without a schema, where their format requires one."""

    def encode(raw: Raw) -> bytes | None:
        if bytes(raw) == b"null":
            return None
        raise missing()

    return encode


def partition_in(request: Request) -> int:
    """Return the partition in the path; any text other than a number is not found."""
    text = request.path_params["partition"]
    found = whole(text)
    if found is None:
        raise RestError(404, 404, f"HTTP 404 Not Found: {text[:40]!r} is not a partition number")
    return found


async def send_all(
    sender: RecordSender, topic: str, records: list[OutgoingRecord]
) -> list[PartitionOffset]:
    """Send records; one for a missing partition fails without affecting the others."""
    chosen = max([one.partition for one in records])
    count = await _size(sender, topic, chosen)
    if chosen < count:
        return placed(await sender.send(topic, records))
    missing = PartitionOffset(None, None, PARTITION_NOT_FOUND, "Partition not found.")
    present = [one for one in records if one.partition < count]
    sent = iter(placed(await sender.send(topic, present)) if present else ())
    return [next(sent) if one.partition < count else missing for one in records]


async def _size(sender: RecordSender, topic: str, partition: int) -> int:
    """Return the number of partitions; refresh it if the wanted partition is missing."""
    count = await sender.partitions_of(topic)
    if partition >= count:
        sender.forget(topic)
        count = await sender.partitions_of(topic)
    return count


def placed(sent: list[Sent]) -> list[PartitionOffset]:
    return [
        PartitionOffset(*one.place) if one.error is None else _failed(exception_for(one.error))
        for one in sent
    ]


def _failed(failure: HeadraceError) -> PartitionOffset:
    body = body_of(of_client(failure))
    code = body.error_code if body.error_code in _RECORD_CODES else KAFKA_ERROR
    return PartitionOffset(None, None, code, body.message)


def _status(answer: ProduceAnswer) -> int:
    """Return 200 although records may have failed, but 401 or 403 for a missing permission."""
    for one in answer.offsets:
        if one.error_code in _STATUS_OF:
            return _STATUS_OF[one.error_code]
    return 200


def _parsed(body: bytes, records_max: int) -> ProduceBody:
    if not body:
        raise bad_request("the body is empty; records are required")
    given = decoded_body(body, _DECODER, invalid_body, has_raw_parts=True)
    if len(given.records) > records_max:
        raise RestError(
            413,
            413,
            f"the request has {len(given.records):,} records, and {records_max:,} are allowed"
            " (produce.records.max): send them in several requests",
        )
    return given


def _outgoing(
    records: list[ProducedRecord], partition: int | None, keys: Encode, values: Encode
) -> list[OutgoingRecord]:
    """Encode records. Runs for every record, so calls are kept to a minimum."""
    outgoing = []
    for record in records:
        value, key = record.value, record.key
        target = record.partition if partition is None else partition
        try:
            outgoing.append(
                OutgoingRecord(
                    None if value is UNSET else values(value),
                    None if key is UNSET else keys(key),
                    ANY_PARTITION if target is None else target,
                    record.timestamp or 0,
                )
            )
        except RestError as error:
            raise _placed_error(error, len(outgoing), record, values) from None
    return outgoing


def _placed_error(
    error: RestError, index: int, record: ProducedRecord, values: Encode
) -> RestError:
    """Name the failed part: the value if encoding it again fails, as it is encoded first."""
    part = "key"
    try:
        if record.value is not UNSET:
            values(record.value)
    except RestError:
        part = "value"
    return at_record(error, index, part)
