"""One step of a member towards its target assignment (KIP-848).

A member first gives up what is not its own any more, in its old epoch (UNREVOKED_PARTITIONS). When
it has told us that it did, it moves to the target's epoch and gets what is free; what others
have not given up yet it waits for (UNRELEASED_PARTITIONS). So a partition never has two owners, and
members that lose nothing never stop.
"""

from collections.abc import Callable, Mapping, Set

import msgspec

from headrace.errors import FencedMemberEpoch
from headrace.groups.assignors import Assignment
from headrace.groups.consumer_members import Member, MemberState, Owned, overlaps
from headrace.protocol.uuids import Uuid

Reported = Mapping[Uuid, list[int]] | None
"""The partitions that a member says it owns; None if it said nothing this time."""

_NOTHING: Mapping[int, int] = {}
_NOBODY: frozenset[int] = frozenset()


class Target(msgspec.Struct, frozen=True):
    """Where a member shall get to, and what it wants at all."""

    epoch: int
    assignment: Assignment
    subscribed: Set[Uuid]
    subscription_changed: bool = False


def reconcile(
    member: Member, target: Target, reported: Reported, is_free: Callable[[Uuid, int], bool]
) -> Member:
    """The member after the step that is possible now; the same object if there is none.

    `is_free` says of a partition whether nobody owns it.
    """
    if member.is_reconciled_to(target.epoch) and not target.subscription_changed:
        return member
    match member.state:
        case MemberState.STABLE if member.epoch == target.epoch:
            return _without_unsubscribed(member, target, reported)
        case MemberState.UNREVOKED_PARTITIONS if _holds(reported, member.pending_revocation):
            if target.subscription_changed:
                return _without_unsubscribed(member, target, reported)
            return member
        case MemberState.UNKNOWN:
            if reported is None or reported:
                raise FencedMemberEpoch(
                    "The consumer group member is in a unknown state. The member must abandon all "
                    "its partitions and rejoin."
                )
            joined = msgspec.structs.replace(member, epoch=target.epoch)
            return _next_step(joined, target, reported, is_free)
        case _:
            return _next_step(member, target, reported, is_free)


def _holds(reported: Reported, partitions: Owned) -> bool:
    """Whether the member may still work on any of these: silence means that it may."""
    return reported is None or overlaps(reported, partitions)


def _next_step(
    member: Member, target: Target, reported: Reported, is_free: Callable[[Uuid, int], bool]
) -> Member:
    kept: dict[Uuid, dict[int, int]] = {}
    lost: dict[Uuid, dict[int, int]] = {}
    gained: dict[Uuid, list[int]] = {}
    waits = False
    for topic_id in sorted(target.assignment.keys() | member.assigned.keys()):
        wanted = target.assignment.get(topic_id, _NOBODY)
        if topic_id not in target.subscribed:
            wanted = _NOBODY
        has = member.assigned.get(topic_id, _NOTHING)
        given_up = member.pending_revocation.get(topic_id, _NOTHING)
        missing = [number for number in wanted if number not in has]
        free = [number for number in missing if number in given_up or is_free(topic_id, number)]
        waits = waits or len(free) < len(missing)
        _note(kept, topic_id, {number: epoch for number, epoch in has.items() if number in wanted})
        _note(lost, topic_id, {one: epoch for one, epoch in has.items() if one not in wanted})
        if free:
            gained[topic_id] = free
    if lost and _holds(reported, lost):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, kept, lost)
    for topic_id, numbers in gained.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(numbers, target.epoch))
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return _moved(member, state, target.epoch, kept, {})


def _note(into: dict[Uuid, dict[int, int]], topic_id: Uuid, found: dict[int, int]) -> None:
    if found:
        into[topic_id] = found


def _moved(
    member: Member, state: MemberState, epoch: int, assigned: Owned, pending_revocation: Owned
) -> Member:
    return msgspec.structs.replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )


def _without_unsubscribed(member: Member, target: Target, reported: Reported) -> Member:
    """Take back at once what the member does not want any more, before a new target is there."""
    unwanted = member.assigned.keys() - target.subscribed
    if not unwanted:
        return member
    assigned = {one: found for one, found in member.assigned.items() if one not in unwanted}
    pending = {topic_id: dict(found) for topic_id, found in member.pending_revocation.items()}
    for topic_id in unwanted:
        pending.setdefault(topic_id, {}).update(member.assigned[topic_id])
    if _holds(reported, pending):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, assigned, pending)
    return _moved(member, member.state, member.epoch, assigned, member.pending_revocation)
