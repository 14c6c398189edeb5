"""A share partition: a partition that this node leads, as one share group reads it."""

from typing import TYPE_CHECKING

from headrace.shares.state import SharePartitionKey

if TYPE_CHECKING:
    from headrace.errors import KafkaError
    from headrace.replication.delayed import Waiter
    from headrace.replication.partition import Partition
    from headrace.shares.partition import SharePartition


class LedSharePartition:
    """A partition that this node leads, as one group sees it."""

    __slots__ = (
        "core",
        "expires_at_ms",
        "failure",
        "is_live",
        "key",
        "leader_epoch",
        "partition",
        "waiters",
    )

    def __init__(self, key: SharePartitionKey, partition: "Partition") -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.core: SharePartition | None = None  # None while it is being loaded.
        self.failure: KafkaError | None = None
        self.is_live = True
        self.expires_at_ms = 0  # The time of its next lock check, or 0 without locks.
        self.waiters: dict[Waiter, None] = {}

    @property
    def is_current(self) -> bool:
        """Return whether this node still leads the partition in the epoch of the load."""
        return self.partition.is_led and self.partition.leader_epoch == self.leader_epoch

    @property
    def name(self) -> str:
        return f"{self.partition.topic.name}-{self.partition.index} of {self.key.group_id}"

    @property
    def log_fields(self) -> dict[str, object]:
        return {
            "group": self.key.group_id,
            "topic": self.partition.topic.name,
            "partition": self.partition.index,
        }
