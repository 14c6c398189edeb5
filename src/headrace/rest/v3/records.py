"""Records of version 3: a stream of records in, a stream of results out; and batches.

Each JSON object of the body is a record. What arrives together is sent together, and results go
back in the order of the records while more are still coming, so one connection may produce for
as long as it likes. Only so much is under way at once: then the body is not read on.
"""

import asyncio
import datetime as dt
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from headrace.client.loop_producer import ANY_PARTITION, Handed, OutgoingRecord, RecordSender, Sent
from headrace.errors import HeadraceError
from headrace.http.bodies import read_body
from headrace.http.errors import JSON
from headrace.http.operations import Operation, Parameter
from headrace.http.streams import DuplexResponse
from headrace.rest import overrides
from headrace.rest.errors import (
    ErrorBody,
    RestError,
    bad_request,
    body_of,
    invalid_batch,
    invalid_payload,
    of_client,
    partition_not_found,
)
from headrace.rest.formats import Format
from headrace.rest.numbers import INT32_MAX
from headrace.rest.payloads import encoder, without_layout
from headrace.rest.schemas import Registered
from headrace.rest.service import Service
from headrace.rest.unknown_fields import names, refusal_of
from headrace.rest.v3.answers import CLUSTER, TOPIC, asked_cluster, check_json
from headrace.rest.v3.json_stream import JsonSplitter

_UNDER_WAY_MAX = 16
"""How many pieces of a body may wait for their results."""
_END = b"\r\n"
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


class Prepared(msgspec.Struct):
    """A record as bytes, and what is to be said of its parts."""

    record: OutgoingRecord
    key: PartAnswer | None
    value: PartAnswer | None


class UnderWay(msgspec.Struct):
    """Records that came together, those of them that are fit to be sent on their way."""

    prepared: list[Prepared | ErrorBody]
    handed: Handed | None = None


Result = RecordAnswer | ErrorBody
Pieces = asyncio.Queue[UnderWay | None]
"""Records that came together, in the order in which they came; None is the end."""

_OPEN_TOO_LONG = RestError(
    408, 408, "Streaming connection open for longer than allowed: Connection will be closed."
)

_DECODER = msgspec.json.Decoder(RecordBody)
_BATCH_DECODER = msgspec.json.Decoder(Batch)
_ENCODER = msgspec.json.Encoder()


class RecordRoutes:
    """Producing in version 3."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        path = "/v3/clusters/{cluster_id}/topics/{topic_name}/records"
        chosen = [
            Parameter(name, "A property of the producer for this request.")
            for name in sorted(overrides.PRODUCER)
        ]
        errors = {404: "There is no such cluster.", 415: "The body is not announced as JSON."}
        return [
            Operation(
                "POST",
                path,
                self.produce,
                "Produce records: one JSON object each, as many as you like.",
                (CLUSTER, TOPIC, *chosen),
                body=RecordBody,
                answer=RecordAnswer,
                errors=errors,
            ),
            Operation(
                "POST",
                f"{path}:batch",
                self.produce_batch,
                "Produce a batch of records, each with an id.",
                (CLUSTER, TOPIC, *chosen),
                body=Batch,
                answer=BatchAnswer,
                errors={**errors, 422: "The batch is empty, too large, or ids occur twice."},
            ),
        ]

    async def produce(self, request: Request) -> Response:
        production = await self._production(request)
        if request.headers.get("content-length") is None:
            return DuplexResponse(production.streamed(request), JSON)
        body = await read_body(request, self._service.settings.request_max_bytes)
        results = await production.results_of(records_of(body))
        if len(results) == 1:
            return Response(_ENCODER.encode(results[0]), media_type=JSON)
        return Response(b"".join(map(_line, results)), media_type=JSON)

    async def produce_batch(self, request: Request) -> Response:
        production = await self._production(request)
        body = await read_body(request, self._service.settings.request_max_bytes)
        batch = _batch(body, self._service.settings.produce_batch_maximum_entries)
        results = await production.results_of([Decoded(one) for one in batch.entries])
        successes, failures = [], []
        for entry, result in zip(batch.entries, results, strict=True):
            if isinstance(result, ErrorBody):
                failures.append(EntryFailure(entry.id, result.error_code, result.message))
            else:
                fields = msgspec.structs.asdict(result)
                del fields["error_code"]
                successes.append(EntryAnswer(entry.id, **fields))
        return Response(_ENCODER.encode(BatchAnswer(successes, failures)), 207, media_type=JSON)

    async def _production(self, request: Request) -> "Production":
        check_json(request)
        clients = self._service.clients(request)
        chosen = None
        if request.scope["query_string"]:
            given = dict(request.query_params)
            chosen = overrides.checked(given, overrides.PRODUCER, bad_request)
        cluster_id = await asked_cluster(clients, request)
        topic = request.path_params["topic_name"]
        return Production(self._service, clients.sender(chosen), topic, cluster_id)


class Decoded(msgspec.Struct):
    """A record of a request, or why it is none."""

    body: RecordBody | None = None
    failure: HeadraceError | None = None


class Production:
    """The records of one request on their way to a topic."""

    def __init__(self, service: Service, sender: RecordSender, topic: str, cluster_id: str) -> None:
        self._service = service
        self._sender = sender
        self._topic = topic
        self._cluster_id = cluster_id

    async def streamed(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Results as they become known, in the order of the records."""
        pieces: Pieces = asyncio.Queue(maxsize=_UNDER_WAY_MAX)
        reader = asyncio.create_task(self._read(request, pieces))
        try:
            while (piece := await pieces.get()) is not None:
                yield b"".join(map(_line, await self._outcomes(piece)))
            await reader
        finally:
            reader.cancel()
            await asyncio.wait([reader])

    async def _read(self, request: Request, pieces: Pieces) -> None:
        """Send the records of a body, and put what is on its way into the queue.

        Who cancels this takes no pieces any more, so then there is nobody to be told of the end.
        """
        try:
            await self._read_on(request, pieces)
        except ClientDisconnect:
            pass  # Nobody is left to be told.
        except HeadraceError as refusal:
            await pieces.put(UnderWay([body_of(of_client(refusal))]))
        except Exception:
            await pieces.put(None)
            raise
        await pieces.put(None)

    async def _read_on(self, request: Request, pieces: Pieces) -> None:
        """One piece after the other, so that records are written in the order of the body."""
        splitter = JsonSplitter()
        bytes_max = self._service.settings.request_max_bytes
        is_empty = True
        async for data in self._received(request):
            values = splitter.feed(data)
            if values:
                is_empty = False
                await pieces.put(await self._started([_decoded(one) for one in values]))
            if splitter.size > bytes_max:
                raise bad_request(f"a record is larger than {bytes_max:,} bytes")
        rest = splitter.finish()
        if rest:
            await pieces.put(await self._started([_decoded(one) for one in rest]))
        elif is_empty:
            raise _empty()

    async def _received(self, request: Request) -> AsyncIterator[bytes]:
        """The body as it comes; what has come when the time is up is still written and told."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._service.settings.streaming_connection_max_duration_ms / 1000
        body = request.stream()
        while loop.time() < deadline:
            try:
                async with asyncio.timeout_at(deadline):
                    data = await anext(body, None)
            except TimeoutError:
                break
            if data is None:
                return
            yield data
        raise _OPEN_TOO_LONG

    async def results_of(self, decoded: Sequence[Decoded]) -> list[Result]:
        """What became of records that came together, in their order."""
        return await self._outcomes(await self._started(decoded))

    async def _started(self, decoded: Sequence[Decoded]) -> UnderWay:
        """Send what is fit to be sent. Only then the topic is asked for, as that may create it."""
        prepared = [await self._prepared(one) for one in decoded]
        if not any(isinstance(one, Prepared) for one in prepared):
            return UnderWay(prepared)
        try:
            count = await self._sender.partitions_of(self._topic)
        except HeadraceError as error:
            refusal = body_of(of_client(error))
            return UnderWay([one if isinstance(one, ErrorBody) else refusal for one in prepared])
        placed = [_within(one, count) for one in prepared]
        records = [one.record for one in placed if isinstance(one, Prepared)]
        if not records:
            return UnderWay(placed)
        return UnderWay(placed, await self._sender.hand_over(self._topic, records))

    async def _outcomes(self, piece: UnderWay) -> list[Result]:
        sent = iter(() if piece.handed is None else await piece.handed.outcomes())
        return [
            one if isinstance(one, ErrorBody) else self.result(one, next(sent))
            for one in piece.prepared
        ]

    async def _prepared(self, decoded: Decoded) -> Prepared | ErrorBody:
        try:
            if decoded.failure is not None:
                raise decoded.failure
            assert decoded.body is not None
            return await self.encoded(decoded.body)
        except HeadraceError as error:
            return body_of(of_client(error))

    async def encoded(self, body: RecordBody) -> Prepared:
        """A record as bytes; raises what is wrong with it, whatever partitions there are."""
        partition = body.partition_id
        if partition is not None and partition < 0:
            raise partition_not_found()
        key, shown_key = await self._part(body.key, is_key=True)
        value, shown_value = await self._part(body.value, is_key=False)
        headers: list[tuple[str, str | bytes | None]] | None = None
        if body.headers:
            headers = [(one.name, one.value) for one in body.headers]
        stamp = 0 if body.timestamp is None else _milliseconds(body.timestamp)
        record = OutgoingRecord(
            value, key, ANY_PARTITION if partition is None else partition, stamp, headers
        )
        return Prepared(record, shown_key, shown_value)

    async def _part(
        self, part: RecordPart | None, *, is_key: bool
    ) -> tuple[bytes | None, PartAnswer | None]:
        if part is None:
            return None, None
        if part.type is not None and not part.type.requires_schema:
            data = encoder(part.type)(part.data)
            return data, PartAnswer(type=part.type, size=len(data or b""))
        if part.type is None and not _names_schema(part):
            data = encoder(Format.BINARY)(part.data)
            return data, PartAnswer(size=len(data or b""))
        schema = await self._service.schemas.of_v3(self._topic, part, is_key=is_key)
        data = schema.encode(part.data)
        return data, _with_schema(schema, data)

    def result(self, prepared: Prepared, sent: Sent) -> Result:
        failure = sent.failure
        if failure is not None:
            return body_of(of_client(failure))
        return self.shown(prepared, *sent.place, sent.timestamp_ms)

    def shown(
        self, prepared: Prepared, partition: int | None, offset: int | None, stamp: int
    ) -> RecordAnswer:
        """The answer for a record that is written."""
        return RecordAnswer(
            200,
            self._cluster_id,
            self._topic,
            partition,
            offset,
            iso(stamp) if stamp >= 0 else None,
            prepared.key,
            prepared.value,
        )


def is_within(prepared: Prepared, partitions: int) -> bool:
    """Whether the partition that a record names is one of so many; most records name none."""
    return prepared.record.partition < partitions


def _within(prepared: Prepared | ErrorBody, partitions: int) -> Prepared | ErrorBody:
    if isinstance(prepared, ErrorBody) or is_within(prepared, partitions):
        return prepared
    return body_of(partition_not_found())


def _empty() -> RestError:
    return invalid_payload("Request body is empty. Data is required.")


def _names_schema(part: RecordPart) -> bool:
    given: tuple[Any, ...] = (part.schema, part.schema_id, part.schema_version, part.subject)
    return any(one is not None for one in given)


def _with_schema(schema: Registered, data: bytes | None) -> PartAnswer:
    return PartAnswer(
        schema.format, schema.subject, schema.schema_id, schema.version, len(data or b"")
    )


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
        raise _empty()
    return [_decoded(one) for one in values]


def _decoded(value: bytes) -> Decoded:
    try:
        return Decoded(_DECODER.decode(without_layout(value)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        hint = _V2_BODY if names(error, "records") else ""
        refusal = refusal_of(error, hint) or bad_request(f"Error processing JSON: {error}")
        return Decoded(failure=refusal)


def _batch(body: bytes, entries_max: int) -> Batch:
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


def _milliseconds(moment: dt.datetime) -> int:
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


def _line(result: Result) -> bytes:
    return _ENCODER.encode(result) + _END
