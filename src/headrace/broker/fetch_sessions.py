"""Incremental fetch sessions (KIP-227): requests and answers contain only changed partitions.

A session remembers a consumer's partitions and the figures that were last sent for them. The cache
has a bound; a consumer that finds no room gets session 0 and continues with full requests.
Followers have sessions of another kind (`replica_sessions.py`), and always find room.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from headrace.broker.replica_sessions import ReplicaSession
from headrace.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
)
from headrace.protocol.hot_fetch import TOPIC_IDS_FROM
from headrace.protocol.schemas.fetch import FetchRequest, FetchTopic, ForgottenTopic
from headrace.runtime import chance

if TYPE_CHECKING:
    from random import Random

    from headrace.replication.partition import Changed

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EVICTABLE_AFTER_S = 120.0
_EPOCH_MAX = (1 << 31) - 1

TargetKey = tuple[bytes, int]

S = TypeVar("S", "FetchSession", ReplicaSession)


class FetchTarget:
    """One partition that a consumer reads, and the figures that were last sent for it."""

    __slots__ = (
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "offset",
        "sent_high_watermark",
        "sent_log_start",
        "size_max",
        "topic_key",
    )

    def __init__(self, topic_key: bytes, index: int) -> None:
        self.topic_key = topic_key
        self.index = index
        self.offset = 0
        self.size_max = 0
        self.leader_epoch = -1
        self.last_fetched_epoch = -1
        self.sent_high_watermark = -1
        self.sent_log_start = -1

    def must_be_sent(self, error_code: int, high_watermark: int, log_start: int, size: int) -> bool:
        """Return whether an incremental answer must contain this partition; update the figures."""
        is_changed = (
            size > 0
            or error_code != 0
            or high_watermark != self.sent_high_watermark
            or log_start != self.sent_log_start
        )
        # The end of an error must be sent as well, so forget the old figures.
        self.sent_high_watermark = -1 if error_code else high_watermark
        self.sent_log_start = log_start
        return is_changed


class FetchSession:
    """The partitions of one consumer, in the order in which they are served next."""

    __slots__ = ("epoch", "id", "last_used", "permitted", "targets", "uses_topic_ids")

    def __init__(self, session_id: int, *, uses_topic_ids: bool, now: float) -> None:
        self.id = session_id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.last_used = now
        self.targets: dict[TargetKey, FetchTarget] = {}
        self.permitted: object = None
        """The client that may read all partitions, with the version of the rules."""

    def update(self, topics: Iterable[FetchTopic], forgotten: Iterable[ForgottenTopic]) -> None:
        for topic in forgotten:
            key = topic.topic_id if self.uses_topic_ids else topic.topic.encode()
            for index in topic.partitions:
                self.targets.pop((key, index), None)
        count = len(self.targets)
        merge_targets(self.targets, topics, uses_topic_ids=self.uses_topic_ids)
        if len(self.targets) != count:
            self.permitted = None

    def serve_last(self, target: FetchTarget) -> None:
        """Move a partition that just got records to the end, so that no partition starves."""
        key = (target.topic_key, target.index)
        if self.targets.pop(key, None) is not None:
            self.targets[key] = target


class FetchContext:
    """The partitions that one request reads, and whether its answer is incremental."""

    __slots__ = ("is_incremental", "session", "targets")

    def __init__(
        self, targets: dict[TargetKey, FetchTarget], session: FetchSession | None, *, is_new: bool
    ) -> None:
        self.targets = targets
        self.session = session
        self.is_incremental = session is not None and not is_new

    def __iter__(self) -> Iterator[FetchTarget]:
        return iter(self.targets.values())

    @property
    def session_id(self) -> int:
        return 0 if self.session is None else self.session.id


class FetchSessions:
    """All sessions of this node, the least recently used first."""

    def __init__(self, slots: int, rng: "Random | None" = None) -> None:
        self._slots = slots
        self._random = rng or chance.new_random()
        self._sessions: dict[int, FetchSession | ReplicaSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.targets) for session in self._sessions.values())

    @property
    def waiting_replicas(self) -> int:
        """The number of fetches of followers that wait for records."""
        return sum(
            len(session.waiters)
            for session in self._sessions.values()
            if isinstance(session, ReplicaSession)
        )

    def context(self, request: FetchRequest, version: int, now: float) -> FetchContext:
        """Return the partitions of a request; opens, continues or ends its session."""
        uses_topic_ids = version >= TOPIC_IDS_FROM
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self.close(request.session_id)
            targets: dict[TargetKey, FetchTarget] = {}
            merge_targets(targets, request.topics, uses_topic_ids=uses_topic_ids)
            session = None
            if request.session_epoch == INITIAL_EPOCH and targets:
                session = self._open(uses_topic_ids=uses_topic_ids, now=now)
            if session is not None:
                session.targets = targets
            return FetchContext(targets, session, is_new=True)
        return self._continue(request, uses_topic_ids=uses_topic_ids, now=now)

    def replica_session(
        self, request: FetchRequest, version: int, now: float, wake: "Changed"
    ) -> tuple[ReplicaSession, bool]:
        """Return the session of a follower's request, and whether its answer is incremental.

        A request without a session gets one that lasts until its answer; the caller closes it.
        """
        uses_topic_ids = version >= TOPIC_IDS_FROM
        if request.session_epoch not in (FINAL_EPOCH, INITIAL_EPOCH):
            known = self._known(request, ReplicaSession, uses_topic_ids=uses_topic_ids, now=now)
            if not known.targets:
                del self._sessions[known.id]
                known.id = 0
            return known, known.id != 0
        self.close(request.session_id)
        session = ReplicaSession(request, uses_topic_ids=uses_topic_ids, now=now, wake=wake)
        self._close_older_than(session)
        if request.session_epoch == INITIAL_EPOCH and session.targets:
            if len(self._sessions) >= self._slots:
                self._evict_consumer()
            session.id = self._free_id()
            self._sessions[session.id] = session
        return session, False

    def _continue(self, request: FetchRequest, *, uses_topic_ids: bool, now: float) -> FetchContext:
        session = self._known(request, FetchSession, uses_topic_ids=uses_topic_ids, now=now)
        if not session.targets:
            del self._sessions[session.id]
            return FetchContext({}, None, is_new=True)
        return FetchContext(session.targets, session, is_new=False)

    def _known(
        self, request: FetchRequest, kind: type[S], *, uses_topic_ids: bool, now: float
    ) -> S:
        """Return the session that a request continues, updated by it."""
        session = self._sessions.get(request.session_id)
        if not isinstance(session, kind):
            raise FetchSessionIdNotFound(f"fetch session {request.session_id} is not here any more")
        del self._sessions[session.id]
        self._sessions[session.id] = session
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicIdError("a session names its topics either by id or by name")
        if request.session_epoch != session.epoch:
            raise InvalidFetchSessionEpoch(
                f"fetch session {session.id} is at epoch {session.epoch}, "
                f"not {request.session_epoch}"
            )
        session.last_used = now
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        if request.topics or request.forgotten_topics_data:
            session.update(request.topics, request.forgotten_topics_data)
        return session

    def _open(self, *, uses_topic_ids: bool, now: float) -> FetchSession | None:
        if len(self._sessions) >= self._slots and not self._evict(now):
            return None
        session_id = self._free_id()
        session = FetchSession(session_id, uses_topic_ids=uses_topic_ids, now=now)
        self._sessions[session_id] = session
        return session

    def _free_id(self) -> int:
        session_id = self._random.randrange(1, 1 << 31)
        while session_id in self._sessions:
            session_id = self._random.randrange(1, 1 << 31)
        return session_id

    def _evict(self, now: float) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.last_used < EVICTABLE_AFTER_S:
            return False
        self.close(oldest.id)
        return True

    def _evict_consumer(self) -> None:
        """Make room for a follower; without consumers there is room for one more follower."""
        for session in self._sessions.values():
            if isinstance(session, FetchSession):
                del self._sessions[session.id]
                return

    def _close_older_than(self, session: ReplicaSession) -> None:
        """Close the sessions of an earlier life of a follower, which would grow unread."""
        for other in list(self._sessions.values()):
            if (
                isinstance(other, ReplicaSession)
                and other.replica_id == session.replica_id
                and other.replica_epoch < session.replica_epoch
            ):
                self.close(other.id)

    def close(self, session_id: int) -> None:
        """End a session, if it is here."""
        session = self._sessions.pop(session_id, None)
        if isinstance(session, ReplicaSession):
            session.close()


def merge_targets(
    targets: dict[TargetKey, FetchTarget], topics: Iterable[FetchTopic], *, uses_topic_ids: bool
) -> None:
    """Add the new partitions of a request, and update the positions of known ones."""
    for topic in topics:
        topic_key = topic.topic_id if uses_topic_ids else topic.topic.encode()
        for partition in topic.partitions:
            key = (topic_key, partition.partition)
            target = targets.get(key)
            if target is None:
                target = targets[key] = FetchTarget(topic_key, partition.partition)
            target.offset = partition.fetch_offset
            target.size_max = partition.partition_max_bytes
            target.leader_epoch = partition.current_leader_epoch
            target.last_fetched_epoch = partition.last_fetched_epoch
