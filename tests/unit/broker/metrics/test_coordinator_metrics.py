"""The metrics of coordinators on the metrics page, under Kafka's names."""

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.broker.metrics.coordinator_metrics import (
    CoordinatorFigures,
    coordinator_families,
    count_groups,
    count_transactions,
)
from headrace.coordination.metrics import CoordinatorMetrics
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.runtime.exposition import render
from headrace.transactions.states import State
from tests.builders.classic_groups import ShardInMemory
from tests.builders.consumer_groups import GroupsInMemory, settle
from tests.unit.broker.api.builders import ask
from tests.unit.broker.api.transactions.coordinated import TOPIC, TransactionBroker

GROUPS = "kafka_server_group_coordinator_metrics"
CLASSIC = "kafka_coordinator_group_groupmetadatamanager"


def page(
    metrics: CoordinatorMetrics | None = None, figures: CoordinatorFigures | None = None
) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by metric name and labels, as Prometheus reads them."""
    families = coordinator_families(
        metrics or CoordinatorMetrics(), figures or CoordinatorFigures()
    )
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families("".join(render(families))):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_groups_show_by_protocol_and_state() -> None:
    counts = {("classic", "Stable"): 3, ("classic", "Empty"): 4, ("consumer", "Assigning"): 2}
    found = page(figures=CoordinatorFigures(groups=counts, offset_count=17))
    assert found[f"{GROUPS}_group_count"] == {
        ("classic",): 7,
        ("consumer",): 2,
        ("share",): 0,
        ("streams",): 0,
    }
    assert found[f"{GROUPS}_consumer_group_count"][("Assigning",)] == 2
    assert found[f"{GROUPS}_streams_group_count"][("NotReady",)] == 0
    assert found[f"{CLASSIC}_numgroups"][()] == 7
    assert found[f"{CLASSIC}_numgroupsstable"][()] == 3
    assert found[f"{CLASSIC}_numgroupspreparingrebalance"][()] == 0
    assert found[f"{CLASSIC}_numoffsets"][()] == 17


def test_transactions_show_by_state() -> None:
    counts = {State.ONGOING: 2, State.PREPARE_ABORT: 1}
    found = page(figures=CoordinatorFigures(transactions=counts, producer_id_count=9))
    assert found["headrace_transactional_ids"][("Ongoing",)] == 2
    waiting = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
    assert found[f"{waiting}_unknowndestinationqueuesize"][()] == 1
    assert found["kafka_server_replicamanager_produceridcount"][()] == 9


def test_a_classic_rebalance_counts_once_everyone_has_a_share() -> None:
    shard = ShardInMemory()
    shard.stable_group(2)
    metrics = shard.state.metrics
    assert metrics.completed_rebalances == 1
    assert count_groups(shard.state.groups.values()) == {("classic", "Stable"): 1}
    shard.reload()
    assert shard.state.metrics.completed_rebalances == 0


def test_a_new_epoch_of_a_consumer_group_is_a_rebalance() -> None:
    groups = GroupsInMemory()
    groups.state.on_loaded(groups.now_ms)
    groups.join("ada")
    groups.wait(2_000)
    groups.join("bob")
    settle(groups)
    found = page(groups.state.metrics)
    assert found[f"{GROUPS}_consumer_group_rebalance_count"][()] == 2


async def commit(broker: TransactionBroker, *partitions: int) -> None:
    asked = [OffsetCommitRequestPartition(one, 5, -1, "") for one in partitions]
    request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic(TOPIC, partitions=asked)])
    await ask(broker, ApiKey.OFFSET_COMMIT, request, 9)


@pytest.fixture
async def broker(tmp_path: Path) -> TransactionBroker:
    broker = TransactionBroker(tmp_path)
    await broker.coordinate()
    return broker


async def test_committed_offsets_count_when_they_are_written(broker: TransactionBroker) -> None:
    await commit(broker, 0, 1)
    await commit(broker, 1, 99)
    assert broker.metrics.coordinators.offset_commits == 3
    await broker.lose_memory()
    assert broker.metrics.coordinators.offset_commits == 3
    assert len(broker.groups.shard_for("g").state.offsets) == 2


async def test_a_partition_that_was_not_added_fails_its_verification(
    broker: TransactionBroker,
) -> None:
    producer = await broker.producer()
    assert await broker.commit_offset(producer, 3, version=3) != 0
    assert broker.metrics.coordinators.verification_failures == 1
    assert count_transactions(broker.transactions) == {State.EMPTY: 1}


async def test_partitions_show_as_active_once_they_are_loaded(broker: TransactionBroker) -> None:
    figures: Any = broker.groups.partition_states()
    assert figures == {"active": 1, "loading": 0}


def test_share_states_show_with_their_writes() -> None:
    metrics = CoordinatorMetrics()
    metrics.share_state_writes = 5
    figures = CoordinatorFigures(
        share_partition_count=3, share_state_partitions={"active": 50, "loading": 1}
    )
    found = page(metrics, figures)
    shares = "kafka_server_share_coordinator_metrics"
    assert found[f"{shares}_write_total"][()] == 5
    assert found[f"{shares}_num_partitions"] == {("active",): 50, ("loading",): 1}
    assert found["headrace_share_partitions"][()] == 3
