"""ListOffsets v1-11: the offset of a partition at a time, at its start or at its end.

Negative timestamps mean special offsets, each from some version on: -1 the end and -2 the start,
-3 the latest timestamp (v7, KIP-734), -4 the start on local disk (v8), -5 the last tiered offset
(v9) and -6 the first one waiting for the remote tier (v11). Nothing is tiered here.

A new leader learns from its followers which of its records are committed. Until then consumers get
no end that might go back, but OFFSET_NOT_AVAILABLE (v5, KIP-207).
"""

from collections import Counter
from enum import IntEnum

from headrace.broker.api.registry import Call, api
from headrace.errors import (
    InvalidRequest,
    KafkaError,
    LeaderNotAvailable,
    OffsetNotAvailable,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.refusals import refused
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.replication.partition import Partition
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each
from headrace.storage.log import Log
from headrace.storage.timestamps import TimestampOffset

_RIGHTS = (for_each(Operation.DESCRIBE, ResourceType.TOPIC),)
_CONSUMER = -1
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_FORBIDDEN = TopicAuthorizationFailed("the client may not describe the topic")
_NO_TIMESTAMP = -1
_NOT_AVAILABLE_FROM = 5


class _Place(IntEnum):
    """The special offset that a negative timestamp means."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING = -6


_KNOWN_FROM: dict[int, int] = {
    _Place.LATEST: 1,
    _Place.EARLIEST: 1,
    _Place.MAX_TIMESTAMP: 7,
    _Place.EARLIEST_LOCAL: 8,
    _Place.LATEST_TIERED: 9,
    _Place.EARLIEST_PENDING: 11,
}


@api(ApiKey.LIST_OFFSETS, versions=range(1, 12), rights=_RIGHTS)
def list_offsets(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    if request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        raise InvalidRequest(
            f"there is no isolation level {request.isolation_level}; there are "
            "0 (read_uncommitted) and 1 (read_committed)"
        )
    asked = Counter(
        (topic.name, one.partition_index) for topic in request.topics for one in topic.partitions
    )
    names = [topic.name for topic in request.topics]
    forbidden = set(call.access.denied(Operation.DESCRIBE, ResourceType.TOPIC, names))
    topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        for one in topic.partitions:
            if topic.name in forbidden:
                found = refused(ListOffsetsPartitionResponse, one, _FORBIDDEN)
            elif asked[topic.name, one.partition_index] > 1:
                twice = InvalidRequest("a partition is named more than once")
                found = refused(ListOffsetsPartitionResponse, one, twice)
            else:
                found = _find(topic.name, one, request, call)
            topics.setdefault(topic.name, {})[one.partition_index] = found
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=list(partitions.values()))
            for name, partitions in topics.items()
        ]
    )


def _find(
    topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest, call: Call
) -> ListOffsetsPartitionResponse:
    try:
        if asked.timestamp < 0 and call.version < _KNOWN_FROM.get(asked.timestamp, 1 << 15):
            raise UnsupportedVersion(
                f"timestamp {asked.timestamp} is not defined in v{call.version}"
            )
        partition = call.broker.partitions.led(topic, asked.partition_index)
        partition.check_leader_epoch(asked.current_leader_epoch)
        log = partition.online_log()
        found = _look_up(partition, log, asked.timestamp, _end_offset(request, log))
        if _may_go_back(asked.timestamp, found) and request.replica_id == _CONSUMER:
            _check_end_is_known(partition, call.version)
    except KafkaError as error:
        return refused(ListOffsetsPartitionResponse, asked, error)
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if call.version >= 4 else -1,
    )


def _end_offset(request: ListOffsetsRequest, log: Log) -> int:
    """Return the end of the records that the client can read; replicas read all records."""
    if request.replica_id != _CONSUMER:
        return log.log_end_offset
    if request.isolation_level == _READ_COMMITTED:
        return log.last_stable_offset
    return log.high_watermark


def _may_go_back(timestamp: int, found: TimestampOffset | None) -> bool:
    """Return whether an answer depends on the high watermark."""
    return timestamp == _Place.LATEST or (
        found is None and timestamp not in (_Place.LATEST_TIERED, _Place.EARLIEST_PENDING)
    )


def _check_end_is_known(partition: Partition, version: int) -> None:
    if partition.is_end_known:
        return
    kind = OffsetNotAvailable if version >= _NOT_AVAILABLE_FROM else LeaderNotAvailable
    raise kind(
        f"{partition.topic.name}-{partition.index} has a new leader, which does not know yet "
        "which of its records are committed"
    )


def _look_up(
    partition: Partition, log: Log, timestamp: int, end_offset: int
) -> TimestampOffset | None:
    match timestamp:
        case _Place.LATEST:
            return TimestampOffset(_NO_TIMESTAMP, end_offset, partition.leader_epoch)
        case _Place.EARLIEST | _Place.EARLIEST_LOCAL:
            epoch = _first_epoch(partition, log)
            return TimestampOffset(_NO_TIMESTAMP, log.log_start_offset, epoch)
        case _Place.MAX_TIMESTAMP:
            found = log.max_timestamp()
        case _Place.LATEST_TIERED | _Place.EARLIEST_PENDING:
            return None
        case _:
            found = log.offset_for_timestamp(timestamp)
    return found if found is not None and found.offset < end_offset else None


def _first_epoch(partition: Partition, log: Log) -> int:
    """Return the epoch of the first record, -1 if the log has lost it, or the current epoch."""
    earliest = log.leader_epochs.earliest
    if earliest is None:
        return partition.leader_epoch
    return earliest.epoch if earliest.start_offset <= log.log_start_offset else -1
