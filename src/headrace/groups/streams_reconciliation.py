"""One step of a streams member towards its target (KIP-1071).

As in consumer groups a task moves only when whoever has it has given it up. And within one
process a task is held once, active or as a standby, because its state lives in one directory.
"""

from collections.abc import Iterable

import msgspec

from headrace.errors import FencedMemberEpoch
from headrace.groups.streams_group import (
    STABLE,
    UNKNOWN,
    UNRELEASED,
    UNREVOKED,
    StreamsMember,
)
from headrace.groups.streams_tasks import NO_TASKS, Task, Tasks


class Holders:
    """Who holds which tasks, the member in question aside."""

    def __init__(self, member: StreamsMember, others: Iterable[StreamsMember]) -> None:
        self._running: set[Task] = set()
        self._in_process: set[Task] = set()
        for other in others:
            if other.id == member.id:
                continue
            held = other.assigned | other.pending_revocation
            self._running |= held.active
            if other.process_id == member.process_id:
                self._in_process |= held.active | held.standby
        self._own = member.assigned

    def free(self, wanted: Tasks) -> Tasks:
        """Of what a member shall get, that which nobody is in the way of."""
        blocked = self._in_process | self._own.active | self._own.standby
        return Tasks(wanted.active - self._running - blocked, wanted.standby - blocked)


def reconcile(
    member: StreamsMember,
    target_epoch: int,
    target: Tasks,
    reported: Tasks | None,
    others: Iterable[StreamsMember],
) -> StreamsMember:
    """The member after the step that is possible now; the same object if there is none."""
    if member.is_reconciled_to(target_epoch):
        return member
    if member.state == UNREVOKED and _holds(reported, member.pending_revocation):
        return member
    if member.state == UNKNOWN and (reported is None or reported):
        raise FencedMemberEpoch("The streams group member is in a unknown state and must rejoin.")
    kept = member.assigned & target
    lost = member.assigned - kept
    if lost and _holds(reported, lost):
        return _moved(member, UNREVOKED, member.epoch, kept, lost)
    wanted = target - kept
    gained = Holders(member, others).free(wanted)
    state = STABLE if gained == wanted else UNRELEASED
    updated = _moved(member, state, target_epoch, kept | gained, NO_TASKS)
    epochs = {task: member.epochs.get(task, target_epoch) for task in updated.assigned.active}
    return msgspec.structs.replace(updated, epochs=epochs)


def _holds(reported: Tasks | None, tasks: Tasks) -> bool:
    return reported is None or bool(reported & tasks)


def _moved(
    member: StreamsMember, state: int, epoch: int, assigned: Tasks, pending: Tasks
) -> StreamsMember:
    return msgspec.structs.replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        pending_revocation=pending,
    )
