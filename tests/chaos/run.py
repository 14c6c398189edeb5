"""One run: a cluster, a load, a storm, and the report on what the clients saw."""

import hashlib
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

import headrace
from headrace.client.descriptions import ConfigChange
from headrace.errors import HeadraceError
from headrace.testing.cluster import ClusterProcess
from headrace.testing.process import BrokerFailed
from tests.chaos.checker import Anomaly, anomalies, counts
from tests.chaos.faults import Kind, Storm, schedule
from tests.chaos.histories import End, Histories, Outcome, Place
from tests.chaos.load import ATOMIC, PARTITIONS, PLAIN, SHARE_GROUP, Load
from tests.chaos.networks import Networks

SETTINGS = {
    # More faults than the default meet some record while a member holds it.
    "group.share.delivery.count.limit": 10,
    "group.share.max.delivery.count.limit": 25,
    # Records of a lost answer stay locked for this time.
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 5000,
    # Members that could not leave hold partitions for the time of their session.
    "group.share.min.session.timeout.ms": 1000,
    "group.share.session.timeout.ms": 6000,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.heartbeat.interval.ms": 1500,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 1500,
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
}
_HEALTHY_S = 60.0
_DRAIN_S = 60.0
_EXAMPLES = 5


class Plan(msgspec.Struct, frozen=True):
    """The arguments of a run."""

    directory: Path
    seed: int
    seconds: float
    rate: float
    weights: dict[Kind, int]
    networks: Networks | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run."""

    plan: Plan
    load: Load
    storm: Storm
    began: float
    elapsed_s: float
    healthy_s: float | None
    anomalies: list[Anomaly]
    failures: list[str]

    @property
    def is_good(self) -> bool:
        return not self.anomalies and not self.failures and self.healthy_s is not None

    def lines(self) -> Iterator[str]:
        """The report for people."""
        load, histories = self.load, self.load.histories
        yield f"seed {self.plan.seed}, {self.plan.seconds:g} s of faults"
        if self.plan.networks is None:
            yield "faults of processes only: the nodes have no networks of their own"
        for kind, count in self.storm.made.items():
            yield f"  fault: {kind.value:40}{count:8}"
        rate = load.acknowledged / self.elapsed_s
        yield f"records sent{len(histories.writes):45}"
        yield f"records acknowledged{load.acknowledged:37}, {rate:.0f}/s"
        for outcome in Outcome:
            for end in End:
                number = sum(
                    one.outcome is outcome and one.end is end for one in histories.transactions
                )
                yield f"  transactions to {end.value}, {outcome.value:20}{number:12}"
        for name, (gap_s, end_s) in gaps(histories, self.began).items():
            yield f"  longest gap of {name:9} {gap_s:25.1f} s, until {end_s:.1f} s"
        yield f"records polled{sum(len(one.seen) for one in histories.sessions):43}"
        yield f"share records delivered{len(histories.deliveries):34}"
        done = sum(one.outcome is Outcome.DONE for one in histories.commits)
        yield f"offset commits confirmed{done:33}"
        for text, count in sorted(load.notes.counts.items()):
            yield f"  passing error: {text[:110]} ({count})"
        for promise, count in counts(self.anomalies).items():
            yield f"{promise.value:50}{count:7}"
        for anomaly in self.anomalies[: 10 * _EXAMPLES]:
            yield f"  {anomaly.kind.value}: {anomaly.text}"
        for failure in self.failures:
            yield f"FAILED: {failure}"
        healthy = "never" if self.healthy_s is None else f"{self.healthy_s:.1f} s after the faults"
        yield f"healthy: {healthy}"
        verdict = "no anomaly" if self.is_good else "ANOMALIES"
        yield f"{verdict}; repeat the faults with SEED={self.plan.seed}"


def gaps(histories: Histories, began: float) -> dict[str, tuple[float, float]]:
    """Return the longest time without an acknowledgement for each producer, and its end."""
    times: dict[str, list[float]] = {}
    for write in histories.writes:
        if write.outcome is Outcome.DONE:
            name = write.value.writer.partition(".")[0]
            times.setdefault(name, []).append(write.acknowledged - began)
    longest = {}
    for name, ends in times.items():
        ends.sort()
        longest[name] = max((after - before, after) for before, after in pairwise([0.0, *ends]))
    return longest


def run(plan: Plan, log: Callable[[str], None]) -> Report:
    """Run one storm; the cluster is gone when it returns."""
    networks = plan.networks.of_nodes if plan.networks is not None else ()
    with ClusterProcess(plan.directory, SETTINGS, networks=networks) as cluster:
        _prepare(cluster)
        began = time.monotonic()
        load = Load(cluster.bootstrap_servers, plan.seed, plan.rate)
        load.start()
        faults = schedule(plan.seed, plan.seconds, plan.weights)
        storm = Storm(cluster, faults, plan.networks, lambda text: _log_at(log, began, text))
        storm.run()
        calm = time.monotonic()
        _log_at(log, began, "the faults are over")
        failures = list(storm.failures)
        healthy_s = _wait_until_healthy(cluster, calm, failures)
        load.stop_producers()
        elapsed_s = time.monotonic() - began
        _log_at(log, began, "the producers have stopped")
        try:
            load.read()
            _log_at(log, began, "the logs are read")
            for group, seconds in load.drain(_DRAIN_S).items():
                _log_at(log, began, f"{group} has read everything, {seconds:.1f} s")
            load.stop_consumers()
            _log_at(log, began, "the consumers have stopped")
        except HeadraceError as error:
            failures.append(str(error))
        if not failures:
            _compare_replicas(cluster, load)
    failures += load.notes.broken
    found = anomalies(load.histories)
    return Report(
        plan=plan,
        load=load,
        storm=storm,
        began=began,
        elapsed_s=elapsed_s,
        healthy_s=healthy_s,
        anomalies=found,
        failures=failures,
    )


def _prepare(cluster: ClusterProcess) -> None:
    with headrace.Admin(cluster.bootstrap_servers) as admin:
        topics = [headrace.NewTopic(name=name, partitions=PARTITIONS) for name in (PLAIN, ATOMIC)]
        for created in admin.topics.create(topics):
            assert created.error is None, created
        earliest = ConfigChange(name="share.auto.offset.reset", operation="set", value="earliest")
        outcome = admin.configs.alter("group", SHARE_GROUP, [earliest])
        assert outcome.error is None, outcome
    cluster.wait_until_in_sync()


def _wait_until_healthy(cluster: ClusterProcess, since: float, failures: list[str]) -> float | None:
    try:
        cluster.wait_until_in_sync(_HEALTHY_S)
    except BrokerFailed as failure:
        failures.append(str(failure))
        return None
    return time.monotonic() - since


def _compare_replicas(cluster: ClusterProcess, load: Load) -> None:
    """Note a digest of each replica's records once all nodes have stopped."""
    cluster.wait_until_in_sync(_HEALTHY_S)
    cluster.stop()
    digests: dict[Place, dict[int, str]] = {}
    for node in cluster.nodes:
        for topic in (PLAIN, ATOMIC):
            for index in range(PARTITIONS):
                directory = node.data_dir / f"{topic}-{index}"
                digests.setdefault((topic, index), {})[node.id] = _digest(directory)
    load.histories.replicas = digests


def _digest(directory: Path) -> str:
    """The number of bytes, and a hash of them."""
    data = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    return f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:12]}"


def _log_at(log: Callable[[str], None], began: float, text: str) -> None:
    log(f"{time.monotonic() - began:7.1f}  {text}")
