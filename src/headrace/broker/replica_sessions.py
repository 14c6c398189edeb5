"""Fetch sessions of followers: a fetch costs by what has changed, not by its partitions.

A follower fetches thousands of partitions, most of them idle. So every partition of a session is a
`Reader` of its partition here: appends, the high watermark, the start of the log and changes of
the role put it into the session's set of changed partitions. A fetch looks only at this set. An
idle partition is not touched, whether its request waits, is answered or arrives.

A follower that has fetched up to the end, and does not name the partition again, still proves with
each fetch that it has everything. The session notes the time of its last fetch, and the partition
gets it when it leaves the idle state.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

if TYPE_CHECKING:
    from headrace.replication.delayed import Waiter
    from headrace.replication.in_sync_replicas import Follower
    from headrace.replication.partition import Changed, Partition

NOT_REPORTED = (1 << 63) - 1
"""High watermark of a follower that does not report its own (before Fetch v18)."""

CONSUMER = -1
_NOTHING_SENT = -1


def replica_of(request: FetchRequest) -> tuple[int, int]:
    """Return id and broker epoch of the follower that sent a fetch; -1 for a consumer.

    Ids below -1 are those of debuggers.
    """
    state = request.replica_state
    if state.replica_id != CONSUMER:
        return state.replica_id, state.replica_epoch
    return request.replica_id, -1


class ReplicaTarget:
    """A follower's place in one partition, and the figures that were last sent for it."""

    __slots__ = (
        "follower",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "offset",
        "partition",
        "reports_high_watermark",
        "sent_high_watermark",
        "sent_log_start",
        "session",
        "size_max",
        "topic_key",
    )

    def __init__(self, session: "ReplicaSession", topic_key: bytes, index: int) -> None:
        self.session = session
        self.topic_key = topic_key
        self.index = index
        self.offset = 0
        self.size_max = 0
        self.leader_epoch = -1
        self.last_fetched_epoch = -1
        self.log_start_offset = -1
        self.reports_high_watermark = False
        self.sent_high_watermark = _NOTHING_SENT
        self.sent_log_start = _NOTHING_SENT
        self.partition: Partition | None = None
        self.follower: Follower | None = None

    def bind(self, partition: "Partition", follower: "Follower") -> None:
        """Be noted of changes of a partition; the follower's progress is that of its leader."""
        self.follower = follower
        if self.partition is not partition:
            self.unbind()
            self.partition = partition
            partition.readers[self] = None

    def unbind(self) -> None:
        if self.partition is not None:
            self.partition.readers.pop(self, None)
            self.partition = None

    # --- reports of the partition ---------------------------------------------------------------

    def on_append(self) -> None:
        session = self.session
        if self not in session.changed:
            self._note(session)
        if session.waiters:
            session.wake(session)

    def on_commit(self) -> None:
        session = self.session
        if self not in session.changed:
            self._note(session)
        if session.waiters and self.reports_high_watermark:
            session.wake(session)

    on_change = on_append

    def _note(self, session: "ReplicaSession") -> None:
        session.changed[self] = None
        if self.follower is not None:
            self.follower.was_caught_up(session.fetched_ms)

    # --- answers to the follower ----------------------------------------------------------------

    def name(self, asked: FetchPartition) -> None:
        """Take over the follower's place from a request, with the figures that it has."""
        self.offset = asked.fetch_offset
        self.size_max = asked.partition_max_bytes
        self.leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = self.sent_log_start = asked.log_start_offset
        self.reports_high_watermark = asked.high_watermark != NOT_REPORTED
        # An answer that the follower dropped may have had a high watermark.
        self.sent_high_watermark = (
            asked.high_watermark if self.reports_high_watermark else _NOTHING_SENT
        )

    def lacks(self, high_watermark: int, log_start: int) -> bool:
        """Return whether the follower waits for a figure, so that it is answered without records.

        A figure that was sent once is not urgent any more: the follower may be unable to take it.
        """
        if self.reports_high_watermark and high_watermark > self.sent_high_watermark:
            return True
        return self.sent_log_start not in (_NOTHING_SENT, log_start)

    def must_be_sent(self, error_code: int, high_watermark: int, log_start: int, size: int) -> bool:
        """Return whether an incremental answer must contain this partition; update the figures."""
        is_changed = (
            size > 0
            or error_code != 0
            or high_watermark != self.sent_high_watermark
            or log_start != self.sent_log_start
        )
        # The end of an error must be sent as well, so forget the old figures.
        self.sent_high_watermark = _NOTHING_SENT if error_code else high_watermark
        self.sent_log_start = _NOTHING_SENT if error_code else log_start
        return is_changed


class ReplicaSession:
    """The partitions that one follower fetches; without an id it lasts for one request."""

    __slots__ = (
        "changed",
        "epoch",
        "fetched_ms",
        "id",
        "last_used",
        "replica_epoch",
        "replica_id",
        "targets",
        "uses_topic_ids",
        "waiters",
        "wake",
    )

    def __init__(
        self,
        request: FetchRequest,
        *,
        uses_topic_ids: bool,
        now: float,
        wake: "Changed",
    ) -> None:
        self.id = 0
        self.epoch = 1
        self.replica_id, self.replica_epoch = replica_of(request)
        self.uses_topic_ids = uses_topic_ids
        self.last_used = now
        self.fetched_ms = 0
        """The monotonic time of its last fetch."""
        self.wake = wake
        self.targets: dict[tuple[bytes, int], ReplicaTarget] = {}
        self.changed: dict[ReplicaTarget, None] = {}
        """The partitions that may have something new; others are at the end of their logs."""
        self.waiters: dict[Waiter, None] = {}
        self.update(request.topics, ())

    def update(self, topics: Iterable[FetchTopic], forgotten: Iterable[ForgottenTopic]) -> None:
        for gone in forgotten:
            key = gone.topic_id if self.uses_topic_ids else gone.topic.encode()
            for index in gone.partitions:
                target = self.targets.pop((key, index), None)
                if target is not None:
                    target.unbind()
                    self.changed.pop(target, None)
        for topic in topics:
            topic_key = topic.topic_id if self.uses_topic_ids else topic.topic.encode()
            for partition in topic.partitions:
                place = (topic_key, partition.partition)
                target = self.targets.get(place)
                if target is None:
                    target = self.targets[place] = ReplicaTarget(self, *place)
                target.name(partition)
                self.changed[target] = None

    def close(self) -> None:
        """Take leave of all partitions."""
        for target in self.targets.values():
            target.unbind()
        self.targets.clear()
        self.changed.clear()
