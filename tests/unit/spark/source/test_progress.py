"""Progress as a group's: positions that wait while a commit is under way."""

import threading
from collections.abc import Mapping

import pytest

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source import progress
from headrace.spark.source.offsets import Positions
from headrace.spark.source.progress import BackgroundCommits


class SlowCommits:
    """Records commits; the first one lasts until `may_end`."""

    def __init__(self, properties: Mapping[str, str], group: str) -> None:
        self.done: list[Positions] = []
        self.is_under_way = threading.Event()
        self.may_end = threading.Event()

    def commit(self, positions: Positions) -> None:
        self.is_under_way.set()
        assert self.may_end.wait(10)
        self.done.append(positions)

    def close(self) -> None:
        """Nothing is open."""


def test_pending_commits_of_two_topics_are_both_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query that joins two topics reports both at once, one after the other."""
    made: list[SlowCommits] = []

    def opened(properties: Mapping[str, str], group: str) -> SlowCommits:
        made.append(SlowCommits(properties, group))
        return made[-1]

    monkeypatch.setattr(progress, "GroupCommits", opened)
    orders, payments = TopicPartition("orders", 0), TopicPartition("payments", 0)
    commits = BackgroundCommits({}, "joined")
    commits.offer({orders: 1})
    assert made[0].is_under_way.wait(10)
    for positions in ({orders: 2}, {payments: 7}, {orders: 3}):
        commits.offer(positions)
    made[0].may_end.set()
    commits.close()
    assert made[0].done == [{orders: 1}, {orders: 3, payments: 7}]
