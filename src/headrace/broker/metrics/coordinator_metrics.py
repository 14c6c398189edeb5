"""The metrics of coordinators, under the names of Kafka's JMX exporter.

All are counted on a scrape, except for the counters of `CoordinatorMetrics`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from headrace.coordination.metrics import CoordinatorMetrics
from headrace.groups.group import Group, GroupType
from headrace.runtime.exposition import Family, Sample, gauge, labels
from headrace.transactions.states import State
from headrace.transactions.transaction import Transaction

_GROUPS = "kafka_server_group_coordinator_metrics"
_SHARES = "kafka_server_share_coordinator_metrics"
_CLASSIC = "kafka_coordinator_group_groupmetadatamanager"
_MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager"

# Kafka has a gauge for each of these states, also for states without a group.
_CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
_STATES = {
    GroupType.CONSUMER: ("Empty", "Assigning", "Reconciling", "Stable", "Dead"),
    GroupType.SHARE: ("Empty", "Stable", "Dead"),
    GroupType.STREAMS: ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"),
}


class CoordinatorFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the coordinators of a node at the moment of a scrape."""

    groups: Mapping[tuple[str, str], int] = {}  # By type and state.
    offset_count: int = 0
    group_partitions: Mapping[str, int] = {}  # Partitions of `__consumer_offsets`: active, loading.
    transactions: Mapping[State, int] = {}
    transaction_partitions: Mapping[str, int] = {}
    producer_id_count: int = 0
    share_partition_count: int = 0
    share_state_partitions: Mapping[str, int] = {}


def count_groups(groups: Iterable[Group]) -> Mapping[tuple[str, str], int]:
    return Counter((group.type, group.state_name) for group in groups)


def count_transactions(transactions: Iterable[Transaction]) -> Mapping[State, int]:
    return Counter(one.state for one in transactions)


def coordinator_families(
    metrics: CoordinatorMetrics, figures: CoordinatorFigures
) -> Iterator[Family]:
    yield from _classic_families(figures)
    yield from _group_families(figures)
    yield from _counters(metrics)
    yield from _transaction_families(metrics, figures)
    yield from _share_families(metrics, figures)


def _classic_families(figures: CoordinatorFigures) -> Iterator[Family]:
    """The older metrics, which count only groups of the classic protocol."""
    total = _of_type(figures, GroupType.CLASSIC)
    yield gauge(f"{_CLASSIC}_numgroups", "Groups of the classic protocol.", total)
    for state in _CLASSIC_STATES:
        count = figures.groups.get((GroupType.CLASSIC, state), 0)
        name = f"{_CLASSIC}_numgroups{state.lower()}"
        yield gauge(name, f"Groups of the classic protocol in the state {state}.", count)
    yield gauge(f"{_CLASSIC}_numoffsets", "Committed offsets.", figures.offset_count)


def _group_families(figures: CoordinatorFigures) -> Iterator[Family]:
    yield Family(
        f"{_GROUPS}_group_count",
        "gauge",
        "Groups by their protocol.",
        [Sample(_of_type(figures, one), labels(protocol=one.value)) for one in GroupType],
    )
    for kind, states in _STATES.items():
        yield Family(
            f"{_GROUPS}_{kind}_group_count",
            "gauge",
            f"{kind.capitalize()} groups by their state.",
            [Sample(figures.groups.get((kind, state), 0), labels(state=state)) for state in states],
        )
    yield _partitions(_GROUPS, "__consumer_offsets", figures.group_partitions)


def _counters(metrics: CoordinatorMetrics) -> Iterator[Family]:
    yield _count(f"{_GROUPS}_offset_commit_count", "Offsets committed.", metrics.offset_commits)
    yield _count(
        f"{_GROUPS}_group_completed_rebalance_count",
        "Completed rebalances of classic groups.",
        metrics.completed_rebalances,
    )
    for kind in _STATES:
        yield _count(
            f"{_GROUPS}_{kind}_group_rebalance_count",
            f"Rebalances that {kind} groups began.",
            metrics.rebalances.get(kind, 0),
        )


def _transaction_families(
    metrics: CoordinatorMetrics, figures: CoordinatorFigures
) -> Iterator[Family]:
    prepared = sum(count for state, count in figures.transactions.items() if state.is_prepared)
    yield gauge(
        f"{_MARKERS}_unknowndestinationqueuesize",
        "Transactions that wait for their last markers to be written.",
        prepared,
    )
    yield _count(
        "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count",
        "Partitions rejected because they were not part of the transaction.",
        metrics.verification_failures,
    )
    yield gauge(
        "kafka_server_replicamanager_produceridcount",
        "Producer ids in the state of the partitions on this node.",
        figures.producer_id_count,
    )
    yield Family(
        "headrace_transactional_ids",
        "gauge",
        "Transactional ids by the state of their transaction.",
        [
            Sample(figures.transactions.get(state, 0), labels(state=state.label))
            for state in State
            if state not in (State.DEAD, State.PREPARE_EPOCH_FENCE)
        ],
    )
    yield _partitions(
        "kafka_server_transaction_coordinator_metrics",
        "__transaction_state",
        figures.transaction_partitions,
    )


def _share_families(metrics: CoordinatorMetrics, figures: CoordinatorFigures) -> Iterator[Family]:
    yield _count(
        f"{_SHARES}_write_total",
        "Writes of the state of a share partition.",
        metrics.share_state_writes,
    )
    yield gauge(
        "headrace_share_partitions",
        "Share partitions whose state this node coordinates.",
        figures.share_partition_count,
    )
    yield _partitions(_SHARES, "__share_group_state", figures.share_state_partitions)


def _count(name: str, help_text: str, value: int) -> Family:
    """A counter, typed as untyped because Kafka's name does not end in `_total`."""
    return Family(name, "untyped", help_text, (Sample(value),))


def _partitions(prefix: str, topic: str, counts: Mapping[str, int]) -> Family:
    return Family(
        f"{prefix}_num_partitions",
        "gauge",
        f"Partitions of {topic} that this node coordinates, by state.",
        [Sample(counts.get(state, 0), labels(state=state)) for state in ("active", "loading")],
    )


def _of_type(figures: CoordinatorFigures, kind: GroupType) -> int:
    return sum(count for (one, _), count in figures.groups.items() if one == kind)
