"""Records for several topics in one request: each with its own result, or in a transaction."""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.errors import HeadraceError
from headrace.http.bodies import read_body, until_gone
from headrace.http.errors import JSON
from headrace.rest.errors import invalid_batch
from headrace.rest.payloads import decoded_body
from headrace.rest.routing import Routes, operation
from headrace.rest.transactional import TopicRecord, at_record
from headrace.rest.v3.production import Production, Result
from headrace.rest.v3.reached_offsets import (
    ConsumerOffsets,
    Name,
    Partitions,
    check_places,
    partitions_of,
)
from headrace.rest.v3.record_bodies import Decoded, RecordAnswer, RecordBody, unknown_field
from headrace.rest.v3.routing import CLUSTER, Context, check_json

_ENCODER = msgspec.json.Encoder()


class AddressedRecord(RecordBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record and its topic."""

    topic_name: Name


class Records(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    records: Annotated[list[AddressedRecord], Meta(min_length=1)]


class Transaction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records, and the consumer offsets to commit with them, if any."""

    records: Annotated[list[AddressedRecord], Meta(min_length=1)]
    consumer_offsets: ConsumerOffsets | None = None


class TransactionAnswer(msgspec.Struct, frozen=True):
    """The results of the records of a committed transaction, in their order."""

    results: list[RecordAnswer]


T = TypeVar("T", Records, Transaction)

_PATH = f"{CLUSTER}/records"
_ERRORS = {
    400: "The body is not valid JSON, or has an unknown field.",
    404: "Not found.",
    415: "The body is not announced as JSON.",
    422: "The records are missing, too many, or invalid.",
}
_RECORDS = msgspec.json.Decoder(Records)
_TRANSACTION = msgspec.json.Decoder(Transaction)


class MultiTopicRoutes(Routes):
    """Producing to many topics at once."""

    @operation(
        "POST",
        _PATH,
        "Produce records to several topics; each record has its own result.",
        body=Records,
        answer=dict[str, list[Any]],
        errors=_ERRORS,
        status=207,
    )
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

    @operation(
        "POST",
        f"{_PATH}:transaction",
        "Produce records to several topics and commit offsets in one transaction.",
        body=Transaction,
        answer=TransactionAnswer,
        errors={
            **_ERRORS,
            500: "The outcome of the transaction is unknown.",
            503: "Too many transactions are open, or the brokers do not answer.",
        },
    )
    async def produce_transaction(self, request: Request) -> Response:
        cluster_id = await self._cluster_id(request)
        body = await self._body(request, _TRANSACTION)
        productions = {
            topic: self._production(request, topic, cluster_id)
            for topic in {one.topic_name for one in body.records}
        }
        prepared = []
        for index, one in enumerate(body.records):
            with _naming(index, one.topic_name):
                prepared.append(await productions[one.topic_name].encoded(one))
        offsets = body.consumer_offsets
        if offsets is not None:
            await check_places(offsets, lambda topics: self._partitions(request, topics))
        # Look up topics only after all other checks, because a lookup may create a topic.
        records = []
        for index, (one, ready) in enumerate(zip(body.records, prepared, strict=True)):
            with _naming(index, one.topic_name):
                await productions[one.topic_name].check_partition(ready)
            records.append(TopicRecord(one.topic_name, ready.record))
        pool = self.service.clients(request).transactions
        written = await pool.run(
            records,
            None if offsets is None else offsets.to_commit(),
            lambda: until_gone(request.receive),
        )
        self.service.identities.written.records += len(written)
        results = [
            productions[one.topic_name].shown(
                ready, place.partition, place.offset, place.timestamp_ms
            )
            for one, ready, place in zip(body.records, prepared, written, strict=True)
        ]
        return Response(_ENCODER.encode(TransactionAnswer(results)), media_type=JSON)

    async def _partitions(self, request: Request, topics: Collection[str]) -> Partitions:
        admin = self.service.clients(request).admin
        return await admin.run(lambda one: partitions_of(one, topics))

    def _production(self, request: Request, topic: str, cluster_id: str) -> Production:
        sender = self.service.clients(request).sender()
        return Production(self.service, sender, topic, cluster_id)

    async def _cluster_id(self, request: Request) -> str:
        check_json(request)
        return (await Context.of(self.service, request)).links.cluster_id

    async def _body(self, request: Request, decoder: msgspec.json.Decoder[T]) -> T:
        settings = self.service.settings
        body = await read_body(request, settings.request_max_bytes)
        found = decoded_body(
            body,
            decoder,
            lambda error: unknown_field(error) or invalid_batch(f"the body is invalid: {error}"),
            has_raw_parts=True,
        )
        if len(found.records) > settings.produce_batch_maximum_entries:
            most = settings.produce_batch_maximum_entries
            raise invalid_batch(
                f"there are more than {most} records; send them in several requests"
            )
        return found


@contextmanager
def _naming(index: int, topic: str) -> Iterator[None]:
    """Add the record to an error."""
    try:
        yield
    except HeadraceError as error:
        raise at_record(error, index, topic) from error
