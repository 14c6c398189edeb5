"""A partition with a replica on this node: its role, its log, and the one place that commits.

Every append of a leader goes through a method of this class, which then moves the high watermark
and wakes the requests that wait on the partition. The log of a sole replica is committed up to its
end. With several replicas the end of the slowest in-sync replica decides (`in_sync_replicas.py`).

A partition is *hosted* if it has a replica here and *led* if this node leads it. Producers,
consumers and coordinators need one that is led.
"""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

from headrace.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RecordListTooLarge,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from headrace.protocol.uuids import Uuid
from headrace.replication.in_sync_replicas import UNKNOWN_EPOCH, UNKNOWN_OFFSET, InSyncReplicas
from headrace.replication.uncommitted import Done, Uncommitted
from headrace.storage import usual_append
from headrace.storage.appending import append_as_is, append_as_leader, append_built
from headrace.storage.producer_state import NOT_VERIFIED, Origin
from headrace.storage.validation import OutOfPlace

if TYPE_CHECKING:
    from headrace.metadata.image import PartitionImage, TopicImage
    from headrace.replication.delayed import Awaited, Waiter
    from headrace.replication.metrics import TopicMetrics
    from headrace.storage.appending import AppendInfo
    from headrace.storage.log import Log
    from headrace.storage.segment import PlainBatch
    from headrace.storage.usual_append import Run
    from headrace.storage.validation import CheckedBatch

B = TypeVar("B", bound="PlainBatch")

NO_LEADER_EPOCH = -1
"""Leader epoch of a client that has none; it is not checked."""

# Kafka answers these without the start of the log.
_WITHOUT_LOG_START = (CorruptMessage, KafkaStorageError, MessageTooLarge, RecordListTooLarge)

_append_usual = usual_append.append_usual
_append_run = usual_append.append_run


Changed = Callable[["Awaited"], None]
"""Called when a partition has changed, for the requests that wait on it."""


class Reader(Protocol):
    """A follower's place in a partition, which notes that there is something new to fetch."""

    def on_append(self) -> None:
        """Note that the leader has more records."""

    def on_commit(self) -> None:
        """Note that the high watermark has moved."""

    def on_change(self) -> None:
        """Note that the role, the replicas or the start of the log have changed."""


class Transition(Enum):
    """The effect of a new image on this node's replica of a partition."""

    BECOMES_LEADER = "becomes leader"
    LEADS_NEW_EPOCH = "leads a new epoch"
    BECOMES_FOLLOWER = "becomes follower"
    STAYS = "stays as it was"


class Partition:
    """A partition that has a replica here."""

    __slots__ = (
        "image",
        "in_sync",
        "index",
        "is_led",
        "leader_epoch",
        "log",
        "make_log",
        "noted_start",
        "on_committed",
        "readers",
        "topic",
        "uncommitted",
        "waiters",
    )

    def __init__(self, topic: "HostedTopic", index: int, image: "PartitionImage") -> None:
        self.topic = topic
        self.index = index
        self.image = image
        self.is_led = False
        self.leader_epoch = image.leader_epoch
        self.log: Log | None = None  # None while it is not made yet, or its directory offline.
        self.make_log: Callable[[Partition], None] | None = None
        self.in_sync: InSyncReplicas | None = None  # None for a sole replica, and for a follower.
        self.on_committed: Callable[[], None] | None = None
        """Called when followers commit more records; a coordinator then answers its requests."""
        self.waiters: dict[Waiter, None] = {}
        self.readers: dict[Reader, None] = {}
        self.noted_start = 0  # The start of the log when the readers last noted one.
        self.uncommitted: Uncommitted | None = None  # None until a producer waits for replicas.

    @property
    def topic_id(self) -> Uuid:
        return self.topic.id

    @property
    def name(self) -> str:
        return f"{self.topic.name}-{self.index}"

    # --- role ---------------------------------------------------------------------------------

    def follow(self, image: "PartitionImage", now_ms: int) -> Transition:
        """Take over a new image; `now_ms` is monotonic. A new leader must also `enter_epoch`."""
        old_replicas = self.image.replicas
        transition = self._follow(image, now_ms)
        if transition is not Transition.STAYS or image.replicas != old_replicas:
            self._changed()
        return transition

    def _follow(self, image: "PartitionImage", now_ms: int) -> Transition:
        was_led, old = self.is_led, self.image
        self.image = image
        self.leader_epoch = image.leader_epoch
        self.is_led = image.leader == self.topic.node_id
        is_same_epoch = old is not image and old.leader_epoch == image.leader_epoch
        if not self.is_led:
            self.in_sync = None
            if is_same_epoch and not was_led:
                return Transition.STAYS
            self.notify()  # Consumers that wait here must find the new leader.
            return Transition.BECOMES_FOLLOWER
        if not was_led:
            self._lead(now_ms)
            return Transition.BECOMES_LEADER
        if not is_same_epoch or (self.in_sync is None) != (len(image.replicas) == 1):
            self._lead(now_ms)
            self.notify()
            return Transition.LEADS_NEW_EPOCH
        if self.in_sync is not None:
            self.in_sync.assign(image.replicas)
            if self.in_sync.commit(image.isr, image.partition_epoch):
                self._advance(self.in_sync)
        return Transition.STAYS

    def attach(self, log: "Log", now_ms: int) -> None:
        """Serve from a log, which was opened or made for this partition."""
        self.log = log
        self.make_log = None
        if self.is_led:
            self._lead(now_ms)
            self.enter_epoch()
        self._changed()

    def _lead(self, now_ms: int) -> None:
        """Begin to lead in the epoch of the image.

        Every record that a sole replica still has is committed; the checkpoint of its high
        watermark may be older than that.
        """
        log = self.log
        if log is None:
            return  # `attach` calls this again.
        if len(self.image.replicas) == 1:
            self.in_sync = None
            self._commit(log.log_end_offset)
            return
        self.in_sync = InSyncReplicas(
            self.topic.node_id,
            self.image.replicas,
            self.image.isr,
            partition_epoch=self.image.partition_epoch,
            epoch_start=log.log_end_offset,
            now_ms=now_ms,
        )
        self._advance(self.in_sync)

    def enter_epoch(self) -> None:
        """Enter the epoch in the log's list, unless an append has done so.

        A follower's log that ends in an earlier epoch is then compared with the right offset even
        if this leader never appends. A sole replica has no follower, and leaves it to the append.
        """
        log = self.log
        if self.in_sync is None or log is None:
            return
        if log.leader_epochs.latest_epoch != self.leader_epoch:
            log.begin_epoch(self.leader_epoch)

    def leave(self) -> None:
        """Stop serving: this node has no replica any more, and requests that wait fail."""
        self.is_led = False
        self.in_sync = None
        self.make_log = None
        self.notify()
        self._changed()

    def check_led(self) -> None:
        """Raise unless this node leads; the error names the leader for clients (KIP-951)."""
        if self.is_led:
            return
        if self.log is None and self.make_log is None:
            raise self._offline()
        if self.log is not None and self.log.failure is not None:
            self.log.refuse()
        raise self.topic.not_led(self.index)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raise if a client's view of the leadership is older or newer than ours."""
        if current_leader_epoch in (NO_LEADER_EPOCH, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            error = FencedLeaderEpoch(
                f"{self.name} is at leader epoch {self.leader_epoch}, "
                f"the client at {current_leader_epoch}; refresh its metadata"
            )
            error.current_leader = self.image.leader, self.leader_epoch
            raise error
        raise UnknownLeaderEpoch(
            f"leader epoch {current_leader_epoch} of {self.name} has not reached this node yet"
        )

    # --- log ----------------------------------------------------------------------------------

    def online_log(self) -> "Log":
        """Return the log; one that is not made yet is made now.

        Raises KAFKA_STORAGE_ERROR if the disk has failed. A disk that was full may have room
        again, so a log that could not be made is tried again.
        """
        if self.make_log is not None:
            self.make_log(self)
        if self.log is None:
            raise self._offline()
        if self.log.failure is not None:
            self.log.refuse()
        return self.log

    def end_of_epoch(self, log: "Log", epoch: int) -> tuple[int, int]:
        """The largest known leader epoch up to one that is asked for, and where it ended.

        The epoch under way is known before its first record has put it into the log.
        """
        if epoch == self.leader_epoch:
            return epoch, log.log_end_offset
        return log.leader_epochs.end_offset_for(epoch, log.log_end_offset)

    def is_committed(self, end_offset: int) -> bool:
        """Return whether every record before an offset is committed."""
        return self.log is not None and self.log.high_watermark >= end_offset

    @property
    def is_end_known(self) -> bool:
        """False while a new leader cannot know which of its records are committed."""
        in_sync, log = self.in_sync, self.log
        return in_sync is None or log is None or log.high_watermark >= in_sync.epoch_start

    # --- appends of a leader --------------------------------------------------------------------

    def append(
        self,
        records: memoryview,
        now_ms: int,
        transaction_version: int = NOT_VERIFIED,
        checked: "CheckedBatch | None" = None,
    ) -> "AppendInfo":
        """Append a client's batch."""
        self.check_led()
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
            if not isinstance(error, _WITHOUT_LOG_START):
                error.log_start_offset = log.log_start_offset
            raise
        self._appended(log)
        return info

    def append_usual(self, records: memoryview, now_ms: int) -> int:
        """Append one plain batch; returns its base offset, or `NOT_USUAL` with nothing done."""
        log = self.log
        assert log is not None, "shapes are forgotten before a log goes"
        base_offset = _append_usual(log, records, self.leader_epoch, now_ms)
        if base_offset >= 0:
            self._appended(log)
        return base_offset

    def append_run(self, run: "Run[B]") -> bool:
        """Append plain batches with one write; false with nothing done if the log refuses them."""
        log = self.log
        if log is None or not _append_run(log, run, self.leader_epoch):
            return False
        self._appended(log)
        return True

    def append_built(
        self, batch: bytearray, count: int, now_ms: int, *, has_producer: bool = False
    ) -> int:
        """Append a coordinator's batch of `count` records; returns its base offset."""
        self.check_led()
        log = self.log or self.online_log()
        self.check_min_isr()
        offset = append_built(
            log, batch, count, self.leader_epoch, now_ms, has_producer=has_producer
        )
        self._appended(log)
        return offset

    def append_marker(self, marker: bytearray, transaction_version: int, now_ms: int) -> None:
        """Append the marker that ends a transaction."""
        self.check_led()
        log = self.online_log()
        self.check_min_isr()
        append_as_leader(
            log,
            memoryview(marker),
            self.leader_epoch,
            now_ms,
            Origin.COORDINATOR,
            transaction_version,
        )
        self._appended(log)

    # --- appends of a follower ------------------------------------------------------------------

    def append_fetched(self, records: memoryview, now_ms: int) -> int:
        """Append what the leader answered, and return the size of the batches that were taken."""
        log = self.online_log()
        try:
            return append_as_is(log, records, now_ms, self.leader_epoch)
        except OutOfPlace as error:
            end_offset = log.log_end_offset
            is_empty = log.log_start_offset == end_offset
            if not is_empty or not error.base_offset < end_offset <= error.last_offset:
                raise
            # Records were deleted up to the middle of this batch, where the leader's log begins.
            log.truncate_fully_and_start_at(error.base_offset)
            return append_as_is(log, records, now_ms, self.leader_epoch)

    def follow_offsets(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over what the leader has committed and deleted, as far as it is here."""
        log = self.online_log()
        self._commit(min(high_watermark, log.log_end_offset))
        if log.log_start_offset < log_start_offset <= log.high_watermark:
            log.delete_records_before(log_start_offset)

    # --- commit ---------------------------------------------------------------------------------

    def check_min_isr(self) -> None:
        """Raise if acks=all cannot be kept; such an append would wait for nothing."""
        if not self.has_min_isr:
            raise NotEnoughReplicas(
                f"{self.name} has fewer in-sync replicas than "
                "min.insync.replicas; acks=all must wait until a follower is back"
            )

    @property
    def has_min_isr(self) -> bool:
        """Return whether acks=all can be kept at the moment."""
        in_sync, log = self.in_sync, self.log
        if in_sync is None or log is None:
            return True
        return len(in_sync.committed) >= in_sync.effective_min(log.config.min_insync_replicas)

    @property
    def is_at_min_isr(self) -> bool:
        """Return whether the loss of one more in-sync replica stops acks=all."""
        log = self.log
        if log is None:
            return False
        if self.in_sync is None:
            return True
        wanted = self.in_sync.effective_min(log.config.min_insync_replicas)
        return len(self.in_sync.committed) == wanted

    @property
    def is_under_replicated(self) -> bool:
        isr = self.image.isr if self.in_sync is None else self.in_sync.committed
        return len(isr) < len(self.image.replicas)

    @property
    def is_maximal_isr_under_min(self) -> bool:
        in_sync, log = self.in_sync, self.log
        if in_sync is None or log is None:
            return False
        return len(in_sync.maximal) < in_sync.effective_min(log.config.min_insync_replicas)

    def when_committed(self, end_offset: int, timeout_ms: int, done: Done) -> None:
        """Call `done` once the records before an offset are committed, or with an error."""
        if self.uncommitted is None:
            self.uncommitted = Uncommitted(self, self.topic.changed)
        self.uncommitted.add(end_offset, timeout_ms, done)

    def commit_failure(self) -> KafkaError | None:
        """Return the error for producers whose records this node cannot commit any more."""
        try:
            self.check_led()
            if self.log is None:
                raise self._offline()
            if self.log.failure is not None:
                self.log.refuse()
        except KafkaError as error:
            return error
        return None

    def acknowledge(
        self,
        follower: int,
        offset: int,
        now_ms: int,
        *,
        start_offset: int = UNKNOWN_OFFSET,
        broker_epoch: int = UNKNOWN_EPOCH,
    ) -> None:
        """Record that a follower has every record before an offset; `now_ms` is monotonic."""
        in_sync, log = self.in_sync, self.log
        assert in_sync is not None, "only a leader with followers gets acknowledgements"
        assert log is not None
        progress = in_sync.followers[follower]
        is_start_moved = start_offset != progress.start_offset
        progress.start_offset = start_offset
        progress.broker_epoch = broker_epoch
        in_sync.acknowledge(follower, offset, log.log_end_offset, now_ms)
        self._advance(in_sync)
        if is_start_moved:
            self.notify()  # A deletion of records may wait for it.

    def advance(self) -> None:
        """Commit what a change of the in-sync replicas, or of the min ISR, allows."""
        if self.in_sync is not None and self.log is not None:
            self._advance(self.in_sync)

    def delete_records_before(self, offset: int) -> int:
        """Move the start of the log, for the followers as well; returns the new start."""
        start = self.online_log().delete_records_before(offset)
        self.note_start()
        return start

    def note_start(self) -> None:
        """Let the followers note the start of the log if it has moved; retention moves it too."""
        log = self.log
        if log is not None and log.log_start_offset != self.noted_start:
            self.noted_start = log.log_start_offset
            self._changed()

    def notify(self) -> None:
        """Wake the requests that wait for a change of this partition."""
        if self.waiters:
            self.topic.changed(self)
        if self.uncommitted:
            self.topic.changed(self.uncommitted)

    def _changed(self) -> None:
        for reader in tuple(self.readers):
            reader.on_change()

    def _appended(self, log: "Log") -> None:
        """Commit the appended records as far as they are replicated, and wake waiting requests."""
        if self.in_sync is None:
            log.advance_high_watermark(log.log_end_offset)
            if self.waiters:
                self.topic.changed(self)
            return
        for reader in self.readers:
            reader.on_append()
        self._advance(self.in_sync)

    def _advance(self, in_sync: InSyncReplicas) -> None:
        log = self.log
        assert log is not None, "a leader with followers has its log"
        self._commit(in_sync.high_watermark(log.log_end_offset, log.config.min_insync_replicas))

    def _commit(self, offset: int) -> None:
        """Move the high watermark; it never goes back."""
        log = self.log
        assert log is not None
        if offset <= log.high_watermark:
            return
        log.advance_high_watermark(offset)
        if self.on_committed is not None:
            self.on_committed()
        self.notify()
        for reader in self.readers:
            reader.on_commit()

    def _offline(self) -> KafkaStorageError:
        return KafkaStorageError(
            f"the log directory of {self.name} is offline; see the broker's log for the disk error"
        )


class HostedTopic:
    """A topic with replicas on this node; partitions without a replica here are None."""

    __slots__ = ("changed", "id", "image", "metrics", "name", "node_id", "partitions", "wire_name")

    def __init__(
        self, image: "TopicImage", node_id: int, metrics: "TopicMetrics", changed: Changed
    ) -> None:
        self.image = image
        self.name = image.name
        self.wire_name = image.name.encode()
        self.id = image.id
        self.node_id = node_id
        self.metrics = metrics
        self.changed = changed
        self.partitions: list[Partition | None] = []

    def led(self, index: int) -> Partition:
        """Return a partition that this node leads, to serve producers and consumers."""
        partition = self.hosted(index)
        if not partition.is_led:
            partition.check_led()
        return partition

    def hosted(self, index: int) -> Partition:
        """Return a partition with a replica here, led or not."""
        if not 0 <= index < len(self.partitions):
            raise UnknownTopicOrPartition(
                f"{self.name} has partitions 0 to {len(self.partitions) - 1}, not {index}"
            )
        partition = self.partitions[index]
        if partition is None:
            raise self.not_led(index)
        return partition

    def not_led(self, index: int) -> NotLeaderOrFollower:
        """Return the error for a partition that another node leads, with its leader (KIP-951)."""
        image = self.image.partitions[index]
        error = NotLeaderOrFollower(f"{self.name}-{index} is led by another node")
        error.current_leader = image.leader, image.leader_epoch
        return error
