"""The log on disk agrees with the model after any appends, truncations and snapshots."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.raft.log import RaftLog
from tests.builders.two_raft_logs import InMemory, OnDisk, SomeLog, append, epoch_before

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 5)),
        st.tuples(st.just("truncate"), st.integers(0, 8), st.just(0)),
        st.tuples(st.just("snapshot"), st.integers(0, 8), st.just(0)),
    ),
    max_size=25,
)


class Run:
    """The same steps on both logs."""

    def __init__(self, directory: Path) -> None:
        self.model, self.disk = InMemory(), OnDisk(directory)
        self.logs: tuple[SomeLog, ...] = (self.model, self.disk)
        self.ends = [0]
        """The offsets between batches."""

    def take(self, step: str, number: int, count: int) -> None:
        start = self.model.log.start_offset
        boundaries = [one for one in self.ends if one >= start]
        at = boundaries[-1 - number % len(boundaries)]
        match step:
            case "append":
                epoch = max(1, self.model.log.last_epoch) + number
                for one in self.logs:
                    append(one, epoch, count)
                self.ends.append(self.model.log.end_offset)
            case "truncate":
                for one in self.logs:
                    one.log.truncate(at)
                self.ends = [one for one in self.ends if one <= at]
            case "snapshot" if at > start:
                model, disk = (one.snapshot(at) for one in self.logs)
                assert model == disk == (at, disk.epoch)

    def compare(self) -> None:
        model, disk = self.model.log, self.disk.log
        assert facts(model) == facts(disk)
        for offset in (one for one in self.ends if one >= model.start_offset):
            for size in (1, 200, 10_000):
                expected, found = model.read(offset, size), disk.read(offset, size)
                assert expected.startswith(found)
                assert bool(found) == bool(expected)


def facts(log: RaftLog) -> list[object]:
    epochs = [log.end_of_epoch(epoch) for epoch in range(log.last_epoch + 2)]
    snapshots = [log.oldest_snapshot, log.newest_snapshot]
    return [log.start_offset, log.end_offset, log.last_epoch, *epochs, *snapshots]


@settings(max_examples=60, deadline=None)
@given(steps)
def test_the_log_on_disk_agrees_with_the_model(taken: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = Run(Path(directory))
        for step in taken:
            run.take(*step)
            run.compare()
        run.disk.close()


def test_the_epoch_before_an_offset_is_found() -> None:
    model = InMemory()
    for epoch in (1, 1, 3):
        append(model, epoch)
    assert [epoch_before(model.log, end) for end in (1, 2, 3)] == [1, 1, 3]
