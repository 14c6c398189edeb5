"""A leader against a plain model: appends, fetches, ISR changes, elections, in any order.

The model has the offsets of each replica and the ISR of the controller, which may change before
the leader learns of it.
"""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.metadata.image import PartitionImage, TopicImage
from headrace.replication.metrics import TopicMetrics
from headrace.replication.partition import Partition
from headrace.replication.partitions import Partitions
from tests.builders.logs import NOW, TOPIC_ID, batch_of, fresh_directories, new_log

LEADER, SECOND, THIRD = 1, 2, 3
REPLICAS = (LEADER, SECOND, THIRD)
LAG_MAX_MS = 100

followers = st.sampled_from((SECOND, THIRD))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("fetch"), followers),
        st.tuples(st.just("fetch a part"), followers),
        st.tuples(st.just("join"), followers),
        st.tuples(st.just("leave"), followers),
        st.tuples(st.just("leave for certain"), followers),
        st.tuples(st.just("decide"), st.booleans()),
        st.tuples(st.just("publish"), st.none()),
        st.tuples(st.just("answer"), st.none()),
        st.tuples(st.just("time"), st.integers(1, 150)),
        st.tuples(st.just("new epoch"), st.none()),
    ),
    min_size=60,
    max_size=120,
)


class Model:
    """A partition with the plain state that its high watermark must follow."""

    def __init__(self, root: Path, min_isr: int) -> None:
        self.min_isr = min_isr
        self.now_ms = 0
        self.ends = dict.fromkeys(REPLICAS, 0)
        self.isr, self.partition_epoch, self.leader_epoch = frozenset(REPLICAS), 0, 0
        self.is_decided = False
        self.published: deque[PartitionImage] = deque()
        """Images that the leader has not seen yet, the oldest first."""
        partitions = Partitions(lambda changed: None)
        topic = TopicImage("t", TOPIC_ID, (self.image,))
        self.partition: Partition = partitions.host(topic, LEADER, TopicMetrics(), 0).topic.hosted(
            0
        )
        self.partition.attach(new_log(root, min_insync_replicas=min_isr), 0)

    @property
    def image(self) -> PartitionImage:
        return PartitionImage(
            replicas=REPLICAS,
            isr=tuple(sorted(self.isr)),
            leader=LEADER,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
        )

    @property
    def high_watermark(self) -> int:
        return self.partition.online_log().high_watermark

    def step(self, name: str, value: Any) -> None:
        partition = self.partition
        in_sync = partition.in_sync
        assert in_sync is not None
        match name:
            case "append":
                partition.append(batch_of(*[b"v"] * value), NOW)
                self.ends[LEADER] += value
            case "fetch" | "fetch a part":
                gap = self.ends[LEADER] - self.ends[value]
                self.ends[value] += gap if name == "fetch" else gap // 2
                partition.acknowledge(value, self.ends[value], self.now_ms)
                self.find_joining()
            case "join" if in_sync.may_join(value, self.high_watermark):
                in_sync.propose(in_sync.committed | {value})
                self.is_decided = False
            case "leave" if in_sync.proposed is None:
                lagging = in_sync.lagging(self.ends[LEADER], self.now_ms, LAG_MAX_MS)
                if value in lagging:
                    in_sync.propose(in_sync.committed - {value})
                    self.is_decided = False
            case "decide" if in_sync.proposed is not None and not self.is_decided:
                if value:
                    self.is_decided = True
                    self.isr = in_sync.proposed
                    self.partition_epoch += 1
                    self.published.append(self.image)
                else:
                    in_sync.withdraw()
                    self.find_joining()
            case "answer" if in_sync.proposed is not None and self.is_decided:
                in_sync.accept(self.isr, self.partition_epoch)
                partition.advance()
            case "publish" if self.published:
                partition.follow(self.published.popleft(), self.now_ms)
            case "leave for certain":
                for part in (("time", 2 * LAG_MAX_MS), ("leave", value), ("decide", True)):
                    self.step(*part)
                self.step("answer", None)
            case "time":
                self.now_ms += value
                self.find_joining()
            case "new epoch":
                self.leader_epoch += 1
                self.partition_epoch += 1
                self.published.clear()
                partition.follow(self.image, self.now_ms)
                partition.enter_epoch()

    def find_joining(self) -> None:
        in_sync = self.partition.in_sync
        assert in_sync is not None
        in_sync.find_joining(self.ends[LEADER], self.now_ms, LAG_MAX_MS, set(REPLICAS))
        self.partition.advance()

    def expected(self, before: int) -> int:
        """The high watermark by the leader's view: the least end of its maximal ISR."""
        in_sync = self.partition.in_sync
        assert in_sync is not None
        if len(in_sync.committed) < min(self.min_isr, len(REPLICAS)):
            return before
        waited_for = {LEADER} | in_sync.maximal | in_sync.joining
        reported = {one: state.end_offset for one, state in in_sync.followers.items()}
        reported[LEADER] = self.ends[LEADER]
        return max(before, min(reported[one] for one in waited_for))


@pytest.fixture(scope="module")
def directories() -> Iterator[Iterator[Path]]:
    with fresh_directories() as made:
        yield made


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=200,
)
@given(steps=steps, min_isr=st.integers(1, 3))
def test_the_high_watermark_is_the_least_end_of_the_maximal_isr(
    directories: Iterator[Path], steps: list[tuple[str, Any]], min_isr: int
) -> None:
    model = Model(next(directories), min_isr)
    before = 0
    for name, value in steps:
        model.step(name, value)
        after = model.high_watermark
        assert after >= before, "it never goes back"
        assert after == model.expected(before)
        in_sync = model.partition.in_sync
        assert in_sync is not None
        if after > before:
            assert len(in_sync.committed) >= min(min_isr, len(REPLICAS))
        # The controller may elect any member of its ISR, so each one has what is committed.
        assert all(model.ends[member] >= after for member in model.isr)
        before = after
