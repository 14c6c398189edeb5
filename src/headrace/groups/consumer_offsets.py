"""Who may commit and fetch the offsets of a consumer group."""

from typing import TYPE_CHECKING

from headrace.errors import (
    IllegalGeneration,
    KafkaError,
    StaleMemberEpoch,
    UnknownMemberId,
)
from headrace.groups.consumer_members import Member
from headrace.groups.late_commits import LateCommit
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.groups.consumer_group import ConsumerGroup


def check_commit(
    group: "ConsumerGroup",
    member_id: str,
    instance_id: str | None,
    epoch: int,
    *,
    is_transaction: bool = False,
) -> None:
    """Raise unless a member may commit; `LateCommit` if it depends on what it commits."""
    if epoch < 0 and not group.members:
        return
    if is_transaction and epoch == -1 and not member_id and instance_id is None:
        return
    member = _member(group, member_id)
    if epoch > member.epoch:
        raise _stale(member, f"Received epoch {epoch} is newer than the member's {member.epoch}.")
    if epoch < member.epoch:
        raise LateCommit(
            epoch, member.epoch, lambda _, *place: _check_partition(member, epoch, *place)
        )


def check_fetch(group: "ConsumerGroup", member_id: str, epoch: int) -> None:
    """Raise unless offsets may be told; whoever names no member may always ask."""
    if not member_id and epoch < 0:
        return
    member = _member(group, member_id)
    if epoch != member.epoch:
        raise _stale(member, f"Received epoch {epoch} is not the member's {member.epoch}.")


def _member(group: "ConsumerGroup", member_id: str) -> Member:
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMemberId(f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def _check_partition(member: Member, epoch: int, topic_id: Uuid, partition: int) -> None:
    owned_since = member.assigned.get(topic_id, {}).get(partition)
    if owned_since is None:
        owned_since = member.pending_revocation.get(topic_id, {}).get(partition)
    if owned_since is None:
        raise _stale(member, f"Partition {partition} is not assigned to the member.")
    if epoch < owned_since:
        raise _stale(member, f"Received epoch {epoch} is older than the assignment {owned_since}.")


def _stale(member: Member, message: str) -> KafkaError:
    """The error in the words of the protocol that the member speaks."""
    return IllegalGeneration(message) if member.speaks_classic else StaleMemberEpoch(message)
