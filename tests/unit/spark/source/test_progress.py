"""Progress as a group's: what waits to be committed while a commit is under way."""

import threading
from collections.abc import Mapping

import pytest

from headrace.spark.source import progress
from headrace.spark.source.offsets import Positions, TopicPartition
from headrace.spark.source.progress import BackgroundCommits


class SlowCommits:
    """Commits that are noted; the first one lasts until it is let go."""

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


def test_what_waits_of_one_topic_is_not_lost_to_that_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query that joins two topics tells of both at once, one after the other."""
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
