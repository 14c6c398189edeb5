"""Writes transaction markers into partitions, wherever they are led.

A marker for a partition of this node is appended here; the others are sent to their leaders by
WriteTxnMarkers, in one request per broker and turn of the loop. A marker counts when it is
committed: a transaction is closed only after all of its markers have survived any failover.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.broker.commit_waits import committed
from headrace.broker.peer_batches import PeerBatches, ask_peer
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS
from headrace.errors import (
    InvalidProducerEpoch,
    KafkaError,
    LeaderNotAvailable,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
    error_for,
)
from headrace.metadata.image import NO_LEADER
from headrace.protocol.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headrace.runtime.eager import finish_now
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch
from headrace.transactions.markers import marker_batch
from headrace.transactions.transaction import by_topic

if TYPE_CHECKING:
    from headrace.broker.coordinators import Coordinator, CoordinatorResources
    from headrace.groups.shard import GroupShard
    from headrace.metadata.image import MetadataImage

_log = logging.getLogger(__name__)

COMMIT_TIMEOUT_S = 20.0
"""Below the time-out of a channel between brokers: a late answer would close the connection."""

Missing = dict[TopicPartition, KafkaError]
"""Partitions without a committed marker, each with the reason."""

_ENDED = (InvalidProducerEpoch, TransactionCoordinatorFenced)
"""A newer epoch of the producer or of the coordinator has ended the transaction there."""


class Ending(NamedTuple):
    """The end of a transaction, as its markers have it."""

    producer: ProducerIdAndEpoch
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


class MarkerWriter:
    """The way from a decision of a transaction coordinator into the partitions."""

    def __init__(
        self,
        node: "CoordinatorResources",
        groups: "Coordinator[GroupShard]",
        image: "Callable[[], MetadataImage]",
    ) -> None:
        self._node_id = node.node_id
        self._partitions = node.partitions
        self._clock = node.clock
        self._peers = node.channels("transaction-markers")
        self._groups = groups
        self._image = image
        self._batches: PeerBatches[int, WritableTxnMarker, WritableTxnMarkerResult] = PeerBatches(
            node.tasks, "transaction markers", self._send, lambda marker: marker.producer_id
        )

    def write(
        self, ending: Ending, partitions: Collection[TopicPartition]
    ) -> Missing | Coroutine[Any, Any, Missing]:
        """Write a marker into each partition; returns those that lack it, or a coroutine.

        Deleted partitions need none.
        """
        missing: Missing = {}
        waits: list[Coroutine[Any, Any, Missing]] = []
        elsewhere: dict[int, list[TopicPartition]] = {}
        marker = self._marker(ending)
        topics = self._image().topics
        for place in partitions:
            topic = topics.get(place[0])
            if topic is None or not 0 <= place[1] < len(topic.partitions):
                continue
            leader = topic.partitions[place[1]].leader
            if leader == self._node_id:
                try:
                    commit = self._append(place, bytearray(marker), ending)
                except UnknownTopicOrPartition:
                    continue
                except KafkaError as error:
                    _note(missing, ending, place, error)
                    continue
                if commit is not None:
                    waits.append(_committed_or_missing(ending, place, commit))
            elif leader == NO_LEADER:
                missing[place] = LeaderNotAvailable(f"{place[0]}-{place[1]} has no leader")
            else:
                elsewhere.setdefault(leader, []).append(place)
        if not waits and not elsewhere:
            return missing
        waits += [self._ask(leader, ending, places) for leader, places in elsewhere.items()]
        return _all_of(missing, waits)

    async def write_here(self, ending: Ending, place: TopicPartition) -> None:
        """Write the marker of another broker's coordinator; returns when it is committed."""
        commit = self._append(place, self._marker(ending), ending)
        if commit is not None:
            await commit

    # --- here -----------------------------------------------------------------------------------

    def _marker(self, ending: Ending) -> bytearray:
        now_ms = self._clock.now_ms()
        return marker_batch(
            *ending.producer, ending.coordinator_epoch, now_ms, is_commit=ending.is_commit
        )

    def _append(
        self, place: TopicPartition, marker: bytearray, ending: Ending
    ) -> Coroutine[Any, Any, None] | None:
        """Append a marker; returns None if it is committed, or a coroutine that waits for that."""
        partition = self._partitions.led(*place)
        partition.append_marker(marker, ending.transaction_version, self._clock.now_ms())
        if place[0] == CONSUMER_OFFSETS:
            self._groups.transaction_ended(partition, *ending.producer, committed=ending.is_commit)
        if partition.in_sync is None:
            return None
        end_offset = partition.online_log().log_end_offset
        if partition.is_committed(end_offset):
            return None
        # Begun at once: the leadership may end before anybody awaits it.
        waiting = finish_now(committed(partition, end_offset, COMMIT_TIMEOUT_S))
        assert waiting is not None, "the marker is not committed yet"
        return waiting

    # --- elsewhere ------------------------------------------------------------------------------

    async def _ask(self, leader: int, ending: Ending, places: list[TopicPartition]) -> Missing:
        marker = WritableTxnMarker(
            producer_id=ending.producer.id,
            producer_epoch=ending.producer.epoch,
            transaction_result=ending.is_commit,
            topics=[
                WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(places).items()
            ],
            coordinator_epoch=ending.coordinator_epoch,
            transaction_version=ending.transaction_version,
        )
        try:
            result = await self._batches.ask(leader, marker)
        except KafkaError as error:
            return dict.fromkeys(places, error)
        codes = {
            (topic.name, one.partition_index): one.error_code
            for topic in result.topics
            for one in topic.partitions
        }
        missing: Missing = {}
        for place in places:
            code = codes.get(place, -1)
            if code:
                _note(missing, ending, place, error_for(code))
        return missing

    async def _send(
        self, leader: int, markers: list[WritableTxnMarker]
    ) -> Mapping[Hashable, WritableTxnMarkerResult]:
        request = WriteTxnMarkersRequest(markers=markers)
        response: WriteTxnMarkersResponse = await ask_peer(self._peers, leader, request)
        return {one.producer_id: one for one in response.markers}


async def _committed_or_missing(
    ending: Ending, place: TopicPartition, commit: Coroutine[Any, Any, None]
) -> Missing:
    try:
        await commit
    except KafkaError as error:
        return {place: error}
    return {}


async def _all_of(missing: Missing, waits: list[Coroutine[Any, Any, Missing]]) -> Missing:
    for found in await asyncio.gather(*waits):
        missing |= found
    return missing


def _note(missing: Missing, ending: Ending, place: TopicPartition, error: KafkaError) -> None:
    """Note a partition that lacks its marker, unless the transaction has ended there."""
    if not isinstance(error, _ENDED):
        missing[place] = error
        return
    _log.warning(
        "transaction already ended by a newer producer epoch",
        extra={
            "producer_id": ending.producer.id,
            "topic": place[0],
            "partition": place[1],
            "error": str(error),
        },
    )
