"""Records for several topics in one request: each for itself, or all of them or none."""

import asyncio
from collections.abc import Collection
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.errors import HeadraceError
from headrace.http.bodies import read_body, until_gone
from headrace.http.errors import JSON
from headrace.http.operations import Operation
from headrace.rest.errors import bad_request, invalid_batch, partition_not_found
from headrace.rest.payloads import without_layout
from headrace.rest.service import Service
from headrace.rest.transactional import TopicRecord, at_record
from headrace.rest.unknown_fields import refusal_of
from headrace.rest.v3.answers import CLUSTER, Context, check_json
from headrace.rest.v3.production import Prepared, Production, Result, is_within
from headrace.rest.v3.reached_offsets import (
    ConsumerOffsets,
    Name,
    Partitions,
    check_places,
    partitions_of,
)
from headrace.rest.v3.record_bodies import Decoded, RecordAnswer, RecordBody

_ENCODER = msgspec.json.Encoder()


class AddressedRecord(RecordBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record and its topic."""

    topic_name: Name


class Records(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    records: Annotated[list[AddressedRecord], Meta(min_length=1)]


class Transaction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records, and the offsets that they were made from, if any."""

    records: Annotated[list[AddressedRecord], Meta(min_length=1)]
    consumer_offsets: ConsumerOffsets | None = None


class TransactionAnswer(msgspec.Struct, frozen=True):
    """Where the records of a committed transaction lie, in their order."""

    results: list[RecordAnswer]


T = TypeVar("T", Records, Transaction)

_RECORDS = msgspec.json.Decoder(Records)
_TRANSACTION = msgspec.json.Decoder(Transaction)


class MultiTopicRoutes:
    """Producing to many topics at once."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        path = "/v3/clusters/{cluster_id}/records"
        errors = {
            400: "The body is no JSON, or has a field that is not known.",
            404: "There is no such cluster.",
            415: "The body is not announced as JSON.",
            422: "The records are none, too many, or not what they should be.",
        }
        return [
            Operation(
                "POST",
                path,
                self.produce_multi_topic,
                "Produce records to several topics; each has a result of its own.",
                (CLUSTER,),
                body=Records,
                answer=dict[str, list[Any]],
                errors=errors,
                status=207,
            ),
            Operation(
                "POST",
                f"{path}:transaction",
                self.produce_transaction,
                "Produce records to several topics, and commit offsets: all of it or nothing.",
                (CLUSTER,),
                body=Transaction,
                answer=TransactionAnswer,
                errors={
                    **errors,
                    404: "There is no such cluster, topic or partition.",
                    500: "It is not known whether the transaction is committed.",
                    503: "Too many transactions are under way, or the brokers do not answer.",
                },
            ),
        ]

    async def produce_multi_topic(self, request: Request) -> Response:
        cluster_id = await self._cluster_id(request)
        records = (await self._body(request, _RECORDS)).records
        by_topic: dict[str, list[int]] = {}
        for index, one in enumerate(records):
            by_topic.setdefault(one.topic_name, []).append(index)
        found = await asyncio.gather(
            *(
                self._production(request, topic, cluster_id).results_of(
                    [Decoded(records[index]) for index in indexes]
                )
                for topic, indexes in by_topic.items()
            )
        )
        results: dict[int, Result] = {}
        for indexes, outcomes in zip(by_topic.values(), found, strict=True):
            results.update(zip(indexes, outcomes, strict=True))
        ordered = [results[index] for index in range(len(records))]
        return Response(_ENCODER.encode({"results": ordered}), 207, media_type=JSON)

    async def produce_transaction(self, request: Request) -> Response:
        cluster_id = await self._cluster_id(request)
        body = await self._body(request, _TRANSACTION)
        prepared = [
            await self._prepared(request, one, index, cluster_id)
            for index, one in enumerate(body.records)
        ]
        offsets = body.consumer_offsets
        if offsets is not None:
            await check_places(offsets, lambda topics: self._partitions(request, topics))
        # Looked for only now: to look for a topic may create it.
        for index, (one, ready) in enumerate(zip(body.records, prepared, strict=True)):
            await self._check_place(request, one.topic_name, ready, index)
        records = [
            TopicRecord(one.topic_name, ready.record)
            for one, ready in zip(body.records, prepared, strict=True)
        ]
        pool = self._service.clients(request).transactions
        written = await pool.run(
            records,
            None if offsets is None else offsets.to_commit(),
            lambda: until_gone(request.receive),
        )
        self._service.identities.written.records += len(written)
        results = [
            self._production(request, one.topic_name, cluster_id).shown(
                ready, place.partition, place.offset, place.timestamp_ms
            )
            for one, ready, place in zip(body.records, prepared, written, strict=True)
        ]
        return Response(_ENCODER.encode(TransactionAnswer(results)), media_type=JSON)

    async def _prepared(
        self, request: Request, record: AddressedRecord, index: int, cluster_id: str
    ) -> Prepared:
        topic = record.topic_name
        try:
            return await self._production(request, topic, cluster_id).encoded(record)
        except HeadraceError as error:
            raise at_record(error, index, topic) from error

    async def _check_place(
        self, request: Request, topic: str, prepared: Prepared, index: int
    ) -> None:
        try:
            count = await self._service.clients(request).sender().partitions_of(topic)
            if not is_within(prepared, count):
                raise partition_not_found()
        except HeadraceError as error:
            raise at_record(error, index, topic) from error

    async def _partitions(self, request: Request, topics: Collection[str]) -> Partitions:
        admin = self._service.clients(request).admin
        return await admin.run(lambda one: partitions_of(one, topics))

    def _production(self, request: Request, topic: str, cluster_id: str) -> Production:
        sender = self._service.clients(request).sender()
        return Production(self._service, sender, topic, cluster_id)

    async def _cluster_id(self, request: Request) -> str:
        check_json(request)
        return (await Context.of(self._service, request)).cluster_id

    async def _body(self, request: Request, decoder: msgspec.json.Decoder[T]) -> T:
        settings = self._service.settings
        body = await read_body(request, settings.request_max_bytes)
        try:
            found = decoder.decode(without_layout(body))
        except msgspec.ValidationError as error:
            raise refusal_of(error) or invalid_batch(
                f"the body is not what it should be: {error}"
            ) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise bad_request(f"the body is no JSON: {error}") from None
        if len(found.records) > settings.produce_batch_maximum_entries:
            most = settings.produce_batch_maximum_entries
            raise invalid_batch(
                f"there are more than {most} records; send them in several requests"
            )
        return found
