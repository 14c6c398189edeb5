"""Records into a topic or one of its partitions: POST /topics/{topic}[/partitions/{partition}]."""

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
from headrace.http.operations import Operation, Parameter
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
from headrace.rest.numbers import INT32_MAX, whole
from headrace.rest.payloads import at_record, encoder, without_layout
from headrace.rest.service import Service
from headrace.rest.v2.answers import invalid_json, parsed

_RECORD_CODES = frozenset({KAFKA_AUTHENTICATION, KAFKA_AUTHORIZATION, KAFKA_RETRIABLE})
_STATUS_OF = {KAFKA_AUTHENTICATION: 401, KAFKA_AUTHORIZATION: 403}

Partition = Annotated[int, Meta(ge=0, le=INT32_MAX)]
Encode = Callable[[Raw], bytes | None]


class ProducedRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A record; the key and the value have the form that the Content-Type names."""

    value: Raw | UnsetType = UNSET
    key: Raw | UnsetType = UNSET
    partition: Partition | None = None
    timestamp: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None = None


class ProduceBody(msgspec.Struct, forbid_unknown_fields=True):
    """Records, and what their schemas are where their form needs some."""

    records: Annotated[list[ProducedRecord], Meta(min_length=1)]
    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None


class PartitionOffset(msgspec.Struct, gc=False):
    """Where a record lies, or why it lies nowhere."""

    partition: int | None
    offset: int | None
    error_code: int | None = None
    error: str | None = None


class ProduceAnswer(msgspec.Struct):
    """One entry for each record, in their order."""

    offsets: list[PartitionOffset]
    key_schema_id: int | None = None
    value_schema_id: int | None = None


_DECODER = msgspec.json.Decoder(ProduceBody)
_ENCODER = msgspec.json.Encoder()


class ProduceRoutes:
    """The two ways to produce of version 2."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        topic = Parameter("topic", "The topic.", "path")
        partition = Parameter("partition", "The partition.", "path", "integer")
        chosen = [
            Parameter(name, "A property of the producer for this request.")
            for name in sorted(overrides.PRODUCER)
        ]
        errors = {
            400: "The body is no JSON, or a key or value is not of its form.",
            404: "There is no such topic or partition.",
            408: "The registry did not take or give a schema.",
            413: "The body is too large, or has too many records.",
            415: "The Content-Type names no form of records.",
            422: "The body has another shape, or a value does not fit its schema.",
        }
        return [
            Operation(
                "POST",
                "/topics/{topic}",
                self.to_topic,
                "Produce records to a topic.",
                parameters=(topic, *chosen),
                body=ProduceBody,
                body_types=V2_BODY_TYPES,
                answer=ProduceAnswer,
                answer_types=(V2_JSON,),
                errors=errors,
            ),
            Operation(
                "POST",
                "/topics/{topic}/partitions/{partition}",
                self.to_partition,
                "Produce records to a partition.",
                parameters=(topic, partition, *chosen),
                body=ProduceBody,
                body_types=V2_BODY_TYPES,
                answer=ProduceAnswer,
                answer_types=(V2_JSON,),
                errors=errors,
            ),
        ]

    async def to_topic(self, request: Request) -> Response:
        return await self._produce(request, None)

    async def to_partition(self, request: Request) -> Response:
        return await self._produce(request, partition_in(request))

    async def _produce(self, request: Request, partition: int | None) -> Response:
        format, media_type = produced_format(request), answer_type(request)
        sender = self._sender(request)
        topic = request.path_params["topic"]
        body = await read_body(request, self._service.settings.request_max_bytes)
        given = _parsed(body, self._service.settings.produce_records_max)
        keys = values = None
        if format.requires_schema:
            keys, values = await self._service.schemas.of_v2(topic, format, given)
        plain = None if format.requires_schema else encoder(format)
        records = _outgoing(
            given.records,
            partition,
            plain or _without_key_schema if keys is None else keys.encode,
            plain or _without_value_schema if values is None else values.encode,
        )
        if partition is not None and partition >= await _size(sender, topic, partition):
            raise partition_not_found()
        answer = ProduceAnswer(
            await send_all(sender, topic, records),
            None if keys is None else keys.schema_id,
            None if values is None else values.schema_id,
        )
        return Response(_ENCODER.encode(answer), _status(answer), media_type=media_type)

    def _sender(self, request: Request) -> RecordSender:
        clients = self._service.clients(request)
        if not request.scope["query_string"]:
            return clients.sender()
        given = dict(request.query_params)
        return clients.sender(overrides.checked(given, overrides.PRODUCER, bad_request))


def _without_key_schema(raw: Raw) -> bytes | None:
    if bytes(raw) == b"null":
        return None
    raise key_schema_missing()


def _without_value_schema(raw: Raw) -> bytes | None:
    if bytes(raw) == b"null":
        return None
    raise value_schema_missing()


def partition_in(request: Request) -> int:
    """The partition that a path names; what is no number is no partition."""
    text = request.path_params["partition"]
    found = whole(text)
    if found is None:
        raise RestError(404, 404, f"HTTP 404 Not Found: {text[:40]!r} is no number of a partition")
    return found


async def send_all(
    sender: RecordSender, topic: str, records: list[OutgoingRecord]
) -> list[PartitionOffset]:
    """Send what can be sent; a record for a partition that is not there fails alone."""
    chosen = max([one.partition for one in records])
    count = await _size(sender, topic, chosen)
    if chosen < count:
        return placed(await sender.send(topic, records))
    missing = PartitionOffset(None, None, PARTITION_NOT_FOUND, "Partition not found.")
    present = [one for one in records if one.partition < count]
    sent = iter(placed(await sender.send(topic, present)) if present else ())
    return [next(sent) if one.partition < count else missing for one in records]


async def _size(sender: RecordSender, topic: str, partition: int) -> int:
    """How many partitions there are, asked anew if one is wanted that was not there before."""
    count = await sender.partitions_of(topic)
    if partition >= count:
        sender.forget(topic)
        count = await sender.partitions_of(topic)
    return count


def placed(sent: list[Sent]) -> list[PartitionOffset]:
    """Where records lie, or why they lie nowhere."""
    return [
        PartitionOffset(*one.place) if one.error is None else _failed(exception_for(one.error))
        for one in sent
    ]


def _failed(failure: HeadraceError) -> PartitionOffset:
    body = body_of(of_client(failure))
    code = body.error_code if body.error_code in _RECORD_CODES else KAFKA_ERROR
    return PartitionOffset(None, None, code, body.message)


def _status(answer: ProduceAnswer) -> int:
    """Records fail one by one in an answer that is fine, but not for want of permission."""
    for one in answer.offsets:
        if one.error_code in _STATUS_OF:
            return _STATUS_OF[one.error_code]
    return 200


def _parsed(body: bytes, records_max: int) -> ProduceBody:
    if not body:
        raise bad_request("the body is empty; records are required")
    try:
        body = without_layout(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_json(error) from None
    given = parsed(body, _DECODER)
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
    """The records as bytes. This runs for every record, so it calls as little as it can."""
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
    """The error with whose it is; the value is encoded first, so it is the value's if it fails."""
    part = "key"
    try:
        if record.value is not UNSET:
            values(record.value)
    except RestError:
        part = "value"
    return at_record(error, index, part)
