"""Following leaders: the fetch session with one leader, and the step that each answer asks for.

A follower sends one Fetch request after the other to a leader. Within a session (KIP-227) a
request names only the partitions whose position has changed, and an answer only those with news,
so partitions without traffic cost nothing.

A leader compares the epoch of the follower's last record with its own history and reports where
they diverge (KIP-595). Truncation follows these reports and never the high watermark, which a
leader may learn too late. An answer counts only if the partition is still at the position and in
the leader epoch that the request had.

Logs, connections and clocks belong to the shell, `broker/fetchers.py`.
"""

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from headrace.errors import (
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    OffsetMovedToTieredStorage,
    OffsetOutOfRange,
)
from headrace.protocol.schemas.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.replication.partition import Partition

LATEST = -1
EARLIEST = -2
UNDEFINED_EPOCH = -1

_REPLICA_STATE_FROM = 15
_HIGH_WATERMARK_FROM = 18
_FULL = 0
"""The session epoch of a request that opens a session and names every partition."""
_EPOCH_MAX = (1 << 31) - 1
_FIRST_DELAY_MS = 20

# The first metadata.version of each version, newest first; Kafka's brokers choose the same.
_FETCH_VERSIONS = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14), (0, 13))
_LIST_OFFSETS_VERSIONS = ((29, 11), (25, 10), (21, 9), (9, 8), (0, 7))

Key = tuple[Uuid, int]
"""Topic id and index of a partition."""


class Step(Enum):
    """The consequence of a leader's answer for one partition."""

    IGNORE = "the answer is for an earlier position or epoch"
    APPEND = "append the records, and take over high watermark and log start"
    TRUNCATE = "cut the log where it diverges"
    LOOK_UP = "ask for the leader's range of offsets, and move into it"
    BACK_OFF = "try again later"
    STOP = "wait for new metadata"


class Followed:
    """A partition that is fetched from its leader, and the position that it has reached."""

    __slots__ = (
        "due_ms",
        "failures",
        "fetch_offset",
        "high_watermark",
        "index",
        "lag",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "replica",
        "sent",
        "topic_id",
    )

    def __init__(self, replica: "Partition") -> None:
        self.replica = replica
        self.topic_id = replica.topic_id
        self.index = replica.index
        self.leader_epoch = replica.leader_epoch
        self.fetch_offset = -1
        self.last_fetched_epoch = UNDEFINED_EPOCH
        self.log_start_offset = 0
        self.high_watermark = 0
        self.sent: tuple[int, int, int, int] | None = None
        """The position in the newest request that named the partition; the leader has it."""
        self.lag = 0
        """Committed records of the leader that are not here, as of its last answer."""
        self.failures = 0
        self.due_ms = 0

    def __repr__(self) -> str:
        return f"Followed({self.replica.topic.name}-{self.index} at {self.fetch_offset})"

    @property
    def key(self) -> Key:
        return self.topic_id, self.index

    @property
    def position(self) -> tuple[int, int, int, int]:
        return (
            self.fetch_offset,
            self.last_fetched_epoch,
            self.log_start_offset,
            self.high_watermark,
        )

    @property
    def is_where_it_was_asked(self) -> bool:
        """Return whether an answer to the newest request still applies."""
        sent = self.sent
        return (
            sent is not None
            and sent[0] == self.fetch_offset
            and self.leader_epoch == self.replica.leader_epoch
        )

    def reach(
        self, end_offset: int, last_epoch: int, log_start_offset: int, high_watermark: int
    ) -> None:
        """Record the state of the log; the next fetch begins at its end."""
        self.fetch_offset = end_offset
        self.last_fetched_epoch = last_epoch
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a Fetch request that come from this node and its settings."""

    replica_id: int
    broker_epoch: int
    metadata_version: int
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    partition_max_bytes: int = 1 << 20
    backoff_ms: int = 1000

    @property
    def fetch_version(self) -> int:
        return _version(_FETCH_VERSIONS, self.metadata_version)

    @property
    def list_offsets_version(self) -> int:
        return _version(_LIST_OFFSETS_VERSIONS, self.metadata_version)


def _version(table: Iterable[tuple[int, int]], metadata_version: int) -> int:
    return next(version for level, version in table if metadata_version >= level)


class LeaderSession:
    """The partitions that are followed at one leader, and the fetch session with it."""

    def __init__(self) -> None:
        self.followed: dict[Key, Followed] = {}
        self._id = 0
        self._epoch = _FULL
        self._named: set[Key] = set()
        """The partitions that the leader has in its session."""
        self._changed: dict[Key, Followed] = {}
        self._forgotten: set[Key] = set()
        self._delayed: dict[Key, Followed] = {}
        self._names_high_watermark = False

    # --- partitions -----------------------------------------------------------------------------

    def follow(self, followed: Followed) -> None:
        """Begin with a partition, or again after a change of its leader epoch."""
        self.followed[followed.key] = followed
        self._delayed.pop(followed.key, None)
        self._changed[followed.key] = followed

    def stop(self, key: Key) -> None:
        """Follow a partition no longer."""
        if self.followed.pop(key, None) is not None:
            self._delayed.pop(key, None)
            self._leave_out(key)

    def moved(self, followed: Followed) -> None:
        """Name a partition in the next request if the leader must know its new position."""
        position, sent = followed.position, followed.sent
        if position == sent or followed.key in self._delayed:
            return
        if sent is None or self._names_high_watermark or position[:3] != sent[:3]:
            self._changed[followed.key] = followed

    def succeeded(self, followed: Followed) -> None:
        """Forget the failures of a partition."""
        followed.failures = 0

    def back_off(self, followed: Followed, now_ms: int, delay_max_ms: int) -> None:
        """Leave out a partition for a while, and twice as long after each further failure.

        The first delays are short: a leader often learns of its leadership a moment later than
        its followers.
        """
        delay_ms = min(_FIRST_DELAY_MS << min(followed.failures, 16), delay_max_ms)
        followed.failures += 1
        followed.due_ms = now_ms + delay_ms
        self._delayed[followed.key] = followed
        self._leave_out(followed.key)

    def hold_back(self, followed: Followed, due_ms: int) -> None:
        """Leave out a partition until a time, because its replication is throttled."""
        followed.due_ms = due_ms
        self._delayed[followed.key] = followed
        self._leave_out(followed.key)

    def _leave_out(self, key: Key) -> None:
        self._changed.pop(key, None)
        if key in self._named:
            self._forgotten.add(key)

    @property
    def due_ms(self) -> int | None:
        """The time at which the next partition ends its delay."""
        return min((one.due_ms for one in self._delayed.values()), default=None)

    # --- requests -------------------------------------------------------------------------------

    def request(self, limits: FetchLimits, now_ms: int) -> FetchRequest | None:
        """Return the next request; None while there is no partition to fetch."""
        for followed in [one for one in self._delayed.values() if one.due_ms <= now_ms]:
            del self._delayed[followed.key]
            self._changed[followed.key] = followed
        if len(self._delayed) == len(self.followed):
            return None
        version = limits.fetch_version
        self._names_high_watermark = version >= _HIGH_WATERMARK_FROM
        if self._epoch == _FULL:
            self._changed = {
                key: one for key, one in self.followed.items() if key not in self._delayed
            }
            self._named = set()
            self._forgotten = set()
        forgotten = self._forgotten - self._changed.keys()
        request = FetchRequest(
            max_wait_ms=self._wait_ms(limits.max_wait_ms, now_ms),
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=_topics(
                self._changed.values(),
                limits.partition_max_bytes,
                names_high_watermark=self._names_high_watermark,
            ),
            forgotten_topics_data=_forgotten(forgotten),
        )
        if version >= _REPLICA_STATE_FROM:
            request.replica_state = ReplicaState(limits.replica_id, limits.broker_epoch)
        else:
            request.replica_id = limits.replica_id
        for followed in self._changed.values():
            followed.sent = followed.position
        self._named -= forgotten
        self._named |= self._changed.keys()
        self._changed = {}
        self._forgotten = set()
        return request

    def _wait_ms(self, max_wait_ms: int, now_ms: int) -> int:
        """Wait at the leader only until a delayed partition is due."""
        due_ms = self.due_ms
        return max_wait_ms if due_ms is None else max(1, min(max_wait_ms, due_ms - now_ms))

    def answered(self, session_id: int, error_code: int) -> bool:
        """Take over the session's state; false if the leader rejected the whole request."""
        if error_code:
            self.lost()
            if error_code == FetchSessionIdNotFound.code:
                self._id = 0
            return False
        self._id = session_id
        # A leader without room for another session answers 0, and gets full requests.
        if session_id == 0:
            self._epoch = _FULL
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        return True

    def lost(self) -> None:
        """Open another session with the next request; the leader then ends the present one."""
        self._epoch = _FULL

    # --- answers --------------------------------------------------------------------------------

    def step_after(self, key: Key, answer: PartitionData) -> tuple[Followed | None, Step]:
        """Return the partition that an answer is for, and the step that it asks for."""
        followed = self.followed.get(key)
        if followed is None or key in self._delayed or not followed.is_where_it_was_asked:
            return followed, Step.IGNORE
        match answer.error_code:
            case 0 if answer.diverging_epoch.epoch != UNDEFINED_EPOCH:
                return followed, Step.TRUNCATE
            case 0:
                return followed, Step.APPEND
            case OffsetOutOfRange.code:
                return followed, Step.LOOK_UP
            case FencedLeaderEpoch.code | OffsetMovedToTieredStorage.code:
                return followed, Step.STOP
            case _:
                return followed, Step.BACK_OFF


def _topics(
    changed: Iterable[Followed], partition_max_bytes: int, *, names_high_watermark: bool
) -> list[FetchTopic]:
    topics: dict[Uuid, FetchTopic] = {}
    for one in changed:
        topic = topics.get(one.topic_id)
        if topic is None:
            topic = topics[one.topic_id] = FetchTopic("", one.topic_id, [])
        partition = FetchPartition(
            one.index,
            one.leader_epoch,
            one.fetch_offset,
            one.last_fetched_epoch,
            one.log_start_offset,
            partition_max_bytes,
        )
        if names_high_watermark:
            partition.high_watermark = one.high_watermark
        topic.partitions.append(partition)
    return list(topics.values())


def _forgotten(keys: Iterable[Key]) -> list[ForgottenTopic]:
    topics: dict[Uuid, ForgottenTopic] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, ForgottenTopic("", topic_id, [])).partitions.append(index)
    return list(topics.values())


# --- truncation -------------------------------------------------------------------------------


def divergence(diverging: tuple[int, int], local: tuple[int, int], end_offset: int) -> int:
    """Return the offset to which a log must be cut.

    `diverging` is the largest epoch that leader and follower may share, with its end at the
    leader. `local` is the largest epoch up to it in the follower's log, with its end there. If
    they differ, the next fetch compares the earlier one.
    """
    epoch, leader_end = diverging
    local_epoch, local_end = local
    if local_epoch == UNDEFINED_EPOCH:
        return min(leader_end, end_offset)
    if local_epoch != epoch:
        return min(local_end, end_offset)
    return min(leader_end, local_end, end_offset)


class Reset(msgspec.Struct, frozen=True):
    """The way into the leader's range of offsets."""

    offset: int
    restarts: bool = False
    """True if all records go, because they ended before the leader's first one."""


def reset_by_end(leader_end: int, end_offset: int) -> Reset | None:
    """Return the cut of a log that is longer than its leader's; None if the start decides."""
    return Reset(leader_end) if leader_end < end_offset else None


def reset_by_start(leader_start: int, end_offset: int) -> Reset | None:
    """Return the restart of a log that ends before its leader's begins; None to keep it."""
    return Reset(leader_start, restarts=True) if leader_start > end_offset else None


def list_offsets(
    wanted: Iterable[Followed], timestamp: int, limits: FetchLimits
) -> ListOffsetsRequest:
    """Return the request for one end of the leader's range for some partitions."""
    topics: dict[str, ListOffsetsTopic] = {}
    for one in wanted:
        name = one.replica.topic.name
        topic = topics.setdefault(name, ListOffsetsTopic(name, []))
        topic.partitions.append(ListOffsetsPartition(one.index, one.leader_epoch, timestamp))
    return ListOffsetsRequest(limits.replica_id, topics=list(topics.values()))
