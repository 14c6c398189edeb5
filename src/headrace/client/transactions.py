"""Transactions: list and describe them, and abort hanging ones."""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from headrace.client.cluster import Cluster, check_code, results
from headrace.client.coordinators import KeyType, find_coordinator
from headrace.client.descriptions import Outcome
from headrace.errors import HeadraceError, KafkaError, error_for
from headrace.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from headrace.protocol.schemas.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from headrace.protocol.schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.protocol.schemas.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from headrace.protocol.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_DURATION_FROM = 1
_PATTERN_FROM = 2
_CLAIM_TIMEOUT_MS = 1000  # Used only to fence; no transaction is opened with it.


class NoSuchTransaction(HeadraceError):
    """No open transaction began at the given offset."""


class NoSuchState(HeadraceError):
    """An unknown state of transactions."""


class ListedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class PartitionsInTransaction(msgspec.Struct, frozen=True):
    """The partitions of a topic in a transaction."""

    topic: str
    partitions: list[int]


class DescribedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a transactional id."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    topics: list[PartitionsInTransaction]


class Transactions:
    """The transactional ids of a cluster, reached through their coordinators."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find(
        self,
        states: Sequence[str] = (),
        *,
        longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[ListedTransaction]:
        """List the transactional ids of all coordinators."""
        found = [
            listed
            for node in self._cluster.node_ids()
            for listed in self._listed(node, states, longer_than_ms, pattern)
        ]
        return sorted(found, key=lambda one: one.transactional_id)

    def describe(self, transactional_id: str) -> DescribedTransaction:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

        def attempt() -> DescribedTransaction:
            node = self.coordinator_of(transactional_id)
            answer = self._cluster.ask(request, DescribeTransactionsResponse, node)
            (state,) = answer.transaction_states
            check_code(state.error_code, subject=repr(transactional_id))
            return _described(state, node)

        return self._cluster.retry(attempt)

    def terminate(self, transactional_id: str) -> Outcome:
        """Abort the open transaction of an id and fence its producer, by initializing the id."""
        self.describe(transactional_id)  # Initializing would create an unknown id.
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=_CLAIM_TIMEOUT_MS
        )
        node = partial(self.coordinator_of, transactional_id)
        self._cluster.query(request, InitProducerIdResponse, node)
        return Outcome(name=transactional_id)

    def abort_at(self, topic: str, partition: int, start_offset: int) -> Outcome:
        """Abort the transaction that began at an offset, in this partition alone.

        This ends a hanging transaction, which its coordinator does not know and which blocks
        consumers that read committed records.
        """
        producer = self._producer_at(topic, partition, start_offset)
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            # A producer without a marker so far has no coordinator epoch; 0 is never too new.
            coordinator_epoch=max(producer.coordinator_epoch, 0),
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )

        def ask(leader: int, share: Mapping[int, None]) -> dict[int, KafkaError | None]:
            request = WriteTxnMarkersRequest(markers=[marker])
            answer = self._cluster.ask(request, WriteTxnMarkersResponse, leader)
            (part,) = answer.markers[0].topics[0].partitions
            return {partition: error_for(part.error_code) if part.error_code else None}

        self._cluster.ask_leaders(topic, {partition: None}, ask)
        return Outcome(name=f"{topic}-{partition} at offset {start_offset}")

    def coordinator_of(self, transactional_id: str) -> int:
        """Return the id of the broker that coordinates a transactional id."""
        return find_coordinator(self._cluster, KeyType.TRANSACTION, transactional_id)

    def _listed(
        self, node: int, states: Sequence[str], longer_than_ms: int | None, pattern: str | None
    ) -> list[ListedTransaction]:
        request = ListTransactionsRequest(state_filters=[*states])
        version = self._cluster.connection(node).version_of(request)
        if longer_than_ms is not None:
            _require(version, _DURATION_FROM, "how long a transaction is open")
            request.duration_filter = longer_than_ms
        if pattern is not None:
            _require(version, _PATTERN_FROM, "a pattern")
            request.transactional_id_pattern = pattern
        answer = self._cluster.query(
            request, ListTransactionsResponse, node, subject=f"broker {node}"
        )
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise NoSuchState(f"unknown state of transactions: {unknown}")
        return [
            ListedTransaction(
                transactional_id=one.transactional_id,
                coordinator=node,
                producer_id=one.producer_id,
                state=one.transaction_state,
            )
            for one in answer.transaction_states
        ]

    def _producer_at(self, topic: str, partition: int, start_offset: int) -> ProducerState:
        def ask(
            leader: int, share: Mapping[int, None]
        ) -> dict[int, PartitionResponse | KafkaError]:
            request = DescribeProducersRequest(
                topics=[TopicRequest(name=topic, partition_indexes=[partition])]
            )
            answer = self._cluster.ask(request, DescribeProducersResponse, leader)
            return results(answer.topics[0].partitions)

        found = self._cluster.ask_leaders(topic, {partition: None}, ask)[partition]
        producers = found.active_producers
        for producer in producers:
            if producer.current_txn_start_offset == start_offset:
                return producer
        open_ = sorted(
            one.current_txn_start_offset for one in producers if one.current_txn_start_offset >= 0
        )
        others = ", ".join(map(str, open_)) if open_ else "none"
        raise NoSuchTransaction(
            f"{topic}-{partition} has no open transaction that began at offset {start_offset}; "
            f"open transactions began at: {others}"
        )


def _described(state: TransactionState, coordinator: int) -> DescribedTransaction:
    start_ms = state.transaction_start_time_ms
    return DescribedTransaction(
        transactional_id=state.transactional_id,
        coordinator=coordinator,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        state=state.transaction_state,
        timeout_ms=state.transaction_timeout_ms,
        start_ms=start_ms if start_ms >= 0 else None,
        topics=[
            PartitionsInTransaction(topic.topic, sorted(topic.partitions))
            for topic in sorted(state.topics, key=lambda one: one.topic)
        ],
    )


def _require(version: int, known_from: int, what: str) -> None:
    if version < known_from:
        raise HeadraceError(f"this broker is too old to select transactions by {what}")
