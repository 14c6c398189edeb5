"""The health of a cluster: what has fewer copies, leaders or nodes than it should have.

`problems_of` decides; `Health.read` collects its facts from any Kafka.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from headrace.client.admin import Admin
from headrace.client.descriptions import (
    BrokerDescription,
    PartitionDescription,
    QuorumDescription,
    TopicDescription,
)
from headrace.errors import HeadraceError

MIN_ISR = "min.insync.replicas"
INTERNAL_FACTORS = {
    "__consumer_offsets": "offsets.topic.replication.factor",
    "__transaction_state": "transaction.state.log.replication.factor",
    "__share_group_state": "share.coordinator.state.topic.replication.factor",
}
"""The setting of brokers that gives the number of replicas of each internal topic."""

VOTER_BEHIND_MS_MAX = 5_000
VOTER_LAG_MAX = 1_000
"""The limit where a quorum reports positions only. Idle quorums write two records per second."""


class Problem(msgspec.Struct, frozen=True, order=True):
    """One thing that is not as it should be."""

    kind: str
    subject: str
    found: str


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a cluster that decide on its health."""

    brokers: Sequence[BrokerDescription]
    quorum: QuorumDescription | None
    topics: Sequence[TopicDescription]
    min_isr: Mapping[str, int] = {}
    """min.insync.replicas by topic."""
    internal_factors: Mapping[str, int] = {}
    """The number of replicas that internal topics should have, by topic."""

    @classmethod
    def read(cls, admin: Admin) -> "Health":
        """Collect the facts; parts that older brokers do not report are left out."""
        described = admin.nodes.describe()
        topics = admin.topics.all()
        min_isr = admin.configs.values("topic", [topic.name for topic in topics], MIN_ISR)
        return cls(
            brokers=described.brokers,
            quorum=described.quorum,
            topics=topics,
            min_isr={name: int(text) for name, text in min_isr.items() if text},
            internal_factors=_internal_factors(admin, described.brokers, topics),
        )

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics)


def problems_of(health: Health) -> list[Problem]:
    """Return all problems, the worst kind first."""
    return [
        *_brokers(health),
        *_quorum(health.quorum),
        *_partitions(health),
        *_internal_topics(health),
    ]


def _brokers(health: Health) -> Iterator[Problem]:
    for broker in health.brokers:
        if broker.is_fenced:
            yield Problem("fenced", f"broker {broker.id}", "sends no heartbeats: is it running?")
    described = {broker.id for broker in health.brokers}
    replicas = {
        replica for topic in health.topics for part in topic.partitions for replica in part.replicas
    }
    for missing in sorted(replicas - described):
        yield Problem("missing", f"broker {missing}", "has replicas, but is not in the cluster")


def _quorum(quorum: QuorumDescription | None) -> Iterator[Problem]:
    if quorum is None:
        return
    if quorum.leader < 0:
        yield Problem("no leader", "metadata quorum", "no majority of the controllers is running")
    for voter in quorum.replicas:
        if voter.role != "voter":
            continue
        subject = f"controller {voter.id}"
        if voter.log_end_offset < 0:
            yield Problem("lagging", subject, "fetches nothing from the leader: is it running?")
        elif voter.behind_ms is not None and voter.behind_ms > VOTER_BEHIND_MS_MAX:
            yield Problem("lagging", subject, f"is {voter.behind_ms // 1000} s behind the leader")
        elif voter.behind_ms is None and voter.lag > VOTER_LAG_MAX:
            yield Problem("lagging", subject, f"is {voter.lag} records behind the leader")


def _partitions(health: Health) -> Iterator[Problem]:
    by_severity: list[Problem] = []
    for topic in health.topics:
        for part in topic.partitions:
            if part.leader is None:
                yield Problem("no leader", f"{topic.name}-{part.partition}", _in_sync(part))
                continue
            needed = min(health.min_isr.get(topic.name, 1), len(part.replicas))
            if len(part.isr) < needed:
                found = f"{_in_sync(part)}, and acks=all needs {needed}"
                yield Problem("under min ISR", f"{topic.name}-{part.partition}", found)
            elif part.is_under_replicated:
                by_severity.append(
                    Problem("under-replicated", f"{topic.name}-{part.partition}", _in_sync(part))
                )
    yield from by_severity


def _internal_topics(health: Health) -> Iterator[Problem]:
    """Internal topics are created once: with few brokers, they keep few replicas."""
    for topic in health.topics:
        wanted = min(health.internal_factors.get(topic.name, 1), len(health.brokers))
        if topic.replication_factor < wanted:
            found = f"has {topic.replication_factor} replicas instead of {wanted}; reassign it"
            yield Problem("few replicas", topic.name, found)


def _in_sync(part: PartitionDescription) -> str:
    in_sync = ", ".join(map(str, part.isr)) or "none"
    return f"in sync: {in_sync}; replicas: {', '.join(map(str, part.replicas))}"


def _internal_factors(
    admin: Admin, brokers: Iterable[BrokerDescription], topics: Iterable[TopicDescription]
) -> dict[str, int]:
    """Read the wanted factors of the internal topics that exist from a running broker."""
    present = [topic.name for topic in topics if topic.name in INTERNAL_FACTORS]
    running = [broker.id for broker in brokers if not broker.is_fenced]
    if not present or not running:
        return {}
    try:
        entries = admin.configs.describe("broker", str(running[0]))
    except HeadraceError:
        return {}  # Settings of brokers need a permission of their own.
    values = {entry.name: entry.value for entry in entries}
    factors = {name: values.get(INTERNAL_FACTORS[name]) for name in present}
    return {name: int(text) for name, text in factors.items() if text}
