"""The partitions that this node serves: from a name or an id on the wire to the log behind it."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headrace.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotLeaderOrFollower,
    RecordListTooLarge,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from headrace.protocol.uuids import Uuid
from headrace.storage.appending import append_as_leader
from headrace.storage.producer_state import NOT_VERIFIED

if TYPE_CHECKING:
    from headrace.broker.delayed import Delayed
    from headrace.metadata.image import PartitionImage, TopicImage
    from headrace.runtime.metrics import TopicMetrics
    from headrace.storage.appending import AppendInfo
    from headrace.storage.log import Log
    from headrace.storage.validation import CheckedBatch

# Kafka expects these to happen, and tells no more of the log than that.
_TOLD_WITHOUT_START = (CorruptMessage, KafkaStorageError, MessageTooLarge, RecordListTooLarge)

NO_LEADER_EPOCH = -1  # A client that does not know the epoch sends this and is not checked.


class Partition:
    """A partition that has a replica here."""

    __slots__ = ("image", "index", "leader_epoch", "log", "make_log", "topic", "waiters")

    def __init__(self, topic: "HostedTopic", index: int, image: "PartitionImage") -> None:
        self.topic = topic
        self.index = index
        self.image = image
        self.leader_epoch = image.leader_epoch
        self.log: Log | None = None  # None while it is not made yet, or its directory offline.
        self.make_log: Callable[[Partition], None] | None = None
        self.waiters: dict[Delayed, None] = {}

    @property
    def topic_id(self) -> Uuid:
        return self.topic.id

    def online_log(self) -> "Log":
        """The log, made now if it is wanted earlier than its turn came.

        Raises the error that clients of a failed disk are told. A disk that was full may have
        room again, so a log that could not be made is tried again.
        """
        if self.make_log is not None:
            self.make_log(self)
        if self.log is None:
            raise KafkaStorageError(
                f"the log directory of {self.topic.name}-{self.index} is offline; "
                "see the broker's log for the disk error"
            )
        if self.log.failure is not None:
            self.log.refuse()
        return self.log

    def append(
        self,
        records: memoryview,
        now_ms: int,
        transaction_version: int = NOT_VERIFIED,
        checked: "CheckedBatch | None" = None,
    ) -> "AppendInfo":
        """Append a client's batch as the leader; with one replica it is committed at once."""
        log = self.log
        if log is None:
            log = self.online_log()
        try:
            info = append_as_leader(
                log,
                records,
                self.leader_epoch,
                now_ms,
                transaction_version=transaction_version,
                checked=checked,
            )
        except KafkaError as error:
            if not isinstance(error, _TOLD_WITHOUT_START):
                error.log_start_offset = log.log_start_offset
            raise
        log.advance_high_watermark(log.log_end_offset)
        return info

    def end_of_epoch(self, log: "Log", epoch: int) -> tuple[int, int]:
        """The largest known leader epoch up to one that is asked for, and where it ended.

        The epoch under way is known before its first record has put it into the log.
        """
        if epoch == self.leader_epoch:
            return epoch, log.log_end_offset
        return log.leader_epochs.end_offset_for(epoch, log.log_end_offset)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose view of the leadership is not ours."""
        if current_leader_epoch in (NO_LEADER_EPOCH, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch(
                f"{self.topic.name}-{self.index} is at leader epoch {self.leader_epoch}, "
                f"the client at {current_leader_epoch}; refresh its metadata"
            )
        raise UnknownLeaderEpoch(
            f"leader epoch {current_leader_epoch} of {self.topic.name}-{self.index} "
            "has not reached this node yet"
        )


class HostedTopic:
    """A topic with partitions here; those led or held elsewhere are None."""

    __slots__ = ("id", "metrics", "name", "partitions", "wire_name")

    def __init__(self, name: str, topic_id: Uuid, metrics: "TopicMetrics") -> None:
        self.name = name
        self.wire_name = name.encode()
        self.id = topic_id
        self.metrics = metrics
        self.partitions: list[Partition | None] = []

    def find(self, index: int) -> Partition:
        if not 0 <= index < len(self.partitions):
            raise UnknownTopicOrPartition(
                f"{self.name} has partitions 0 to {len(self.partitions) - 1}, not {index}"
            )
        partition = self.partitions[index]
        if partition is None:
            raise NotLeaderOrFollower(f"{self.name}-{index} is led by another node")
        return partition


class Partitions:
    """Every hosted partition, by the names that requests use."""

    def __init__(self) -> None:
        self.by_wire_name: dict[bytes, HostedTopic] = {}
        self.by_id: dict[Uuid, HostedTopic] = {}

    def __iter__(self) -> Iterator[Partition]:
        for topic in self.by_wire_name.values():
            for partition in topic.partitions:
                if partition is not None:
                    yield partition

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find(self, topic: str, index: int) -> Partition:
        hosted = self.by_wire_name.get(topic.encode())
        if hosted is None:
            raise UnknownTopicOrPartition(f"there is no topic {topic}")
        return hosted.find(index)

    def host(self, topic: "TopicImage", node_id: int, metrics: "TopicMetrics") -> HostedTopic:
        """Take up a topic, or the changes to one; returns it for its logs to be attached."""
        hosted = self.by_id.get(topic.id)
        if hosted is None:
            hosted = HostedTopic(topic.name, topic.id, metrics)
            self.by_id[topic.id] = self.by_wire_name[hosted.wire_name] = hosted
        known = hosted.partitions
        for index, image in enumerate(topic.partitions):
            current = known[index] if index < len(known) else None
            if node_id not in image.replicas:
                current = None
            elif current is None:
                current = Partition(hosted, index, image)
            else:
                current.image = image
                current.leader_epoch = image.leader_epoch
            known[index : index + 1] = [current]
        return hosted

    def drop(self, topic_id: Uuid) -> HostedTopic | None:
        """Forget a deleted topic; a new one of the same name has another id."""
        hosted = self.by_id.pop(topic_id, None)
        if hosted is not None and self.by_wire_name.get(hosted.wire_name) is hosted:
            del self.by_wire_name[hosted.wire_name]
        return hosted
