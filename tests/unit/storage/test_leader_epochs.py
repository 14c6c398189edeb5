"""The start offset of each leader epoch of a partition, for followers."""

from pathlib import Path

import pytest

from headrace.storage.leader_epochs import EpochEntry, LeaderEpochs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leader-epoch-checkpoint"


def epochs_of(path: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(str(path))
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


def pairs(epochs: LeaderEpochs) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in epochs.entries]


def test_the_file_is_kafkas(path: Path) -> None:
    epochs_of(path, (0, 0), (2, 15))
    assert path.read_text() == "0\n2\n0 0\n2 15\n"
    assert pairs(LeaderEpochs.load(str(path))) == [(0, 0), (2, 15)]


@pytest.mark.parametrize(
    "content", ["", "0\n0\n", "1\n0\n", "0\n2\n0 0\n", "0\n1\nx y\n", "0\n1\n1 2 3\n"]
)
def test_a_file_that_is_empty_or_damaged_counts_as_empty(path: Path, content: str) -> None:
    path.write_text(content)
    assert LeaderEpochs.load(str(path)).entries == []


def test_there_may_be_no_file(path: Path) -> None:
    epochs = LeaderEpochs.load(str(path))
    assert (epochs.latest_epoch, epochs.earliest) == (-1, None)


@pytest.mark.parametrize(
    ("epoch", "start", "expected"),
    [
        pytest.param(5, 30, [(1, 0), (3, 20), (5, 30)], id="a new leader"),
        pytest.param(3, 25, [(1, 0), (3, 20)], id="the same one again"),
        pytest.param(3, 15, [(1, 0), (3, 15)], id="the same one from earlier on"),
        pytest.param(5, 20, [(1, 0), (5, 20)], id="after a leader that wrote nothing"),
        pytest.param(5, 0, [(5, 0)], id="over everything"),
        pytest.param(2, 30, [(1, 0), (2, 30)], id="a smaller epoch at the end"),
    ],
)
def test_a_new_epoch_drops_contradicting_entries(
    path: Path, epoch: int, start: int, expected: list[tuple[int, int]]
) -> None:
    epochs = epochs_of(path, (1, 0), (3, 20))
    epochs.assign(epoch, start)
    assert pairs(epochs) == pairs(LeaderEpochs.load(str(path))) == expected


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(3, (3, 50), id="the latest ends where the log ends"),
        pytest.param(1, (1, 20), id="an older one ends where the next begins"),
        pytest.param(2, (1, 20), id="one that never wrote: the one before it"),
        pytest.param(0, (0, 10), id="older than anything known"),
        pytest.param(4, (-1, -1), id="newer than anything known"),
        pytest.param(-1, (-1, -1), id="undefined"),
    ],
)
def test_the_end_offset_of_an_epoch_is_found(
    path: Path, epoch: int, expected: tuple[int, int]
) -> None:
    assert epochs_of(path, (1, 10), (3, 20)).end_offset_for(epoch, 50) == expected


def test_a_log_without_epochs_has_no_end_offset(path: Path) -> None:
    assert LeaderEpochs(str(path)).end_offset_for(0, 50) == (-1, -1)


def test_truncation_from_the_end_and_from_the_start(path: Path) -> None:
    epochs = epochs_of(path, (1, 10), (3, 20), (4, 30))
    epochs.truncate_from_end(30)
    assert pairs(epochs) == [(1, 10), (3, 20)]
    epochs.truncate_from_start(15)
    assert epochs.earliest == EpochEntry(1, 15)
    epochs.truncate_from_start(25)
    assert pairs(epochs) == pairs(LeaderEpochs.load(str(path))) == [(3, 25)]
    epochs.truncate_from_start(5)
    assert pairs(epochs) == [(3, 25)]
    epochs.clear()
    assert path.read_text() == "0\n0\n"
