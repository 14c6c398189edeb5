"""One step of a consumer group's member towards its target (KIP-848).

The steps are those of `epochs/reconciliation.py`. In addition, partitions of topics that a member
no longer subscribes to are revoked immediately, before a new target is computed.
"""

from collections.abc import Callable, Iterable, Mapping, Set

import msgspec

from headrace.groups.assignors import Assignment
from headrace.groups.consumer.records import Member, Owned
from headrace.groups.epochs import reconciliation
from headrace.groups.epochs.members import MemberState
from headrace.groups.epochs.reconciliation import Split, moved
from headrace.protocol.uuids import Uuid

Reported = Mapping[Uuid, list[int]] | None
"""The partitions that a member reports to own; None if its heartbeat did not contain them."""

_NOTHING: Mapping[int, int] = {}
_NOBODY: frozenset[int] = frozenset()


class Target(msgspec.Struct, frozen=True):
    """A member's goal, and the topics that it subscribes to."""

    epoch: int
    assignment: Assignment
    subscribed: Set[Uuid]
    subscription_changed: bool = False


def reconcile(
    member: Member, target: Target, reported: Reported, is_free: Callable[[Uuid, int], bool]
) -> Member:
    """Return the member after its possible step; the same object if no step is possible.

    `is_free` returns whether a partition has no owner.
    """

    def may_hold(partitions: Owned) -> bool:
        return reported is None or overlaps(reported, partitions)

    if target.subscription_changed and (
        member.is_reconciled_to(target.epoch)
        or (member.state is MemberState.UNREVOKED and may_hold(member.pending_revocation))
    ):
        return _without_unsubscribed(member, target, may_hold)
    return reconciliation.reconcile(
        member,
        target.epoch,
        may_hold,
        lambda: _split(member, target, is_free),
        holds_nothing=reported is not None and not reported,
    )


def _split(
    member: Member, target: Target, is_free: Callable[[Uuid, int], bool]
) -> Split[dict[Uuid, dict[int, int]]]:
    kept: dict[Uuid, dict[int, int]] = {}
    lost: dict[Uuid, dict[int, int]] = {}
    gained: dict[Uuid, dict[int, int]] = {}
    is_complete = True
    for topic_id in sorted(target.assignment.keys() | member.assigned.keys()):
        wanted = target.assignment.get(topic_id, _NOBODY)
        if topic_id not in target.subscribed:
            wanted = _NOBODY
        has = member.assigned.get(topic_id, _NOTHING)
        revoked = member.pending_revocation.get(topic_id, _NOTHING)
        missing = [number for number in wanted if number not in has]
        free = [number for number in missing if number in revoked or is_free(topic_id, number)]
        is_complete = is_complete and len(free) == len(missing)
        if still := {one: epoch for one, epoch in has.items() if one in wanted}:
            kept[topic_id] = still
        if gone := {one: epoch for one, epoch in has.items() if one not in wanted}:
            lost[topic_id] = gone
        if still or free:
            gained[topic_id] = still | dict.fromkeys(free, target.epoch)
    return Split(kept, lost, gained, is_complete)


def _without_unsubscribed(
    member: Member, target: Target, may_hold: Callable[[Owned], bool]
) -> Member:
    """Take the partitions back that the member no longer subscribes to."""
    unwanted = member.assigned.keys() - target.subscribed
    if not unwanted:
        return member
    assigned = {one: found for one, found in member.assigned.items() if one not in unwanted}
    pending = {topic_id: dict(found) for topic_id, found in member.pending_revocation.items()}
    for topic_id in unwanted:
        pending.setdefault(topic_id, {}).update(member.assigned[topic_id])
    if may_hold(pending):
        return moved(member, MemberState.UNREVOKED, member.epoch, assigned, pending)
    return moved(member, member.state, member.epoch, assigned, member.pending_revocation)


def is_within(owned: Mapping[Uuid, Iterable[int]], limit: Owned) -> bool:
    """Return whether a set of partitions contains another."""
    return all(
        number in limit.get(topic_id, _NOTHING)
        for topic_id, numbers in owned.items()
        for number in numbers
    )


def overlaps(owned: Mapping[Uuid, Iterable[int]], others: Owned) -> bool:
    """Return whether two sets of partitions overlap."""
    return any(
        number in others.get(topic_id, _NOTHING)
        for topic_id, numbers in owned.items()
        for number in numbers
    )
