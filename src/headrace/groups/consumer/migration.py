"""A group changes its protocol while it works (KIP-848): classic to consumer, and back.

The first member that joins with the new protocol makes the group a consumer group; members that
still use the old one continue as members of it (`classic_members.py`). When the last member of the
new protocol leaves, the group is classic again. Each migration is one batch: the tombstones of the
old group, and the records of the new one.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.errors import GroupIdNotFound, KafkaError, RebalanceInProgress
from headrace.groups.assignors import Assignment
from headrace.groups.classic.group import ClassicGroup, State
from headrace.groups.classic.group import Member as ClassicMember
from headrace.groups.consumer.embedded_protocol import (
    assignment_by_id,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from headrace.groups.consumer.group import (
    ConsumerContext,
    ConsumerGroup,
    ConsumerSettings,
    timers_of_member,
)
from headrace.groups.consumer.records import ClassicProtocolSupport, Member, Owned
from headrace.groups.subscriptions import metadata_hash
from headrace.protocol.codec import DecodeError
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.schemas.join_group import JoinGroupResponse
from headrace.protocol.schemas.sync_group import SyncGroupResponse

R = TypeVar("R")

ALL_CLASSIC, DOWNGRADED = "consumer.all-classic", "consumer.downgraded"
"""Timers that are due immediately: the downgrade of a group, and the rejoin of its members."""

_UPGRADES, _DOWNGRADES = ("upgrade", "bidirectional"), ("downgrade", "bidirectional")


class Upgrade(msgspec.Struct, frozen=True):
    """The consumer group that a classic group becomes, and what that leads to."""

    group: ConsumerGroup
    effects: Effects[None]

    def followed_by(self, join: Effects[R]) -> Effects[R]:
        """The upgrade and the effects of the joining member in one batch."""
        before = self.effects
        return Effects(
            join.reply,
            before.records + join.records,
            before.answers + join.answers,
            {**before.timers, **join.timers},
        )


def upgrade(classic: ClassicGroup, new: ConsumerGroup, context: ConsumerContext) -> Upgrade:
    """Make a classic group a consumer group, for a member that joins with the new protocol.

    `new` is the consumer group without members. Members that wait to join or to sync must retry,
    and then reach the new group.
    """
    records = classic.tombstones()
    if classic.state is State.EMPTY:
        return Upgrade(new, Effects(records=records))
    _check_upgrade(classic, context.settings)
    try:
        for member in classic.members.values():
            _take_over(new, classic, member, context)
    except DecodeError:
        raise _refusal(classic, "the embedded consumer protocol is malformed") from None
    names = {name for member in new.members.values() for name in member.topic_names}
    new.epoch = new.assignment_epoch = classic.generation
    new.metadata_hash = metadata_hash(names, context.image)
    records.extend(_whole_group(new))
    return Upgrade(
        new, Effects(records=records, answers=_answers(classic), timers=_timers(classic))
    )


def _check_upgrade(classic: ClassicGroup, settings: ConsumerSettings) -> None:
    if settings.migration_policy.lower() not in _UPGRADES:
        raise _refusal(classic, "online upgrade is disabled")
    if not classic.is_of_consumers:
        raise _refusal(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.max_size:
        raise _refusal(classic, "the group size exceeds the consumer group maximum size")


def _refusal(classic: ClassicGroup, reason: str) -> KafkaError:
    return GroupIdNotFound(
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
    )


def _take_over(
    group: ConsumerGroup, classic: ClassicGroup, member: ClassicMember, context: ConsumerContext
) -> None:
    """Move a member of the classic protocol to the consumer group, with its assignment."""
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _refusal(classic, "an unsupported custom assignor is in use")
    share = assignment_by_id(assignment, context.image)
    protocol = classic.protocol or member.protocols[0][0]
    subscription = read_subscription(member.metadata_for(protocol))
    group.target[member.member_id] = share
    group.replace_member(
        Member(
            member.member_id,
            epoch=classic.generation,
            previous_epoch=classic.generation,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topic_names=frozenset(subscription.topics),
            assigned=_owned_since(classic.generation, share),
            classic=ClassicProtocolSupport(member.session_timeout_ms, member.protocols),
        )
    )


def _owned_since(epoch: int, assignment: Assignment) -> Owned:
    return {topic_id: dict.fromkeys(found, epoch) for topic_id, found in assignment.items()}


def _answers(classic: ClassicGroup) -> list[tuple[Any, Any]]:
    code = RebalanceInProgress.code
    answers: list[tuple[Any, Any]] = []
    for member in classic.members.values():
        if member.join_ticket is not None:
            again = JoinGroupResponse(
                error_code=code, generation_id=-1, member_id=member.member_id, protocol_name=None
            )
            answers.append((member.join_ticket, again))
        if member.sync_ticket is not None:
            answers.append((member.sync_ticket, SyncGroupResponse(error_code=code)))
    return answers


def _timers(classic: ClassicGroup) -> dict[TimerKey, int | None]:
    """The classic group's timers stop, and sessions continue under the new name."""
    group_id = classic.group_id
    timers: dict[TimerKey, int | None] = {
        ("classic.join", group_id): None,
        ("classic.sync", group_id): None,
    }
    for member in classic.members.values():
        timers["classic.session", group_id, member.member_id] = None
        timers[ConsumerGroup.session, group_id, member.member_id] = member.session_timeout_ms
    return timers


def may_downgrade(remaining: Iterable[Member], settings: ConsumerSettings) -> bool:
    """Return whether all remaining members use the classic protocol and policy allows it."""
    left = list(remaining)
    return (
        bool(left)
        and all(member.speaks_classic for member in left)
        and settings.migration_policy.lower() in _DOWNGRADES
        and len(left) <= settings.classic_max_size
    )


def downgrade(
    group: ConsumerGroup, remaining: Iterable[Member], context: ConsumerContext
) -> Effects[None]:
    """Make a consumer group a classic group of its remaining members, with a rebalance."""
    classic = ClassicGroup(group.group_id)
    members = list(remaining)
    timers: dict[TimerKey, int | None] = {}
    for member_id in group.members:
        timers |= dict.fromkeys(timers_of_member(group.group_id, member_id))
    for member in members:
        support = member.classic
        assert support is not None
        classic.add(_classic_member(member, support))
        timers["classic.session", group.group_id, member.id] = support.session_timeout_ms
    timers[DOWNGRADED, group.group_id] = 0
    classic.generation = group.epoch
    classic.protocol = classic.vote()
    return Effects(records=_records(group, classic, members, context), timers=timers)


def _classic_member(member: Member, support: ClassicProtocolSupport) -> ClassicMember:
    return ClassicMember(
        member.id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        support.session_timeout_ms,
        "consumer",
        support.protocols,
    )


def _records(
    group: ConsumerGroup, classic: ClassicGroup, members: list[Member], context: ConsumerContext
) -> list[CoordinatorRecord]:
    records = group.tombstones()
    assignments = {
        member.id: write_assignment(
            member.assigned,
            version_of(classic.members[member.id].metadata_for(classic.protocol)),
            context.image,
        )
        for member in members
    }
    records.append(classic.record(classic.value(context.now_ms, assignments)))
    return records


def _whole_group(group: ConsumerGroup) -> Iterator[CoordinatorRecord]:
    """All records of a group, written when a classic group becomes this one."""
    group_id, records, members = group.group_id, group.records, group.members.values()
    for member in members:
        yield records.member(group_id, member)
    yield records.group(group_id, group.epoch, group.metadata_hash)
    for member_id, target in group.target.items():
        yield records.target(group_id, member_id, target)
    yield records.target_epoch(group_id, group.assignment_epoch, group.assignment_timestamp_ms)
    for member in members:
        yield records.current(group_id, member)
