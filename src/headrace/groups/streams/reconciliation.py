"""One step of a streams group's member towards its target (KIP-1071).

The steps are those of `epochs/reconciliation.py`. Within one process a task is held once, active
or as a standby, because its state lives in one directory.
"""

from collections.abc import Iterable

import msgspec

from headrace.groups.epochs import reconciliation
from headrace.groups.epochs.members import MemberState
from headrace.groups.epochs.reconciliation import Split
from headrace.groups.streams.records import StreamsMember
from headrace.groups.streams.tasks import Task, Tasks


def reconcile(
    member: StreamsMember,
    target_epoch: int,
    target: Tasks,
    reported: Tasks | None,
    others: Iterable[StreamsMember],
) -> StreamsMember:
    """Return the member after its possible step; the same object if no step is possible."""
    updated = reconciliation.reconcile(
        member,
        target_epoch,
        lambda tasks: reported is None or bool(reported & tasks),
        lambda: _split(member, target, others),
        holds_nothing=reported is not None and not reported,
    )
    if updated is member or updated.state is MemberState.UNREVOKED:
        return updated
    epochs = {task: member.epochs.get(task, target_epoch) for task in updated.assigned.active}
    return msgspec.structs.replace(updated, epochs=epochs)


def _split(member: StreamsMember, target: Tasks, others: Iterable[StreamsMember]) -> Split[Tasks]:
    kept = member.assigned & target
    wanted = target - kept
    free = _free(wanted, member, others)
    return Split(kept, member.assigned - kept, kept | free, free == wanted)


def _free(wanted: Tasks, member: StreamsMember, others: Iterable[StreamsMember]) -> Tasks:
    """The wanted tasks that no other member runs or holds in the same process."""
    running: set[Task] = set()
    in_process = member.assigned.active | member.assigned.standby
    for other in others:
        if other.id == member.id:
            continue
        held = other.assigned | other.pending_revocation
        running |= held.active
        if other.process_id == member.process_id:
            in_process |= held.active | held.standby
    return Tasks(wanted.active - running - in_process, wanted.standby - in_process)
