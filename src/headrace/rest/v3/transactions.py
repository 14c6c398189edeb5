"""Transactions of version 3: list and describe them, and abort hanging ones."""

import msgspec

from headrace.client.admin import Admin
from headrace.client.descriptions import ActiveProducer
from headrace.client.transactions import ListedTransaction, NoSuchState, NoSuchTransaction
from headrace.http.operations import Parameter
from headrace.rest.errors import bad_request
from headrace.rest.numbers import Int64
from headrace.rest.routing import Routes
from headrace.rest.v3.resources import (
    OpenTransactionData,
    PartitionsData,
    ProducerData,
    TransactionData,
)
from headrace.rest.v3.routing import CLUSTER, PARTITION, Context, get, post
from headrace.rest.v3.topics import check_partitions

_TRANSACTION = f"{CLUSTER}/transactions/{{transactional_id}}"
_REJECTED = {400: "The broker rejects it."}


class StartOffset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first offset of the transaction to be aborted."""

    start_offset: Int64


class TransactionRoutes(Routes):
    """Transactions of any producer; `multi_topic` produces in transactions."""

    @get(
        f"{CLUSTER}/transactions",
        "List transactional ids.",
        Parameter("state", "Only those in this state, such as Ongoing."),
        errors=_REJECTED,
    )
    async def transactions(self, context: Context) -> list[TransactionData]:
        states = context.query.getlist("state")
        found = await context.ask(lambda admin: _found(admin, states))
        return list(map(TransactionData.of, found))

    @get(_TRANSACTION, "Describe the transaction of an id.")
    async def transaction(self, context: Context) -> OpenTransactionData:
        name = context.text("transactional_id")
        one = await context.ask(lambda admin: admin.transactions.describe(name))
        partitions = [PartitionsData(part.topic, part.partitions) for part in one.topics]
        return OpenTransactionData.of(one, partitions=partitions)

    @post(
        f"{_TRANSACTION}:terminate",
        "Abort the open transaction of an id, and fence its producer.",
        errors=_REJECTED,
    )
    async def terminate_transaction(self, context: Context) -> None:
        name = context.text("transactional_id")
        await context.ask(lambda admin: admin.transactions.terminate(name))

    @get(f"{PARTITION}/producers", "List the producers that a partition remembers.")
    async def producers(self, context: Context) -> list[ProducerData]:
        topic, number = context.topic, context.number("partition_id")

        def ask(admin: Admin) -> list[ActiveProducer]:
            check_partitions(admin, topic, [number])
            return admin.partitions.producers(topic, [number])

        return [ProducerData.of(one, topic_name=topic) for one in await context.ask(ask)]

    @post(
        f"{PARTITION}/transactions:abort",
        "Abort a hanging transaction in this partition alone.",
        errors=_REJECTED,
    )
    async def abort_transaction(self, context: Context, body: StartOffset) -> None:
        topic, number = context.topic, context.number("partition_id")

        def ask(admin: Admin) -> None:
            check_partitions(admin, topic, [number])
            try:
                admin.transactions.abort_at(topic, number, body.start_offset)
            except NoSuchTransaction as error:
                raise bad_request(str(error)) from None

        await context.ask(ask)


def _found(admin: Admin, states: list[str]) -> list[ListedTransaction]:
    try:
        return admin.transactions.find(states)
    except NoSuchState as error:
        raise bad_request(str(error)) from None
