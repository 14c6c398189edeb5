"""Topics that are recreated under a stream that may continue, for any crash of its driver."""

from enum import Enum
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import random_uuid
from headrace.spark.source.brokers import Topic
from headrace.spark.source.offsets import LATEST, Positions
from headrace.spark.source.options import parse
from headrace.spark.source.planning import TaskRanges
from headrace.spark.source.starts import Starts, load, starts_path
from headrace.spark.source.stream_plan import StreamPlan

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Moment(Enum):
    """When a driver dies; what it has planned after that is lost."""

    PLANNED = "the end is not written down"
    LOGGED = "no task has run"
    RUN = "all tasks have run"
    COMMITTED = "the batch is done"


class Cluster:
    """One topic, as far as a plan asks for it."""

    def __init__(self, *ends: int) -> None:
        self.make(*ends)

    def make(self, *ends: int) -> None:
        """The topic, or another of its name."""
        self.id = random_uuid()
        self.ends = ends

    def topics(self, names: Any, *, may_miss: bool = False) -> list[Topic]:
        return [Topic("orders", self.id, dict.fromkeys(range(len(self.ends)), 0))]

    def offsets(self, asked: Positions) -> Positions:
        return {
            place: self.ends[place.partition] if at == LATEST else 0 for place, at in asked.items()
        }


class Driver:
    """Does what Spark does: writes an end down, runs the tasks, and notes that it has."""

    def __init__(self, cluster: Cluster, folder: Path, **options: str) -> None:
        self.cluster = cluster
        self.options = {
            "kafka.bootstrap.servers": "h:1",
            "subscribe": "orders",
            "startingOffsets": "earliest",
            "failOnDataLoss": "false",
            "startsLocation": str(folder),
            **options,
        }
        self.log: list[Positions] = []
        self.committed = 0
        self.read: list[int] = []
        """The offsets in the first partition that batches brought which are done."""
        self.start()

    def start(self) -> None:
        brokers = cast(Any, self.cluster)
        self.plan = StreamPlan(parse(self.options, is_streaming=True), brokers)
        self.log = [self.plan.initial(), *self.log[1:]]

    def trigger(self, dies: Moment | None = None) -> None:
        """One micro-batch, if there is one, or as far as the driver lives."""
        if self.committed == len(self.log) - 1:
            end = self.plan.next_end(self.log[-1], is_limited=True)
            if dies is Moment.PLANNED:
                return self.start()
            if end == self.log[-1]:
                return None
            self.log.append(end)
        if dies is Moment.LOGGED:
            return self.start()
        shares = self.plan.shares(self.log[-2], self.log[-1])
        if dies is Moment.RUN:
            return self.start()
        self.read += offsets_of(shares)
        self.committed += 1
        return self.start() if dies is Moment.COMMITTED else None


def offsets_of(shares: list[TaskRanges]) -> list[int]:
    ranges = [one for share in shares for one in share if one.place == FIRST]
    return [offset for one in ranges for offset in range(one.first, one.end)]


@pytest.mark.parametrize("records", [10, 100, 250])
@pytest.mark.parametrize("trigger", [0, 1, 2])
@pytest.mark.parametrize("dies", [None, *Moment])
def test_all_of_a_new_topic_is_read_after_any_crash_of_the_driver(
    tmp_path: Path, dies: Moment | None, trigger: int, records: int
) -> None:
    """The position in the old topic, 100, is no position in the new one."""
    cluster = Cluster(100)
    driver = Driver(cluster, tmp_path, maxOffsetsPerTrigger="100")
    driver.trigger()
    assert driver.read == list(range(100))
    driver.read.clear()
    cluster.make(records)
    for number in range(8):
        driver.trigger(dies if number == trigger else None)
    assert driver.read == list(range(records))


def test_a_batch_planned_for_the_old_topic_reads_none_of_the_new_one(
    tmp_path: Path,
) -> None:
    cluster = Cluster(100)
    driver = Driver(cluster, tmp_path)
    driver.trigger(Moment.LOGGED)
    cluster.make(150)
    for _ in range(4):
        driver.trigger()
    assert driver.read == list(range(150))


def kept_by(folder: Path) -> Starts:
    kept = load(starts_path(str(folder)))
    assert kept is not None
    return kept


def test_a_topic_made_again_is_noted_as_such_where_records_of_it_were_read(tmp_path: Path) -> None:
    """A replay of the new topic alone would come to less."""
    cluster = Cluster(5)
    driver = Driver(cluster, tmp_path)
    driver.trigger()
    cluster.make(3)
    driver.trigger(Moment.PLANNED)
    for _ in range(3):
        driver.trigger()
    assert kept_by(tmp_path) == Starts({FIRST: 0}, {"orders": cluster.id}, frozenset({"orders"}))


@pytest.mark.parametrize("dies", [None, *Moment])
def test_a_topic_made_again_while_it_was_empty_begins_with_its_new_partitions(
    tmp_path: Path, dies: Moment | None
) -> None:
    """No table has rows of the old topic, so tables can be rebuilt from the new one."""
    cluster = Cluster(0, 0)
    driver = Driver(cluster, tmp_path)
    driver.trigger()
    cluster.make(3)
    driver.trigger(dies)
    driver.trigger()
    assert kept_by(tmp_path) == Starts({FIRST: 0}, {"orders": cluster.id})
    assert driver.read == [0, 1, 2]


def test_a_backfill_that_may_have_read_the_old_topic_is_noted(tmp_path: Path) -> None:
    cluster = Cluster(50)
    driver = Driver(cluster, tmp_path, startingOffsets="latest")
    cluster.make(3)
    for _ in range(3):
        driver.trigger()
    assert kept_by(tmp_path).remade == {"orders"}
    assert driver.read == [0, 1, 2]


def test_partitions_missing_in_a_new_topic_are_dropped(tmp_path: Path) -> None:
    cluster = Cluster(5, 5)
    driver = Driver(cluster, tmp_path)
    driver.trigger()
    cluster.make(3)
    driver.trigger()
    assert driver.log[-1] == {FIRST: 0}
    cluster.ends = (3, 7)
    driver.trigger(Moment.COMMITTED)
    assert driver.log[-2:] == [{FIRST: 0}, {FIRST: 3, SECOND: 7}]


@pytest.mark.parametrize(
    ("options", "is_warned"),
    [
        ({}, True),
        ({"startingOffsets": "latest"}, True),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, True),
        ({"startingOffsets": "earliest"}, False),
        ({"startingOffsets": '{"orders": {"0": 2}}'}, False),
        ({"startsLocation": "kept"}, False),
    ],
)
def test_a_stream_that_starts_at_the_end_without_storing_it_warns_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, str],
    is_warned: bool,
) -> None:
    """After a crash in the first batch the end is another one."""
    monkeypatch.chdir(tmp_path)
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "orders", **options}
    plan = StreamPlan(parse(given, is_streaming=True), cast(Any, Cluster(5)))
    assert plan.initial() == plan.initial()
    assert caplog.text.count("start at the latest offsets is not stored") == is_warned
