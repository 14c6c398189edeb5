"""A member of a group with epochs, its states, and the member epochs with a meaning."""

from enum import IntEnum

import msgspec

JOINING = 0
LEAVING = -1
LEAVING_FOR_NOW = -2
"""Member epochs with a meaning: join, leave, and leave as a static member that will return."""


class MemberState(IntEnum):
    """A member's state on the way to its target assignment, as consumer groups number it."""

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127  # The state of a record that a later version wrote.


class EpochMember(msgspec.Struct, frozen=True):
    """The fields of a member that all kinds of groups share; a change makes a new member."""

    id: str
    epoch: int = JOINING
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch
