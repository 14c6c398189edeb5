"""Production of the records of one request: encode, send, report the results.

Records that arrive together are sent together, and results are returned in order while further
records arrive. A limit on records in flight pauses reading of the body.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request

from headrace.client.loop_producer import (
    ANY_PARTITION,
    InFlight,
    OutgoingRecord,
    RecordSender,
    Sent,
)
from headrace.errors import HeadraceError
from headrace.rest.errors import (
    ErrorBody,
    RestError,
    bad_request,
    body_of,
    of_client,
    partition_not_found,
)
from headrace.rest.formats import Format
from headrace.rest.payloads import encoder
from headrace.rest.schemas import Registered
from headrace.rest.service import Service
from headrace.rest.v3.json_stream import JsonSplitter
from headrace.rest.v3.record_bodies import (
    Decoded,
    PartAnswer,
    RecordAnswer,
    RecordBody,
    RecordPart,
    decoded,
    iso,
    no_records,
    timestamp_of,
)

_UNDER_WAY_MAX = 16
"""Maximum number of pieces of a body that wait for results."""
_END = b"\r\n"
_ENCODER = msgspec.json.Encoder()
_OPEN_TOO_LONG = RestError(
    408, 408, "Streaming connection open for longer than allowed: Connection will be closed."
)


class Prepared(msgspec.Struct):
    """An encoded record, and the answers about its parts."""

    record: OutgoingRecord
    key: PartAnswer | None
    value: PartAnswer | None


class UnderWay(msgspec.Struct):
    """Records that arrived together; valid ones are in flight."""

    prepared: list[Prepared | ErrorBody]
    in_flight: InFlight | None = None


Result = RecordAnswer | ErrorBody
Pieces = asyncio.Queue[UnderWay | None]
"""Pieces in order of arrival; None is the end."""


class Production:
    """The records of one request."""

    def __init__(self, service: Service, sender: RecordSender, topic: str, cluster_id: str) -> None:
        self._service = service
        self._sender = sender
        self._topic = topic
        self._cluster_id = cluster_id

    async def streamed(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Yield results as they arrive, in the order of the records."""
        pieces: Pieces = asyncio.Queue(maxsize=_UNDER_WAY_MAX)
        reader = asyncio.create_task(self._read(request, pieces))
        try:
            while (piece := await pieces.get()) is not None:
                yield b"".join(map(line, await self._outcomes(piece)))
            await reader
        finally:
            reader.cancel()
            await asyncio.wait([reader])

    async def _read(self, request: Request, pieces: Pieces) -> None:
        """Send the records of a body, and put them into the queue.

        After a cancellation nothing reads the queue, so the end is not put into it.
        """
        try:
            await self._read_on(request, pieces)
        except ClientDisconnect:
            pass  # No caller is left to receive an error.
        except HeadraceError as refusal:
            await pieces.put(UnderWay([body_of(of_client(refusal))]))
        except Exception:
            await pieces.put(None)
            raise
        await pieces.put(None)

    async def _read_on(self, request: Request, pieces: Pieces) -> None:
        """Send one piece after the other, in the order of the body."""
        splitter = JsonSplitter()
        bytes_max = self._service.settings.request_max_bytes
        is_empty = True
        async for data in self._received(request):
            values = splitter.feed(data)
            if values:
                is_empty = False
                await pieces.put(await self._started([decoded(one) for one in values]))
            if splitter.size > bytes_max:
                raise bad_request(f"a record is larger than {bytes_max:,} bytes")
        rest = splitter.finish()
        if rest:
            await pieces.put(await self._started([decoded(one) for one in rest]))
        elif is_empty:
            raise no_records()

    async def _received(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; records before the time limit are still written."""
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

    async def results_of(self, given: Sequence[Decoded]) -> list[Result]:
        """Produce records that arrived together; return their results in order."""
        return await self._outcomes(await self._started(given))

    async def _started(self, given: Sequence[Decoded]) -> UnderWay:
        """Send valid records; look up the topic only for them, as that may create it."""
        prepared = [await self._prepared(one) for one in given]
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
        return UnderWay(placed, await self._sender.start(self._topic, records))

    async def _outcomes(self, piece: UnderWay) -> list[Result]:
        sent = iter(() if piece.in_flight is None else await piece.in_flight.outcomes())
        return [
            one if isinstance(one, ErrorBody) else self.result(one, next(sent))
            for one in piece.prepared
        ]

    async def _prepared(self, given: Decoded) -> Prepared | ErrorBody:
        try:
            if given.failure is not None:
                raise given.failure
            assert given.body is not None
            return await self.encoded(given.body)
        except HeadraceError as error:
            return body_of(of_client(error))

    async def encoded(self, body: RecordBody) -> Prepared:
        """Encode a record, or raise its error; the partition is checked later."""
        partition = body.partition_id
        if partition is not None and partition < 0:
            raise partition_not_found()
        key, shown_key = await self._part(body.key, is_key=True)
        value, shown_value = await self._part(body.value, is_key=False)
        headers: list[tuple[str, str | bytes | None]] | None = None
        if body.headers:
            headers = [(one.name, one.value) for one in body.headers]
        stamp = 0 if body.timestamp is None else timestamp_of(body.timestamp)
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

    async def check_partition(self, prepared: Prepared) -> None:
        """Raise an error for a missing partition; the lookup may create the topic."""
        if not is_within(prepared, await self._sender.partitions_of(self._topic)):
            raise partition_not_found()

    def result(self, prepared: Prepared, sent: Sent) -> Result:
        failure = sent.failure
        if failure is not None:
            return body_of(of_client(failure))
        return self.shown(prepared, *sent.place, sent.timestamp_ms)

    def shown(
        self, prepared: Prepared, partition: int | None, offset: int | None, stamp: int
    ) -> RecordAnswer:
        """Return the answer for a written record."""
        return RecordAnswer(
            error_code=200,
            cluster_id=self._cluster_id,
            topic_name=self._topic,
            partition_id=partition,
            offset=offset,
            timestamp=iso(stamp) if stamp >= 0 else None,
            key=prepared.key,
            value=prepared.value,
        )


def is_within(prepared: Prepared, partitions: int) -> bool:
    """Return whether the partition of a record exists; most records name none."""
    return prepared.record.partition < partitions


def line(result: Result) -> bytes:
    """Encode a result as a line of a stream."""
    return _ENCODER.encode(result) + _END


def _within(prepared: Prepared | ErrorBody, partitions: int) -> Prepared | ErrorBody:
    if isinstance(prepared, ErrorBody) or is_within(prepared, partitions):
        return prepared
    return body_of(partition_not_found())


def _names_schema(part: RecordPart) -> bool:
    given: tuple[Any, ...] = (part.schema, part.schema_id, part.schema_version, part.subject)
    return any(one is not None for one in given)


def _with_schema(schema: Registered, data: bytes | None) -> PartAnswer:
    return PartAnswer(
        schema.format, schema.subject, schema.schema_id, schema.version, len(data or b"")
    )
