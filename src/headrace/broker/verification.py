"""Admission of a transaction's partitions by a coordinator on another broker (KIP-890).

The leader of a partition asks by AddPartitionsToTxn, in one request per broker and turn of the
loop.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.broker.peer_batches import PeerBatches, ask_peer
from headrace.errors import KafkaError, UnknownServerError, UnsupportedVersion, error_for
from headrace.protocol.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.transaction import by_topic

if TYPE_CHECKING:
    from headrace.peers.pool import Peers
    from headrace.runtime.tasks import Tasks
    from headrace.transactions.coordinator import ProducerIdAndEpoch


class RemoteVerification:
    """Asks coordinators on other brokers."""

    def __init__(self, peers: "Peers", tasks: "Tasks") -> None:
        self._peers = peers
        self._batches: PeerBatches[int, AddPartitionsToTxnTransaction, AddPartitionsToTxnResult] = (
            PeerBatches(
                tasks, "verification of transactions", self._send, lambda one: one.transactional_id
            )
        )

    async def refused(
        self,
        coordinator: int,
        transactional_id: str,
        producer: "ProducerIdAndEpoch",
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
    ) -> dict[TopicPartition, KafkaError]:
        """Return an error for each partition that is not part of the transaction afterwards.

        A coordinator that cannot verify is too old to do so, and everything is admitted.
        """
        asked = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        try:
            result = await self._batches.ask(coordinator, asked)
        except UnsupportedVersion:
            return {}
        return _errors_in(result, partitions)

    async def _send(
        self, coordinator: int, asked: list[AddPartitionsToTxnTransaction]
    ) -> Mapping[Hashable, AddPartitionsToTxnResult]:
        request = AddPartitionsToTxnRequest(transactions=asked)
        response: AddPartitionsToTxnResponse = await ask_peer(self._peers, coordinator, request)
        if response.error_code:
            raise error_for(response.error_code)
        return {one.transactional_id: one for one in response.results_by_transaction}


def _errors_in(
    result: AddPartitionsToTxnResult, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError]:
    codes = {
        (topic.name, one.partition_index): one.partition_error_code
        for topic in result.topic_results
        for one in topic.results_by_partition
    }
    lacking = UnknownServerError.code
    found = {place: codes.get(place, lacking) for place in partitions}
    return {place: error_for(code) for place, code in found.items() if code}
