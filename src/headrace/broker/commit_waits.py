"""Waits until the replicas of a partition have what this node, its leader, has appended."""

import asyncio
from typing import TYPE_CHECKING

from headrace.errors import NotLeaderOrFollower, RequestTimedOut
from headrace.replication.delayed import Delayed

if TYPE_CHECKING:
    from headrace.replication.partition import Partition


class _CommitWait:
    """A waiting append: it ends with the commit, the leadership, or its time."""

    def __init__(self, partition: "Partition", end_offset: int) -> None:
        self._partition = partition
        self._end_offset = end_offset
        self._leader_epoch = partition.leader_epoch
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.peer = f"commit of {partition.topic.name}-{partition.index}"

    def attempt(self, *, is_last: bool) -> bool:
        partition = self._partition
        if self.done.done():
            return True
        if not partition.is_led or partition.leader_epoch != self._leader_epoch:
            # The next leader may lack the records, whatever the high watermark is.
            self.done.set_exception(partition.topic.not_led(partition.index))
        elif partition.is_committed(self._end_offset):
            self.done.set_result(None)
        elif is_last:
            self.done.set_exception(
                RequestTimedOut(f"{self.peer}: the in-sync replicas do not follow")
            )
        else:
            return False
        return True

    def close(self) -> None:
        """End a wait whose attempt has failed."""
        if not self.done.done():
            self.done.set_exception(NotLeaderOrFollower(f"{self.peer} cannot be determined"))


async def committed(partition: "Partition", end_offset: int, timeout_s: float) -> None:
    """Wait until the records before an offset are committed in the present leadership.

    Raises NOT_LEADER_OR_FOLLOWER when the leadership ends, and REQUEST_TIMED_OUT.
    """
    if partition.is_committed(end_offset):
        return
    wait = _CommitWait(partition, end_offset)
    delayed = Delayed(wait.attempt, wait)
    delayed.park(asyncio.get_running_loop(), [partition], timeout_s)
    try:
        await wait.done
    finally:
        delayed.abandon()
