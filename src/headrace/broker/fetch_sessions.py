"""Incremental fetch sessions (KIP-227): what a consumer asked for once need not be sent again.

A session remembers a consumer's partitions, and what the last answers said of them, so that
requests name only changes and answers only news. The cache has a bound; who finds no room in it
gets session 0 and goes on with full requests.
"""

import random
from collections.abc import Iterable, Iterator

from headrace.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
)
from headrace.protocol.hot_fetch import TOPIC_IDS_FROM
from headrace.protocol.schemas.fetch import FetchRequest, FetchTopic, ForgottenTopic

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EVICTABLE_AFTER_S = 120.0
_EPOCH_MAX = (1 << 31) - 1

TargetKey = tuple[bytes, int]


class FetchTarget:
    """One partition that a consumer reads, and what it has been told of it."""

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

    def is_news(self, error_code: int, high_watermark: int, log_start: int, size: int) -> bool:
        """Whether an incremental answer must name this partition; remembers what it says then."""
        news = (
            size > 0
            or error_code != 0
            or high_watermark != self.sent_high_watermark
            or log_start != self.sent_log_start
        )
        # An error must be followed by a word that it is over, so forget the old figures.
        self.sent_high_watermark = -1 if error_code else high_watermark
        self.sent_log_start = log_start
        return news


class FetchSession:
    """The partitions of one consumer, in the order in which they are served next."""

    __slots__ = ("epoch", "id", "last_used", "targets", "uses_topic_ids")

    def __init__(self, session_id: int, *, uses_topic_ids: bool, now: float) -> None:
        self.id = session_id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.last_used = now
        self.targets: dict[TargetKey, FetchTarget] = {}

    def update(self, topics: Iterable[FetchTopic], forgotten: Iterable[ForgottenTopic]) -> None:
        for topic in forgotten:
            key = topic.topic_id if self.uses_topic_ids else topic.topic.encode()
            for index in topic.partitions:
                self.targets.pop((key, index), None)
        merge_targets(self.targets, topics, uses_topic_ids=self.uses_topic_ids)

    def serve_last(self, target: FetchTarget) -> None:
        """Who just got records queues up behind the others, so that none is starved."""
        key = (target.topic_key, target.index)
        if self.targets.pop(key, None) is not None:
            self.targets[key] = target


class FetchContext:
    """What one request reads, and how its answer is to be told."""

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

    def __init__(self, slots: int, rng: random.Random | None = None) -> None:
        self._slots = slots
        self._random = rng or random.Random()
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.targets) for session in self._sessions.values())

    def context(self, request: FetchRequest, version: int, now: float) -> FetchContext:
        """The partitions a request reads; opens, continues or ends its session."""
        uses_topic_ids = version >= TOPIC_IDS_FROM
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            targets: dict[TargetKey, FetchTarget] = {}
            merge_targets(targets, request.topics, uses_topic_ids=uses_topic_ids)
            session = None
            if request.session_epoch == INITIAL_EPOCH and targets:
                session = self._open(uses_topic_ids=uses_topic_ids, now=now)
            if session is not None:
                session.targets = targets
            return FetchContext(targets, session, is_new=True)
        return self._continue(request, uses_topic_ids=uses_topic_ids, now=now)

    def _continue(self, request: FetchRequest, *, uses_topic_ids: bool, now: float) -> FetchContext:
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            raise FetchSessionIdNotFound(f"fetch session {request.session_id} is not here any more")
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
        if not session.targets:
            del self._sessions[session.id]
            return FetchContext({}, None, is_new=True)
        return FetchContext(session.targets, session, is_new=False)

    def _open(self, *, uses_topic_ids: bool, now: float) -> FetchSession | None:
        if len(self._sessions) >= self._slots and not self._evict(now):
            return None
        session_id = self._random.randrange(1, 1 << 31)
        while session_id in self._sessions:
            session_id = self._random.randrange(1, 1 << 31)
        session = FetchSession(session_id, uses_topic_ids=uses_topic_ids, now=now)
        self._sessions[session_id] = session
        return session

    def _evict(self, now: float) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.last_used < EVICTABLE_AFTER_S:
            return False
        del self._sessions[oldest.id]
        return True


def merge_targets(
    targets: dict[TargetKey, FetchTarget], topics: Iterable[FetchTopic], *, uses_topic_ids: bool
) -> None:
    """Enter what a request names: new partitions, and new positions of known ones."""
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
