"""A worker of a share group over our own wire client, which takes an exact number of records.

librdkafka's share consumer takes whole batches, and surplus records count as delivered when they
are released. A command that takes one task of a thousand must not use up deliveries of the others,
so this worker requests an exact number (ShareFetch v2). A broker with v1 returns whole batches.
"""

import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Self

import msgspec

from headrace.client.admin import Admin
from headrace.client.records import Headers
from headrace.errors import (
    FencedMemberEpoch,
    HeadraceError,
    InvalidShareSessionEpoch,
    KafkaError,
    ShareSessionNotFound,
    UnknownMemberId,
    error_for,
)
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.protocol.batches import Record, records_of
from headrace.protocol.batches import headers as batch_headers
from headrace.protocol.schemas.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from headrace.protocol.schemas.share_fetch import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from headrace.protocol.uuids import Uuid

_CREATE_TIME = 1
_LEAVING = -1
_RECORD_LIMIT = 1
_WAIT_MS = 500
_BYTES_MAX = 16 << 20
_RENEWALS_FROM = 2
_RENEWALS_PER_LOCK = 3
_HOLD_S_MIN = 0.1  # Bounds the rate of requests, whatever a broker returns.

Place = tuple[Uuid, int]
"""A partition, by the id of its topic."""


class Task(msgspec.Struct, frozen=True):
    """An acquired record, with the methods of confluent-kafka's messages."""

    place: Place
    name: str
    record: Record
    deliveries: int

    def topic(self) -> str:
        return self.name

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.record.offset

    def timestamp(self) -> tuple[int, int]:
        return _CREATE_TIME, self.record.timestamp

    def key(self) -> bytes | None:
        return self.record.key

    def value(self) -> bytes | None:
        return self.record.value

    def headers(self) -> Headers:
        return self.record.headers

    def delivery_count(self) -> int:
        return self.deliveries


class _Session(msgspec.Struct, frozen=True):
    """The share session at a leader: its next epoch and its partitions."""

    epoch: int = 0
    places: frozenset[Place] = frozenset()


class Worker:
    """A member of a share group with one topic; close it, or use it in a `with` statement."""

    def __init__(self, admin: Admin, group: str, topic: str) -> None:
        self._cluster = admin.cluster
        self._group = group
        self._topic = topic
        self._member_id = str(uuid.uuid4())
        self._member_epoch = 0
        self._coordinator = admin.groups.coordinator_of(group)
        self._assigned: dict[Uuid, list[int]] = {}
        self._sessions: dict[int, _Session] = {}
        self._leaders: dict[int, int] = {}
        self._are_leaders_stale = False
        self._due = 0.0
        self._interval_s = 0.0
        self._lock_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def take(self, count: int, timeout_s: float) -> list[Task]:
        """Return up to `count` tasks as soon as possible; none after the timeout."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._beat()
            tasks = self._fetch(count, deadline)
            if tasks or time.monotonic() >= deadline:
                return tasks
            if not self._leaders:
                time.sleep(min(0.1, max(0.0, deadline - time.monotonic())))

    def settle(self, task: Task, verdict: AcknowledgeType) -> None:
        """Acknowledge a task, and wait for the broker's answer."""
        self._acknowledge(task.place, task.record.offset, verdict)

    def hold(self, task: Task) -> None:
        """Stay a member and renew the lock of a task; call this every `hold_interval_s`.

        A broker without renewals (ShareAcknowledge v1) delivers the task to another worker when
        its lock expires.
        """
        self._beat()
        leader = self._leaders.get(task.place[1])
        if leader is not None and self._can_renew(leader):
            self._acknowledge(task.place, task.record.offset, AcknowledgeType.RENEW)

    @property
    def hold_interval_s(self) -> float:
        """Interval that avoids missed heartbeats and expired locks."""
        return max(_HOLD_S_MIN, min(self._interval_s, self._lock_s / _RENEWALS_PER_LOCK))

    def close(self) -> None:
        """Release unacknowledged tasks, and leave the group."""
        for leader, session in self._sessions.items():
            request = ShareAcknowledgeRequest(
                group_id=self._group,
                member_id=self._member_id,
                share_session_epoch=-1 if session.epoch else 0,
            )
            self._cluster.ask(request, ShareAcknowledgeResponse, leader)
        self._sessions.clear()
        if self._member_epoch > 0:
            self._heartbeat(_LEAVING)
            self._member_epoch = 0

    # --- the group ------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Send a heartbeat if it is due, and update the assignment."""
        if time.monotonic() < self._due and self._leaders:
            return
        try:
            answer = self._cluster.retry(lambda: self._heartbeat(self._member_epoch))
        except (UnknownMemberId, FencedMemberEpoch):
            self._member_epoch = 0
            self._assigned, self._leaders = {}, {}
            return
        self._member_epoch = answer.member_epoch
        self._interval_s = answer.heartbeat_interval_ms / 1000
        self._due = time.monotonic() + self._interval_s
        if answer.assignment is not None:
            self._assigned = {
                one.topic_id: one.partitions for one in answer.assignment.topic_partitions
            }
        if answer.assignment is not None or self._are_leaders_stale:
            self._find_leaders()

    def _heartbeat(self, epoch: int) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=epoch,
            subscribed_topic_names=[self._topic] if epoch >= 0 else None,
        )
        answer = self._cluster.ask(request, ShareGroupHeartbeatResponse, self._coordinator)
        if answer.error_code:
            raise error_for(answer.error_code, f"group {self._group!r}: {answer.error_message}")
        return answer

    def _find_leaders(self) -> None:
        topic = self._cluster.topic(self._topic)
        mine = self._assigned.get(topic.topic_id, [])
        self._leaders = {
            one.partition_index: one.leader_id
            for one in topic.partitions
            if one.partition_index in mine and one.leader_id >= 0
        }
        self._are_leaders_stale = False

    # --- the records ----------------------------------------------------------------------------

    def _fetch(self, count: int, deadline: float) -> list[Task]:
        for leader in sorted(set(self._leaders.values())):
            left_ms = max(0, int((deadline - time.monotonic()) * 1000))
            answer = self._ask(leader, count, min(_WAIT_MS, left_ms))
            tasks = [
                task
                for topic in answer.responses
                for one in topic.partitions
                for task in self._tasks(topic.topic_id, one)
            ]
            if tasks:
                return tasks
        return []

    def _ask(self, leader: int, count: int, wait_ms: int) -> ShareFetchResponse:
        session = self._sessions.get(leader, _Session())
        places = self._places(leader)
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=_BYTES_MAX,
            max_records=count,
            batch_size=count,
            share_acquire_mode=_RECORD_LIMIT,
            topics=_wanted(places - session.places),
            forgotten_topics_data=_forgotten(session.places - places),
        )
        answer = self._cluster.ask(request, ShareFetchResponse, leader)
        if answer.error_code in (ShareSessionNotFound.code, InvalidShareSessionEpoch.code):
            self._sessions.pop(leader, None)  # The next request opens a new session.
            return ShareFetchResponse()
        if answer.error_code:
            raise error_for(answer.error_code, f"{self._topic}: {answer.error_message}")
        self._sessions[leader] = _Session(session.epoch + 1, places)
        self._lock_s = answer.acquisition_lock_timeout_ms / 1000
        return answer

    def _places(self, leader: int) -> frozenset[Place]:
        """Return the assigned partitions of a leader."""
        return frozenset(
            (topic_id, index)
            for topic_id, partitions in self._assigned.items()
            for index in partitions
            if self._leaders.get(index) == leader
        )

    def _tasks(self, topic_id: Uuid, data: PartitionData) -> Iterator[Task]:
        """Yield the acquired records; acknowledge offsets without a record as gaps."""
        if data.error_code:
            error = error_for(data.error_code, f"{self._topic}: {data.error_message}")
            if not error.retriable:
                raise error
            self._due, self._are_leaders_stale = 0.0, True
            return
        place = (topic_id, data.partition_index)
        found = {record.offset: record for record in _records(bytes(data.records or b""))}
        for acquired in data.acquired_records:
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                if offset in found:
                    yield Task(place, self._topic, found[offset], acquired.delivery_count)
                else:
                    self._acknowledge(place, offset, AcknowledgeType.GAP)

    def _can_renew(self, leader: int) -> bool:
        request = ShareAcknowledgeRequest()
        return self._cluster.connection(leader).version_of(request) >= _RENEWALS_FROM

    def _acknowledge(self, place: Place, offset: int, verdict: AcknowledgeType) -> None:
        topic_id, partition = place
        leader = self._leaders.get(partition)
        session = self._sessions.get(leader) if leader is not None else None
        if leader is None or session is None:
            raise HeadraceError(
                f"{self._topic}-{partition} has another leader; "
                f"the record at offset {offset} will be delivered again"
            )
        batch = AcknowledgementBatch(offset, offset, [int(verdict)])
        request = ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=session.epoch,
            is_renew_ack=verdict is AcknowledgeType.RENEW,
            topics=[AcknowledgeTopic(topic_id, [AcknowledgePartition(partition, [batch])])],
        )
        answer = self._cluster.ask(request, ShareAcknowledgeResponse, leader)
        if not answer.error_code:
            self._sessions[leader] = _Session(session.epoch + 1, session.places)
        codes = [one.error_code for topic in answer.responses for one in topic.partitions]
        for code in (answer.error_code, *codes):
            if code:
                raise _refusal(code, self._topic, partition, offset)


def _wanted(places: Iterable[Place]) -> list[FetchTopic]:
    return [
        FetchTopic(topic_id, [FetchPartition(partition_index=index) for index in indexes])
        for topic_id, indexes in _by_topic(places).items()
    ]


def _forgotten(places: Iterable[Place]) -> list[ForgottenTopic]:
    return [ForgottenTopic(topic_id, found) for topic_id, found in _by_topic(places).items()]


def _by_topic(places: Iterable[Place]) -> dict[Uuid, list[int]]:
    found: dict[Uuid, list[int]] = {}
    for topic_id, index in sorted(places):
        found.setdefault(topic_id, []).append(index)
    return found


def _refusal(code: int, topic: str, partition: int, offset: int) -> KafkaError:
    return error_for(
        code,
        f"{topic}-{partition} offset {offset} could not be acknowledged ({error_for(code).name}); "
        "its lock has expired, so another worker may have the record",
    )


def _records(data: bytes) -> Iterable[Record]:
    for position, header in batch_headers(data):
        if not header.is_control:
            yield from records_of(data, position)
