"""Transactions of any cluster: which there are, what they hold, and how to end one that hangs."""

from collections.abc import Mapping, Sequence

import msgspec

from headrace.client.cluster import Cluster, error_name
from headrace.client.descriptions import Outcome
from headrace.errors import HeadraceError, KafkaError, error_for
from headrace.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from headrace.protocol.schemas.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from headrace.protocol.schemas.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.protocol.schemas.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
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

_TRANSACTION_KEY = 1
_BATCHED_FROM = 4
_DURATION_FROM = 1
_PATTERN_FROM = 2
_CLAIM_TIMEOUT_MS = 1000  # Only claims to fence: no transaction of ours will ever be open.


class NoSuchTransaction(HeadraceError):
    """No transaction began where one was said to have."""


class NoSuchState(HeadraceError):
    """A state that transactions do not have."""


class ListedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class PartitionsInTransaction(msgspec.Struct, frozen=True):
    """Where in a topic a transaction has written, or is about to."""

    topic: str
    partitions: list[int]


class DescribedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """All that the coordinator tells of a transactional id."""

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
        """What every broker coordinates."""
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
            if state.error_code:
                raise error_for(
                    state.error_code, f"{transactional_id!r}: {error_name(state.error_code)}"
                )
            return _described(state, node)

        return self._cluster.retry(attempt)

    def terminate(self, transactional_id: str) -> Outcome:
        """Abort what is open under an id by claiming it: its producer is locked out."""
        self.describe(transactional_id)  # A claim would make an id that nobody knows.
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=_CLAIM_TIMEOUT_MS
        )

        def attempt() -> Outcome:
            node = self.coordinator_of(transactional_id)
            answer = self._cluster.ask(request, InitProducerIdResponse, node)
            if answer.error_code:
                raise error_for(answer.error_code, error_name(answer.error_code))
            return Outcome(name=transactional_id)

        return self._cluster.retry(attempt)

    def abort_at(self, topic: str, partition: int, start_offset: int) -> Outcome:
        """Abort the transaction that began at an offset, in this partition alone.

        For one that hangs: its coordinator has forgotten it, or never knew, and no consumer that
        reads committed records gets past it.
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
        """The broker that coordinates an id."""
        request = FindCoordinatorRequest(key_type=_TRANSACTION_KEY)
        is_batched = self._cluster.connection().version_of(request) >= _BATCHED_FROM
        if is_batched:
            request.coordinator_keys = [transactional_id]
        else:
            request.key = transactional_id

        def attempt() -> int:
            answer = self._cluster.ask(request, FindCoordinatorResponse)
            found = answer.coordinators[0] if is_batched else answer
            if found.error_code:
                raise error_for(
                    found.error_code, found.error_message or error_name(found.error_code)
                )
            return found.node_id

        return self._cluster.retry(attempt)

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

        def attempt() -> ListTransactionsResponse:
            answer = self._cluster.ask(request, ListTransactionsResponse, node)
            if answer.error_code:
                raise error_for(
                    answer.error_code, f"broker {node}: {error_name(answer.error_code)}"
                )
            return answer

        answer = self._cluster.retry(attempt)
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise NoSuchState(f"there is no state of a transaction named {unknown}")
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
        ) -> dict[int, list[ProducerState] | KafkaError]:
            request = DescribeProducersRequest(
                topics=[TopicRequest(name=topic, partition_indexes=[partition])]
            )
            answer = self._cluster.ask(request, DescribeProducersResponse, leader)
            (part,) = answer.topics[0].partitions
            if part.error_code:
                return {partition: error_for(part.error_code)}
            return {partition: part.active_producers}

        producers = self._cluster.ask_leaders(topic, {partition: None}, ask)[partition]
        for producer in producers:
            if producer.current_txn_start_offset == start_offset:
                return producer
        open_ = sorted(
            one.current_txn_start_offset for one in producers if one.current_txn_start_offset >= 0
        )
        there = ", ".join(map(str, open_)) if open_ else "none"
        raise NoSuchTransaction(
            f"{topic}-{partition} has no open transaction that began at offset {start_offset}; "
            f"open there: {there}"
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
