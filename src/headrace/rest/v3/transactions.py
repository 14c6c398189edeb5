"""Transactions of version 3: which are open, what they hold, and an end for those that hang."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.client.descriptions import ActiveProducer, Outcome
from headrace.client.transactions import ListedTransaction, NoSuchState, NoSuchTransaction
from headrace.http.operations import Operation, Parameter
from headrace.rest.errors import bad_request
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    CLUSTER,
    MISSING,
    PARTITION,
    TOPIC,
    Context,
    answer,
    json_body,
    nothing,
)
from headrace.rest.v3.resources import Collection, Metadata
from headrace.rest.v3.topics import check_partitions

_BASE = "/v3/clusters/{cluster_id}"
_ID = Parameter("transactional_id", "The transactional id.", "path")
_STATE = Parameter("state", "Only those in this state, as Ongoing.")
_AT_PARTITION = (CLUSTER, TOPIC, PARTITION)


class ListedTransactionData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaTransaction"
    metadata: Metadata
    cluster_id: str
    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


class PartitionsData(msgspec.Struct, frozen=True):
    topic_name: str
    partition_ids: list[int]


class DescribedTransactionData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaTransaction"
    metadata: Metadata
    cluster_id: str
    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_at_ms: int | None
    partitions: list[PartitionsData]


class ProducerData(msgspec.Struct, frozen=True, kw_only=True):
    """A producer that a partition remembers."""

    kind: str = "KafkaProducer"
    metadata: Metadata
    cluster_id: str
    topic_name: str
    partition_id: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    transaction_start_offset: int | None


class StartOffset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the transaction begins that is to be aborted."""

    start_offset: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class TransactionRoutes:
    """Transactions of any producer; those of this proxy are elsewhere."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        one = f"{_BASE}/transactions/{{transactional_id}}"
        partition = f"{_BASE}/topics/{{topic_name}}/partitions/{{partition_id}}"
        refused = {**MISSING, 400: "The broker refuses it."}
        return [
            Operation(
                "GET",
                f"{_BASE}/transactions",
                self.transactions,
                "All transactional ids.",
                (CLUSTER, _STATE),
                answer=Collection[ListedTransactionData],
                errors=refused,
            ),
            Operation(
                "GET",
                one,
                self.transaction,
                "What a transactional id is at.",
                (CLUSTER, _ID),
                answer=DescribedTransactionData,
                errors=MISSING,
            ),
            Operation(
                "POST",
                f"{one}:terminate",
                self.terminate_transaction,
                "Abort what is open under an id, and lock its producer out.",
                (CLUSTER, _ID),
                errors=refused,
                status=204,
            ),
            Operation(
                "GET",
                f"{partition}/producers",
                self.producers,
                "The producers that a partition remembers.",
                _AT_PARTITION,
                answer=Collection[ProducerData],
                errors=MISSING,
            ),
            Operation(
                "POST",
                f"{partition}/transactions:abort",
                self.abort_transaction,
                "Abort a transaction that hangs, in this partition alone.",
                _AT_PARTITION,
                body=StartOffset,
                errors=refused,
                status=204,
            ),
        ]

    async def transactions(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        states = request.query_params.getlist("state")
        found = await context.ask(lambda admin: _found(admin, states))
        data = [
            ListedTransactionData(
                metadata=_metadata(context, one.transactional_id),
                cluster_id=context.cluster_id,
                transactional_id=one.transactional_id,
                coordinator_id=one.coordinator,
                producer_id=one.producer_id,
                state=one.state,
            )
            for one in found
        ]
        return answer(context.links.collection("KafkaTransactionList", data, "transactions"))

    async def transaction(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        name = request.path_params["transactional_id"]
        one = await context.ask(lambda admin: admin.transactions.describe(name))
        return answer(
            DescribedTransactionData(
                metadata=_metadata(context, one.transactional_id),
                cluster_id=context.cluster_id,
                transactional_id=one.transactional_id,
                coordinator_id=one.coordinator,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                state=one.state,
                timeout_ms=one.timeout_ms,
                started_at_ms=one.start_ms,
                partitions=[PartitionsData(part.topic, part.partitions) for part in one.topics],
            )
        )

    async def terminate_transaction(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        name = request.path_params["transactional_id"]
        await context.ask(lambda admin: admin.transactions.terminate(name))
        return nothing()

    async def producers(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        topic, number = context.topic, context.number("partition_id")

        def ask(admin: Admin) -> list[ActiveProducer]:
            check_partitions(admin, topic, [number])
            return admin.partitions.producers(topic, [number])

        place = ("topics", topic, "partitions", number, "producers")
        crn = f"topic={topic}/partition={number}/producer="
        data = [
            ProducerData(
                metadata=context.links.metadata(*place, crn=f"{crn}{one.producer_id}"),
                cluster_id=context.cluster_id,
                topic_name=topic,
                partition_id=one.partition,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                last_sequence=one.last_sequence,
                last_timestamp_ms=one.last_timestamp,
                transaction_start_offset=one.transaction_start_offset,
            )
            for one in await context.ask(ask)
        ]
        return answer(context.links.collection("KafkaProducerList", data, *place))

    async def abort_transaction(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, StartOffset)
        topic, number = context.topic, context.number("partition_id")

        def ask(admin: Admin) -> Outcome:
            check_partitions(admin, topic, [number])
            try:
                return admin.transactions.abort_at(topic, number, body.start_offset)
            except NoSuchTransaction as error:
                raise bad_request(str(error)) from None

        await context.ask(ask)
        return nothing()


def _found(admin: Admin, states: list[str]) -> list[ListedTransaction]:
    try:
        return admin.transactions.find(states)
    except NoSuchState as error:
        raise bad_request(str(error)) from None


def _metadata(context: Context, name: str) -> Metadata:
    return context.links.metadata("transactions", name, crn=f"transactional-id={name}")
