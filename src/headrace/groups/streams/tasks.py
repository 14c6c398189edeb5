"""The tasks of a streams group: who runs which, and who keeps copies of their state."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

Task = tuple[str, int]
"""A subtopology and one partition of its input."""


class Tasks(msgspec.Struct, frozen=True):
    """The tasks of a member; it processes the active ones, and follows the state of standbys."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.active or self.standby)

    def __and__(self, other: "Tasks") -> "Tasks":
        return Tasks(self.active & other.active, self.standby & other.standby)

    def __or__(self, other: "Tasks") -> "Tasks":
        return Tasks(self.active | other.active, self.standby | other.standby)

    def __sub__(self, other: "Tasks") -> "Tasks":
        return Tasks(self.active - other.active, self.standby - other.standby)


NO_TASKS = Tasks()


class TaskTaker(msgspec.Struct, frozen=True):
    """A member for the assignor: its process and its current target."""

    process_id: str
    previous: Tasks = NO_TASKS


def assign_tasks(
    members: Mapping[str, TaskTaker],
    tasks: Mapping[str, int],
    stateful: frozenset[str],
    standby_replicas: int,
) -> dict[str, Tasks]:
    """Assign all tasks evenly, preferably to members with the tasks' state.

    A member keeps its tasks up to its quota; otherwise a member with a copy of the state takes
    over. Standby copies are in other processes than the active task.
    """
    if not members:
        return {}
    every = [(one, number) for one in sorted(tasks) for number in range(tasks[one])]
    active = _assign_active(members, every)
    copied = [task for task in every if task[0] in stateful]
    standby = _assign_standby(members, active, copied, standby_replicas)
    return {one: Tasks(frozenset(active[one]), frozenset(standby[one])) for one in members}


def _assign_active(members: Mapping[str, TaskTaker], every: list[Task]) -> dict[str, set[Task]]:
    existing = set(every)
    kept = {one: sorted(members[one].previous.active & existing) for one in sorted(members)}
    by_size = sorted(kept, key=lambda one: -len(kept[one]))
    least, odd = divmod(len(every), len(members))
    quotas = {one: least + (place < odd) for place, one in enumerate(by_size)}
    taken: set[Task] = set()
    shares: dict[str, set[Task]] = {}
    for one in kept:
        shares[one] = {task for task in kept[one] if task not in taken} or set()
        shares[one] = set(sorted(shares[one])[: quotas[one]])
        taken |= shares[one]
    for task in every:
        if task not in taken:
            hungry = [one for one in shares if len(shares[one]) < quotas[one]]
            shares[_best(task, hungry, members, shares)].add(task)
    return shares


def _best(
    task: Task,
    able: Iterable[str],
    members: Mapping[str, TaskTaker],
    shares: Mapping[str, set[Task]],
) -> str:
    """The member that has the task's state, or one whose process has it, or the emptiest."""
    keepers = {one.process_id for one in members.values() if task in one.previous.standby}
    return min(
        able,
        key=lambda one: (
            task not in members[one].previous.standby,
            members[one].process_id not in keepers,
            len(shares[one]),
            one,
        ),
    )


def _assign_standby(
    members: Mapping[str, TaskTaker],
    active: Mapping[str, set[Task]],
    copied: list[Task],
    replicas: int,
) -> dict[str, set[Task]]:
    standby: dict[str, set[Task]] = {one: set() for one in members}
    if not replicas:
        return standby
    runner = {task: members[one].process_id for one, found in active.items() for task in found}
    load = Counter({one: len(found) for one, found in active.items()})
    for task in copied:
        used = {runner[task]}
        for _ in range(replicas):
            able = [one for one in sorted(members) if members[one].process_id not in used]
            if not able:
                break
            had = [one for one in able if task in members[one].previous.standby]
            keeper = min(had or able, key=lambda one: load[one])
            standby[keeper].add(task)
            load[keeper] += 1
            used.add(members[keeper].process_id)
    return standby
