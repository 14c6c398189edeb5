"""TxnOffsetCommit v0-5: store offsets of a group as part of a transaction.

v3 adds the member, so that a member of an old generation is rejected (KIP-447). Clients of
transaction.version 2 send v5, without AddOffsetsToTxn before it (KIP-890).
"""

from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING

from headrace.broker.api.registry import Call, api
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS
from headrace.broker.transactions import Verification
from headrace.coordination.effects import Producer
from headrace.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    IllegalGeneration,
    InvalidGroupId,
    KafkaError,
    NetworkException,
    StaleMemberEpoch,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from headrace.groups.group import LateCommit
from headrace.groups.offsets import Commit, check_commit, commit
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from headrace.runtime.eager import eager
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch

if TYPE_CHECKING:
    from headrace.groups.shard import GroupShard
    from headrace.replication.partition import Partition

_RIGHTS = (
    for_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    for_request(Operation.READ, ResourceType.GROUP),
    for_each(Operation.READ, ResourceType.TOPIC),
)
_LOADING_FROM = 2
_ABORTABLE_FROM = 4
_EPOCH_BUMP_FROM = 5


def _refuse(
    request: TxnOffsetCommitRequest, error: KafkaError, version: int
) -> TxnOffsetCommitResponse:
    code = _error_in_version(error, version).code
    known = [
        (topic.name, one.partition_index) for topic in request.topics for one in topic.partitions
    ]
    return _response(request, dict.fromkeys(known, code))


@api(ApiKey.TXN_OFFSET_COMMIT, versions=range(6), rights=_RIGHTS, refuse=_refuse)
@eager
async def txn_offset_commit(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    access = call.access
    access.check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    access.check(Operation.READ, ResourceType.GROUP, request.group_id)
    names = [topic.name for topic in request.topics]
    forbidden = set(access.denied(Operation.READ, ResourceType.TOPIC, names))
    commits = [one for one in _known(request, call) if one[0] not in forbidden]
    codes = await _commit(request, call, commits) if commits else []
    known = {
        (topic, index): code for (topic, _, index, *_), code in zip(commits, codes, strict=True)
    }
    for topic in request.topics:
        if topic.name in forbidden:
            refused = [(topic.name, one.partition_index) for one in topic.partitions]
            known |= dict.fromkeys(refused, TopicAuthorizationFailed.code)
    return _response(request, known)


async def _commit(request: TxnOffsetCommitRequest, call: Call, commits: list[Commit]) -> list[int]:
    broker = call.broker
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    shard = broker.groups.shard_for(request.group_id)
    await _check_transaction(request, call, shard.partition)
    _check_member(request, call, shard.state, commits)
    effects = commit(
        shard.state,
        request.group_id,
        commits,
        broker.clock.now_ms(),
        producer=Producer(request.producer_id, request.producer_epoch),
    )
    codes = shard.apply(effects)
    if isinstance(codes, Coroutine):
        codes = await codes
    assert codes is not None
    return codes


def _check_member(
    request: TxnOffsetCommitRequest, call: Call, state: "GroupShard", commits: list[Commit]
) -> None:
    """Check the member; report a stale epoch as ILLEGAL_GENERATION, which producers support."""
    try:
        check_commit(
            state,
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            version=call.version,
            is_transaction=True,
        )
    except StaleMemberEpoch as stale:
        if not isinstance(stale, LateCommit):
            raise IllegalGeneration(str(stale)) from stale
        try:
            stale.check((topic, topic_id, partition) for topic, topic_id, partition, *_ in commits)
        except StaleMemberEpoch as error:
            raise IllegalGeneration(str(error)) from error


async def _check_transaction(
    request: TxnOffsetCommitRequest, call: Call, partition: "Partition"
) -> None:
    """Make the partition of the group part of the transaction, or raise."""
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if partition.online_log().producers.is_in_transaction(*producer):
        return
    place = TopicPartition(CONSUMER_OFFSETS, partition.index)
    refused = await call.broker.transactions.admit(
        request.transactional_id, producer, {place}, _verification(call.version)
    )
    if refused:
        raise refused[place]


def _verification(version: int) -> Verification:
    if version >= _EPOCH_BUMP_FROM:
        return Verification.ADD
    return Verification.ABORTABLE if version >= _ABORTABLE_FROM else Verification.PLAIN


def _known(request: TxnOffsetCommitRequest, call: Call) -> Iterator[Commit]:
    """The commits of existing partitions."""
    for topic in request.topics:
        image = call.broker.image.topics.get(topic.name)
        for one in topic.partitions:
            if image is not None and 0 <= one.partition_index < len(image.partitions):
                yield (
                    topic.name,
                    image.id,
                    one.partition_index,
                    one.committed_offset,
                    one.committed_leader_epoch,
                    one.committed_metadata,
                )


def _error_in_version(error: KafkaError, version: int) -> KafkaError:
    if isinstance(error, NetworkException):
        error = CoordinatorLoadInProgress(str(error))
    if isinstance(error, CoordinatorLoadInProgress) and version < _LOADING_FROM:
        return CoordinatorNotAvailable(str(error))  # The first one makes old producers fail.
    return error


def _response(
    request: TxnOffsetCommitRequest, codes: dict[tuple[str, int], int]
) -> TxnOffsetCommitResponse:
    """Return a code for each partition; partitions without one are unknown."""
    unknown = UnknownTopicOrPartition.code
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=codes.get((topic.name, one.partition_index), unknown),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
