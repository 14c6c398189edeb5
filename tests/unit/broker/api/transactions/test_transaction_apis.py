"""The APIs of transactions, from claim to marker, in every version."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.produce.admission import admit
from headrace.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    IllegalGeneration,
    InvalidGroupId,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRegularExpression,
    InvalidRequest,
    InvalidTransactionTimeout,
    InvalidTxnState,
    NotEnoughReplicas,
    OperationNotAttempted,
    ProducerFenced,
    TopicAuthorizationFailed,
    TransactionAbortable,
    TransactionalIdNotFound,
    TransactionCoordinatorFenced,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_produce import ProduceView
from headrace.protocol.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.schemas.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.schemas.list_transactions import ListTransactionsRequest
from headrace.protocol.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.storage.producer_state import EPOCH_MAX
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch
from headrace.transactions.states import State
from headrace.transactions.transaction import Transaction
from tests.unit.broker.api.builders import ask
from tests.unit.broker.api.transactions.coordinated import (
    NAME,
    PARTITIONS,
    TOPIC,
    TransactionBroker,
    record_of,
)


@pytest.fixture
async def broker(tmp_path: Path) -> TransactionBroker:
    broker = TransactionBroker(tmp_path)
    await broker.coordinate()
    return broker


def is_stable(broker: TransactionBroker) -> list[bool]:
    logs = [broker.log(TOPIC, index) for index in range(PARTITIONS)]
    return [log.last_stable_offset == log.log_end_offset for log in logs]


# InitProducerId


@pytest.mark.parametrize("version", range(6))
async def test_a_claim_bumps_the_epoch(broker: TransactionBroker, version: int) -> None:
    """PRD-16"""
    response = [await broker.claim(version=version) for _ in range(3)]
    assert [(one.error_code, one.producer_id, one.producer_epoch) for one in response] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 2),
    ]


@pytest.mark.parametrize("version", range(3, 6))
async def test_a_replaced_producer_is_fenced(broker: TransactionBroker, version: int) -> None:
    for _ in range(3):
        await broker.producer()
    response = await broker.claim(version=version, producer_id=0, producer_epoch=0)
    expected = ProducerFenced if version >= 4 else InvalidProducerEpoch
    assert (response.error_code, response.producer_id, response.producer_epoch) == (
        expected.code,
        -1,
        -1,
    )


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
async def test_a_timeout_has_its_bounds(broker: TransactionBroker, timeout_ms: int) -> None:
    response = await broker.claim(transaction_timeout_ms=timeout_ms)
    assert response.error_code == InvalidTransactionTimeout.code


async def test_a_claim_aborts_the_open_transaction(broker: TransactionBroker) -> None:
    """PRD-16: Kafka makes the client retry; here the response waits for the end."""
    old = await broker.producer()
    await broker.add(old, 0, 1)
    broker.write(old, 0)
    new = await broker.producer()
    assert (new.id, new.epoch) == (old.id, old.epoch + 2)
    assert is_stable(broker) == [True] * PARTITIONS
    assert len(broker.log(TOPIC, 0).aborted_transactions(0, 9)) == 1
    assert (await broker.end(old)).error_code == ProducerFenced.code


async def test_a_producer_gets_a_new_id_when_its_epochs_run_out(broker: TransactionBroker) -> None:
    broker.put(Transaction(NAME, 99, EPOCH_MAX - 1, timeout_ms=1000))
    response = await broker.claim()
    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id != 99


# AddPartitionsToTxn, AddOffsetsToTxn


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added(broker: TransactionBroker, version: int) -> None:
    producer = await broker.producer()
    assert await broker.add(producer, 0, 2, version=version) == [0, 0]
    assert broker.known().state is State.ONGOING
    assert broker.known().partitions == {(TOPIC, 0), (TOPIC, 2)}


@pytest.mark.parametrize("version", range(4))
async def test_adding_in_an_old_epoch_is_refused(broker: TransactionBroker, version: int) -> None:
    old = await broker.producer()
    await broker.producer()
    expected = ProducerFenced if version >= 2 else InvalidProducerEpoch
    assert await broker.add(old, 0, version=version) == [expected.code]


async def test_one_partition_that_is_refused_refuses_all(broker: TransactionBroker) -> None:
    producer = await broker.producer()
    assert await broker.add(producer, 0, 7) == [
        OperationNotAttempted.code,
        UnknownTopicOrPartition.code,
    ]
    assert await broker.add(producer, 0, topic="__consumer_offsets") == [
        TopicAuthorizationFailed.code
    ]
    assert broker.known().state is State.EMPTY


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_verify_for_many_at_once(broker: TransactionBroker, version: int) -> None:
    """KIP-890: a partition outside of the transaction rejects its records."""
    producer = await broker.producer()
    await broker.add(producer, 0)
    topics = [AddPartitionsToTxnTopic(name=TOPIC, partitions=[0, 1])]
    asked = [
        AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=True,
            topics=topics,
        )
        for name in (NAME, "nobody")
    ]
    request = AddPartitionsToTxnRequest(transactions=asked)
    response = await ask(broker, ApiKey.ADD_PARTITIONS_TO_TXN, request, version)
    codes = {
        result.transactional_id: [
            one.partition_error_code
            for topic in result.topic_results
            for one in topic.results_by_partition
        ]
        for result in response.results_by_transaction
    }
    assert codes == {
        NAME: [0, TransactionAbortable.code],
        "nobody": [InvalidProducerIdMapping.code] * 2,
    }


@pytest.mark.parametrize("version", range(5))
async def test_a_groups_partition_is_added(broker: TransactionBroker, version: int) -> None:
    producer = await broker.producer()
    assert await broker.add_offsets(producer, version) == 0
    assert broker.known().partitions == {("__consumer_offsets", 0)}


# EndTxn


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("is_commit", [True, False])
async def test_an_end_reaches_every_partition(
    broker: TransactionBroker, version: int, is_commit: bool
) -> None:
    """DEL-5: markers, the last stable offset, and the state after it."""
    producer = await broker.producer()
    await broker.add(producer, 0, 1)
    broker.write(producer, 0)
    broker.write(producer, 1)
    assert is_stable(broker) == [False, False, True]
    response = await broker.end(producer, is_commit=is_commit, version=version)
    assert response.error_code == 0
    assert is_stable(broker) == [True] * PARTITIONS
    assert [broker.log(TOPIC, index).log_end_offset for index in range(3)] == [2, 2, 0]
    state = State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT
    assert (broker.known().state, broker.known().partitions) == (state, frozenset())
    assert len(broker.log(TOPIC, 0).aborted_transactions(0, 2)) == (0 if is_commit else 1)


async def test_v5_returns_the_producer_of_the_next_transaction(broker: TransactionBroker) -> None:
    """KIP-890: each transaction has an epoch of its own."""
    producer = await broker.producer()
    await broker.add(producer, 0)
    broker.write(producer, 0)
    response = await broker.end(producer, version=5)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (
        0,
        producer.id,
        1,
    )
    again = await broker.end(producer, version=5)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, producer.id, 1)


async def test_v5_gives_a_producer_a_new_id_when_its_epochs_run_out(
    broker: TransactionBroker,
) -> None:
    last = ProducerIdAndEpoch(99, EPOCH_MAX - 1)
    broker.put(Transaction(NAME, *last, timeout_ms=60_000))
    await broker.add(last, 0)
    broker.write(last, 0)
    response = await broker.end(last, version=5)
    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id != 99
    again = await broker.end(last, version=5)
    assert (again.producer_id, again.producer_epoch) == (response.producer_id, 0)


async def test_partitions_that_are_gone_need_no_marker(broker: TransactionBroker) -> None:
    producer = await broker.producer()
    await broker.add(producer, 0, 1)
    broker.partitions.drop(broker.image.topics[TOPIC].id)
    assert (await broker.end(producer)).error_code == 0
    assert broker.known().state is State.COMPLETE_COMMIT


async def test_a_marker_that_cannot_be_written_is_tried_again(broker: TransactionBroker) -> None:
    """DEL-5: the end is decided; a disk that fails for a while only delays it."""
    producer = await broker.producer()
    await broker.add(producer, 0, 1)
    partition = broker.partitions.led(TOPIC, 1)
    log, partition.log = partition.log, None
    assert (await broker.end(producer)).error_code == 0
    assert broker.known().state is State.PREPARE_COMMIT
    assert await broker.add(producer, 0) == [ConcurrentTransactions.code]
    assert (await broker.claim()).error_code == ConcurrentTransactions.code
    partition.log = log
    broker.clock.time_ms += 1000
    broker.timers._run()
    assert broker.known().state is State.COMPLETE_COMMIT
    assert log is not None
    assert log.log_end_offset == 1


async def test_a_decision_that_cannot_be_written_has_no_effect(broker: TransactionBroker) -> None:
    producer = await broker.producer()
    await broker.add(producer, 0)
    partition = broker.partitions.led("__transaction_state", 0)
    log, partition.log = partition.log, None
    assert (await broker.end(producer)).error_code != 0
    assert broker.known().state is State.ONGOING
    partition.log = log
    assert (await broker.end(producer)).error_code == 0


# Crashes and time


@pytest.mark.parametrize("is_commit", [True, False])
async def test_a_restart_writes_the_markers_that_a_crash_prevented(
    broker: TransactionBroker, is_commit: bool
) -> None:
    """DEL-5: the first record is found again, and the rest is done then."""
    producer = await broker.producer()
    await broker.add(producer, 0, 1)
    broker.write(producer, 0)
    open_ = broker.known()
    state = State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT
    fields = {name: getattr(open_, name) for name in open_.__struct_fields__}
    broker.put(Transaction(**(fields | {"state": state})))
    await broker.lose_memory()
    for _ in range(10):
        await asyncio.sleep(0.001)
    assert broker.known().state is (State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT)
    assert is_stable(broker) == [True] * PARTITIONS


async def test_nothing_is_forgotten_by_a_restart(broker: TransactionBroker) -> None:
    producer = await broker.producer()
    await broker.add(producer, 0, 1)
    before = broker.known()
    await broker.lose_memory()
    assert broker.known() == before
    assert (await broker.end(producer)).error_code == 0


async def test_a_transaction_that_lasts_too_long_is_aborted(broker: TransactionBroker) -> None:
    producer = await broker.producer()
    await broker.add(producer, 0)
    broker.write(producer, 0)
    broker.clock.time_ms += 60_001
    broker.timers._run()
    assert broker.known().state is State.COMPLETE_ABORT
    assert is_stable(broker) == [True] * PARTITIONS
    assert (await broker.end(producer)).error_code == ProducerFenced.code


async def test_unused_transactional_ids_expire(broker: TransactionBroker) -> None:
    await broker.producer()
    broker.clock.time_ms += broker.settings.transactional_id_expiration_ms
    broker.timers._run()
    assert broker.transactions.find(NAME) is None
    await broker.lose_memory()
    assert broker.transactions.find(NAME) is None


# Offsets


@pytest.mark.parametrize("is_commit", [True, False])
async def test_offsets_count_when_the_transaction_commits(
    broker: TransactionBroker, is_commit: bool
) -> None:
    """DEL-4: also when the shard was reloaded before the end."""
    producer = await broker.producer()
    assert await broker.commit_offset(producer, 5, version=5) == 0
    assert broker.committed_offset() is None
    await broker.lose_memory()
    assert broker.committed_offset() is None
    await broker.end(producer, is_commit=is_commit, version=5)
    expected = 5 if is_commit else None
    assert broker.committed_offset() == expected
    await broker.lose_memory()
    assert broker.committed_offset() == expected


@pytest.mark.parametrize("version", range(6))
async def test_offsets_need_a_transaction(broker: TransactionBroker, version: int) -> None:
    """KIP-890: up to v4 a client has said before that it will commit offsets."""
    producer = await broker.producer()
    expected = {4: TransactionAbortable.code, 5: 0}.get(version, InvalidTxnState.code)
    assert await broker.commit_offset(producer, 5, version) == expected
    stale = ProducerIdAndEpoch(producer.id, producer.epoch + 1)
    assert await broker.commit_offset(stale, 5, version) == InvalidProducerEpoch.code
    await broker.add_offsets(producer)
    assert await broker.commit_offset(producer, 5, version) == 0


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, InvalidGroupId),
        ({"topic": "nothing"}, UnknownTopicOrPartition),
        ({"generation_id": 3, "member_id": "m"}, IllegalGeneration),
    ],
)
async def test_invalid_commits_in_a_transaction_are_rejected(
    broker: TransactionBroker, fields: dict[str, Any], error: type[InvalidGroupId]
) -> None:
    producer = await broker.producer()
    await broker.add_offsets(producer)
    assert await broker.commit_offset(producer, 5, **fields) == error.code


# Before an append


def one_batch(producer: ProducerIdAndEpoch, *indexes: int) -> ProduceView:
    sets: list[tuple[int, memoryview | None]] = [(index, record_of(producer)) for index in indexes]
    return ProduceView(NAME, -1, 1000, [(TOPIC.encode(), sets)])


@pytest.mark.parametrize(
    ("version", "error"), [(3, InvalidTxnState), (10, InvalidTxnState), (11, TransactionAbortable)]
)
async def test_a_partition_that_was_not_added_is_not_written_to(
    broker: TransactionBroker, version: int, error: type[InvalidTxnState]
) -> None:
    producer = await broker.producer()
    await broker.add(producer, 0)
    verdict = await admit(broker, one_batch(producer, 0, 1), version)  # type: ignore[arg-type]
    assert {place: type(one) for place, one in verdict.refused.items()} == {
        (TOPIC.encode(), 1): error
    }
    assert verdict.transaction_version == 0


async def test_from_v12_on_it_is_added(broker: TransactionBroker) -> None:
    producer = await broker.producer()
    verdict = await admit(broker, one_batch(producer, 0, 1), 12)  # type: ignore[arg-type]
    assert verdict == ({}, 2)
    assert broker.known().partitions == {(TOPIC, 0), (TOPIC, 1)}
    assert broker.known().client_version == 2


async def test_a_replaced_producer_cannot_write(broker: TransactionBroker) -> None:
    """PRD-16"""
    old = await broker.producer()
    await broker.producer()
    for version in (11, 12):
        verdict = await admit(broker, one_batch(old, 0), version)  # type: ignore[arg-type]
        assert [type(one) for one in verdict.refused.values()] == [InvalidProducerEpoch]


async def test_an_open_transaction_is_not_verified_again(broker: TransactionBroker) -> None:
    producer = await broker.producer()
    await broker.add(producer, 0)
    broker.write(producer, 0)
    broker.transactions.coordinator._forget()
    verdict = await admit(broker, one_batch(producer, 0), 11)  # type: ignore[arg-type]
    assert not verdict.refused
    verdict = await admit(broker, one_batch(producer, 1), 11)  # type: ignore[arg-type]
    assert [type(one) for one in verdict.refused.values()] == [NotEnoughReplicas]


async def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    broker = TransactionBroker(tmp_path, transaction_partition_verification_enable=False)
    await broker.coordinate()
    producer = await broker.producer()
    verdict = await admit(broker, one_batch(producer, 0), 11)  # type: ignore[arg-type]
    assert verdict == ({}, 0)


async def test_one_request_has_one_producer(broker: TransactionBroker) -> None:
    sets: list[tuple[int, memoryview | None]] = [
        (0, record_of(ProducerIdAndEpoch(1, 0))),
        (1, record_of(ProducerIdAndEpoch(2, 0))),
    ]
    request = ProduceView(NAME, -1, 1000, [(TOPIC.encode(), sets)])
    with pytest.raises(InvalidProducerIdMapping):
        await admit(broker, request, 12)  # type: ignore[arg-type]


# WriteTxnMarkers, DescribeTransactions, ListTransactions


@pytest.mark.parametrize("version", [1, 2])
async def test_a_request_writes_markers_directly(broker: TransactionBroker, version: int) -> None:
    producer = await broker.producer()
    await broker.add(producer, 0)
    broker.write(producer, 0)

    async def mark(index: int, epoch: int, coordinator_epoch: int = 0) -> int:
        marker = WritableTxnMarker(
            producer_id=producer.id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[index])],
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        response = await ask(broker, ApiKey.WRITE_TXN_MARKERS, request, version)
        code: int = response.markers[0].topics[0].partitions[0].error_code
        return code

    assert await mark(9, 0) == UnknownTopicOrPartition.code
    assert await mark(0, 0, 3) == 0
    assert is_stable(broker)[0]
    assert await mark(0, 0, 2) == TransactionCoordinatorFenced.code
    assert await mark(0, -1) == UnknownServerError.code
    assert await mark(0, 2, 3) == 0
    assert await mark(0, 1, 3) == InvalidProducerEpoch.code


async def test_transactions_are_described(broker: TransactionBroker) -> None:
    producer = await broker.producer()
    await broker.add(producer, 2, 0)
    request = DescribeTransactionsRequest(transactional_ids=[NAME, "nobody", ""])
    response = await ask(broker, ApiKey.DESCRIBE_TRANSACTIONS, request)
    found, unknown, empty = response.transaction_states
    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert found.transaction_start_time_ms == broker.clock.now_ms()
    assert [(one.topic, one.partitions) for one in found.topics] == [(TOPIC, [0, 2])]
    assert unknown.error_code == TransactionalIdNotFound.code
    assert empty.error_code == InvalidRequest.code


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["a", "b"]),
        ({"state_filters": ["Ongoing"]}, ["b"]),
        ({"state_filters": ["Ongoing", "Bogus"]}, ["b"]),
        ({"producer_id_filters": [10]}, ["a"]),
        ({"duration_filter": 500}, ["a", "b"]),
        ({"duration_filter": 2000}, ["a"]),
        ({"transactional_id_pattern": "a.*"}, ["a"]),
    ],
)
async def test_transactions_are_listed(
    broker: TransactionBroker, filters: dict[str, Any], names: list[str]
) -> None:
    now_ms = broker.clock.now_ms()
    partitions = frozenset({TopicPartition(TOPIC, 0)})
    broker.put(Transaction("a", 10, 0))
    broker.put(Transaction("b", 11, 0, state=State.ONGOING, partitions=partitions, start_ms=now_ms))
    broker.clock.time_ms += 1000
    request = ListTransactionsRequest(**filters)
    response = await ask(broker, ApiKey.LIST_TRANSACTIONS, request)
    assert [one.transactional_id for one in response.transaction_states] == names
    assert response.unknown_state_filters == (["Bogus"] if "Bogus" in str(filters) else [])


async def test_a_list_of_transactions_is_never_partial(broker: TransactionBroker) -> None:
    response = await ask(
        broker, ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(transactional_id_pattern="[")
    )
    assert response.error_code == InvalidRegularExpression.code
    await broker.producer()
    broker.transactions.coordinator._forget()
    broker.transactions.coordinator.follow(broker.image)
    response = await ask(broker, ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
    assert response.error_code == CoordinatorLoadInProgress.code
