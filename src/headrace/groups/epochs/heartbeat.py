"""Common parts of the heartbeats of consumer, share and streams groups."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from headrace.errors import FencedMemberEpoch, GroupMaxSizeReached, InvalidRequest
from headrace.groups.epochs.group import EpochGroup
from headrace.groups.epochs.members import EpochMember

R = TypeVar("R")
N = TypeVar("N")


class Client(msgspec.Struct, frozen=True):
    """The sender of a request, as group descriptions show it, and what it may see."""

    id: str
    host: str
    may_describe: Callable[[str], bool] | None = None
    """Returns whether the sender may see a topic; None if it may see all topics."""


class Answer(msgspec.Struct, Generic[R, N], frozen=True):
    """The response to a heartbeat, and resources to create before it is sent."""

    response: R
    needs: N


def check_not_empty(**fields: str | None) -> None:
    """Raise if a field is blank but not null; keywords are names of the request's schema."""
    for name, value in fields.items():
        if value is not None and not value.strip():
            raise InvalidRequest(f"{name} can't be empty.")


def check_room(group: EpochGroup[Any, Any], member_id: str, size_max: int) -> None:
    """Raise if a group is full and the member is new."""
    if len(group.members) >= size_max and member_id not in group.members:
        raise GroupMaxSizeReached(
            f"The {group.type} group has reached its maximum capacity of {size_max} members."
        )


def check_epoch(
    group: EpochGroup[Any, Any], member: EpochMember, epoch: int, is_repeated: Callable[[], bool]
) -> None:
    """Fence a member whose epoch is not its own.

    The previous epoch is allowed if `is_repeated` confirms that the member owns no more than it
    may: it has missed the response with its present epoch.
    """
    if epoch == member.epoch:
        return
    if epoch == member.previous_epoch and epoch < member.epoch and is_repeated():
        return
    comparison = "greater" if epoch > member.epoch else "smaller"
    raise FencedMemberEpoch(
        f"The {group.type} group member has a {comparison} member epoch ({epoch}) than the one "
        f"known by the group coordinator ({member.epoch}). The member must abandon its whole "
        f"assignment and rejoin."
    )
