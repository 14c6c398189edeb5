"""Tasks of streams groups: each is run once, loads are even, and nothing moves without need."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.groups.streams.tasks import Tasks, TaskTaker, assign_tasks

applications = st.dictionaries(st.sampled_from("0123"), st.integers(1, 8), min_size=1)
members = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2), st.sampled_from(["p", "q", "r"]), min_size=1
)


def takers(processes: dict[str, str], had: dict[str, Tasks] | None = None) -> dict[str, TaskTaker]:
    return {one: TaskTaker(processes[one], (had or {}).get(one, Tasks())) for one in processes}


@given(members, applications, st.integers(0, 2))
def test_every_task_runs_once_and_loads_are_even(
    processes: dict[str, str], sizes: dict[str, int], replicas: int
) -> None:
    shares = assign_tasks(takers(processes), sizes, frozenset(sizes), replicas)
    running = [task for share in shares.values() for task in share.active]
    assert sorted(running) == sorted((one, n) for one in sizes for n in range(sizes[one]))
    loads = [len(share.active) for share in shares.values()]
    assert max(loads) - min(loads) <= 1


@given(members, applications, st.integers(0, 2))
def test_a_process_holds_a_task_once(
    processes: dict[str, str], sizes: dict[str, int], replicas: int
) -> None:
    shares = assign_tasks(takers(processes), sizes, frozenset(sizes), replicas)
    held = [
        (processes[one], task)
        for one, share in shares.items()
        for task in (*share.active, *share.standby)
    ]
    assert len(held) == len(set(held))


@given(members, applications, st.integers(0, 2))
def test_a_good_assignment_stays(
    processes: dict[str, str], sizes: dict[str, int], replicas: int
) -> None:
    shares = assign_tasks(takers(processes), sizes, frozenset(sizes), replicas)
    again = assign_tasks(takers(processes, shares), sizes, frozenset(sizes), replicas)
    assert {one: share.active for one, share in again.items()} == {
        one: share.active for one, share in shares.items()
    }


@given(members, applications, st.data())
def test_remaining_processes_keep_their_tasks(
    processes: dict[str, str], sizes: dict[str, int], data: st.DataObject
) -> None:
    shares = assign_tasks(takers(processes), sizes, frozenset(sizes), 0)
    gone = data.draw(st.sampled_from(sorted(processes)))
    rest = {one: process for one, process in processes.items() if one != gone}
    for one, share in assign_tasks(takers(rest, shares), sizes, frozenset(sizes), 0).items():
        assert shares[one].active <= share.active
