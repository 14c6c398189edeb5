"""A unit-test broker that coordinates transactions, and a producer in few words."""

import asyncio
from pathlib import Path
from typing import Any, cast

from headrace.broker.coordinators import Coordinator
from headrace.broker.transactions import TransactionCoordinator
from headrace.coordination.effects import Effects
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.schemas.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.protocol.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.schemas.end_txn import EndTxnRequest
from headrace.protocol.schemas.init_producer_id import InitProducerIdRequest
from headrace.protocol.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.settings.broker import BrokerSettings
from headrace.transactions.coordinator import ProducerIdAndEpoch
from headrace.transactions.transaction import Transaction, encode
from tests.unit.broker.api.builders import UnitBroker, a_topic, ask, image_with

TOPIC = "orders"
PARTITIONS = 3
NAME = "t"


class TransactionBroker(UnitBroker):
    """A broker with one topic and both coordinators."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        few = {"offsets_topic_num_partitions": 1, "transaction_state_log_num_partitions": 1}
        super().__init__(
            directory, BrokerSettings(**(few | settings)), image_with(a_topic(TOPIC, PARTITIONS))
        )
        self.transactions = TransactionCoordinator(
            self.coordinator_resources,
            self.groups,
            self.producer_ids,
            cast(Any, self.controller),
            self.configs,
            self.metrics.coordinators,
        )
        self._host(self.image.topics[TOPIC])

    @property
    def coordinators(self) -> tuple[Coordinator[Any], ...]:
        return (self.groups, self.transactions.coordinator)

    async def coordinate(self) -> None:
        for coordinator in self.coordinators:
            await coordinator.ensure_topic()

    async def lose_memory(self) -> None:
        """Give up all shards and load them from their logs again, as a restart does."""
        for coordinator in self.coordinators:
            coordinator._forget()
            coordinator.follow(self.image)
        while any(coordinator.is_loading for coordinator in self.coordinators):
            await asyncio.sleep(0)

    def put(self, transaction: Transaction) -> None:
        """Write a step of a transaction, whatever the one before it was."""
        shard = self.transactions.coordinator.shard_for(transaction.transactional_id)
        shard.apply(Effects(records=[encode(transaction, 2)]))

    def known(self, name: str = NAME) -> Transaction:
        found = self.transactions.find(name)
        assert found is not None
        return found

    async def claim(self, name: str = NAME, version: int = 5, **fields: Any) -> Any:
        request = InitProducerIdRequest(
            transactional_id=name, **({"transaction_timeout_ms": 60_000} | fields)
        )
        return await ask(self, ApiKey.INIT_PRODUCER_ID, request, version)

    async def producer(self, name: str = NAME) -> ProducerIdAndEpoch:
        response = await self.claim(name)
        assert response.error_code == 0
        return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    async def add(
        self, producer: ProducerIdAndEpoch, *indexes: int, version: int = 3, topic: str = TOPIC
    ) -> list[int]:
        """The error codes for partitions, as a client up to v3 gets them."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=producer.id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))],
        )
        response = await ask(self, ApiKey.ADD_PARTITIONS_TO_TXN, request, version)
        (found,) = response.results_by_topic_v3_and_below
        return [one.partition_error_code for one in found.results_by_partition]

    def write(self, producer: ProducerIdAndEpoch, index: int, sequence: int = 0) -> None:
        """Append a record of a transaction in the coordinator's state."""
        partition = self.partitions.led(TOPIC, index)
        partition.append(record_of(producer, sequence), self.clock.now_ms(), 0)

    async def end(
        self, producer: ProducerIdAndEpoch, *, is_commit: bool = True, version: int = 4
    ) -> Any:
        request = EndTxnRequest(
            transactional_id=NAME,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=is_commit,
        )
        return await ask(self, ApiKey.END_TXN, request, version)

    async def add_offsets(self, producer: ProducerIdAndEpoch, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=NAME,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            group_id="g",
        )
        response = await ask(self, ApiKey.ADD_OFFSETS_TO_TXN, request, version)
        code: int = response.error_code
        return code

    async def commit_offset(
        self, producer: ProducerIdAndEpoch, offset: int, version: int = 4, **fields: Any
    ) -> int:
        one = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = TxnOffsetCommitRequestTopic(name=fields.pop("topic", TOPIC), partitions=[one])
        request = TxnOffsetCommitRequest(
            transactional_id=NAME,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=[topic],
            **({"group_id": "g"} | fields),
        )
        response = await ask(self, ApiKey.TXN_OFFSET_COMMIT, request, version)
        code: int = response.topics[0].partitions[0].error_code
        return code

    def committed_offset(self) -> int | None:
        found = self.groups.shard_for("g").state.offsets.find("g", TOPIC, 0)
        return None if found is None else found.offset


def record_of(producer: ProducerIdAndEpoch, sequence: int = 0, **fields: Any) -> memoryview:
    batch = build_batch(
        [Record(0, 1_700_000_000_000, b"key", b"value")],
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        **({"transactional": True} | fields),
    )
    return memoryview(batch)
