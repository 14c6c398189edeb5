"""One step of a member towards its target assignment (KIP-848, KIP-1071).

A member first revokes its lost partitions in its old epoch (UNREVOKED). After its report it moves
to the target's epoch and gets the free partitions; for the others it waits until their owners have
revoked them (UNRELEASED). So no partition ever has two owners, and members without losses never
stop.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from headrace.errors import FencedMemberEpoch
from headrace.groups.epochs.members import EpochMember, MemberState

M = TypeVar("M", bound=EpochMember)
A = TypeVar("A")


class Split(NamedTuple, Generic[A]):
    """A member's current assignment against its target."""

    kept: A
    lost: A
    gained: A  # Kept partitions, and free ones of the target.
    is_complete: bool  # All of the target is kept or free.


def reconcile(
    member: M,
    target_epoch: int,
    may_hold: Callable[[Any], bool],
    split: Callable[[], Split[A]],
    *,
    holds_nothing: bool,
) -> M:
    """Return the member after its possible step; the same object if no step is possible.

    `may_hold` returns whether the member may still work on any of a set, which silence implies.
    """
    if member.is_reconciled_to(target_epoch):
        return member
    if member.state is MemberState.UNREVOKED and may_hold(_pending(member)):
        return member
    if member.state is MemberState.UNKNOWN and not holds_nothing:
        raise FencedMemberEpoch(
            "The member is in an unknown state. It must abandon its whole assignment and rejoin."
        )
    kept, lost, gained, is_complete = split()
    if lost and may_hold(lost):
        return moved(member, MemberState.UNREVOKED, member.epoch, kept, lost)
    state = MemberState.STABLE if is_complete else MemberState.UNRELEASED
    return moved(member, state, target_epoch, gained, type(gained)())


def moved(member: M, state: MemberState, epoch: int, assigned: A, pending_revocation: A) -> M:
    return msgspec.structs.replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )


def _pending(member: Any) -> Any:
    return member.pending_revocation
