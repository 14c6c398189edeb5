"""Commits in an epoch that their member has left (KIP-1251).

A member that lags behind its group may still commit what was its own all the while: a partition
that it got in the epoch it names, or before. So a commit on its way is not lost just because the
group moved on.
"""

from collections.abc import Callable, Iterable

from headrace.errors import StaleMemberEpoch
from headrace.protocol.uuids import Uuid

CheckPartition = Callable[[str, Uuid, int], None]
"""Raises unless a partition, by its topic's name and id, was the member's own already."""


class LateCommit(StaleMemberEpoch):
    """Whether it may be depends on what is committed: `check` has to be asked."""

    def __init__(self, epoch: int, member_epoch: int, check_partition: CheckPartition) -> None:
        super().__init__(f"Received member epoch {epoch} is older than {member_epoch}.")
        self._check_partition = check_partition

    def check(self, partitions: Iterable[tuple[str, Uuid, int]]) -> None:
        """Raise unless all of these may be committed all the same."""
        for topic, topic_id, partition in partitions:
            self._check_partition(topic, topic_id, partition)
