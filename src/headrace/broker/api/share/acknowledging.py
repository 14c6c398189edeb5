"""The acknowledgements in ShareFetch and ShareAcknowledge requests: checked and carried out."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from headrace.errors import (
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.runtime.eager import finish_each
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request
from headrace.shares.partition import Acknowledgement
from headrace.shares.sessions import SessionKey, Target
from headrace.shares.state import SharePartitionKey

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.protocol.uuids import Uuid
    from headrace.replication.partition import Partition
    from headrace.security.access import Access

MEMBER_RIGHTS = (
    for_request(Operation.READ, ResourceType.GROUP),
    for_each(Operation.READ, ResourceType.TOPIC),
)
MEMBER_ID_SIZE_MAX = 36
RENEWALS_FROM = 2

Verdicts = dict[Target, KafkaError | None]


class AcknowledgementBatch(Protocol):
    """The fields of an acknowledgement in both requests."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


Acknowledged = Iterable[tuple[Target, Sequence[AcknowledgementBatch]]]


def check_member(group_id: str | None, member_id: str | None, access: "Access") -> SessionKey:
    """Return the key of the session; raise if it is invalid or the client has no right to it."""
    if group_id is None:
        raise InvalidRequest("Invalid group id in the request.")
    access.check(Operation.READ, ResourceType.GROUP, group_id)
    if not member_id or len(member_id) > MEMBER_ID_SIZE_MAX:
        raise InvalidRequest("Invalid member id in the request.")
    return SessionKey(group_id, member_id)


def partition_of(broker: "Broker", access: "Access", topic_id: "Uuid", index: int) -> "Partition":
    """Return the partition that a request names; raise unless this node leads it."""
    topic = broker.partitions.by_id.get(topic_id)
    if topic is None:
        raise UnknownTopicId("no topic has this id")
    if not access.allows(Operation.READ, ResourceType.TOPIC, topic.name):
        raise TopicAuthorizationFailed("the client may not read the topic")  # Without its name.
    return topic.led(index)


async def acknowledge_all(
    broker: "Broker",
    access: "Access",
    key: SessionKey,
    batches_by_target: Acknowledged,
    *,
    may_renew: bool,
) -> Verdicts:
    """Carry out acknowledgements, and return a result for each partition."""
    asked = list(batches_by_target)
    outcomes = await finish_each(
        _acknowledge(broker, access, key, target, batches, may_renew=may_renew)
        for target, batches in asked
    )
    return {target: outcome for (target, _), outcome in zip(asked, outcomes, strict=True)}


async def _acknowledge(
    broker: "Broker",
    access: "Access",
    key: SessionKey,
    target: Target,
    batches: Sequence[AcknowledgementBatch],
    *,
    may_renew: bool,
) -> None:
    partition_of(broker, access, *target)
    checked = _checked(batches, may_renew=may_renew)
    led = broker.share_partitions.find(SharePartitionKey(key.group_id, *target))
    if led is None:
        raise UnknownTopicOrPartition("the group has taken no records of this partition here")
    await broker.share_partitions.acknowledge(led, key.member_id, checked)


def _checked(batches: Sequence[AcknowledgementBatch], *, may_renew: bool) -> list[Acknowledgement]:
    """Convert the batches for the share partition; raise if one is invalid."""
    checked = []
    before = -1
    highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last:
            raise InvalidRequest(f"an acknowledgement of {first} to {last} names no offset")
        if first < before:
            raise InvalidRequest("acknowledgements must come in the order of their offsets")
        if len(types) not in (1, last - first + 1):
            raise InvalidRequest(
                f"offsets {first} to {last} need one acknowledge type, or one for each of them"
            )
        if min(types) < AcknowledgeType.GAP or max(types) > highest:
            raise InvalidRequest(f"acknowledge types go from 0 to {int(highest)} here")
        before = last
        checked.append(Acknowledgement(first, last, types))
    return checked
