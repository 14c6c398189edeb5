"""Snapshot files appear whole or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.metadata.log.snapshot_files import (
    delete_leftovers,
    delete_snapshot,
    list_snapshots,
    snapshot_path,
    write_snapshot,
)
from headrace.metadata.snapshots import SnapshotId


def test_snapshots_are_listed_by_age(tmp_path: Path) -> None:
    for snapshot in (SnapshotId(90, 2), SnapshotId(0, 0), SnapshotId(7, 1)):
        write_snapshot(str(tmp_path), snapshot, [bytearray(b"x")])
    (tmp_path / "quorum-state").touch()
    assert list_snapshots(str(tmp_path)) == [(0, 0), (7, 1), (90, 2)]


def test_a_snapshot_holds_its_batches(tmp_path: Path) -> None:
    snapshot = SnapshotId(7, 1)
    size = write_snapshot(str(tmp_path), snapshot, [bytearray(b"one"), bytearray(b"two")])
    assert size == 6
    assert Path(snapshot_path(str(tmp_path), snapshot)).read_bytes() == b"onetwo"


def test_a_failed_writer_leaves_no_snapshot(tmp_path: Path) -> None:
    def dying() -> Iterator[bytearray]:
        yield bytearray(b"one")
        raise OSError("killed")

    with pytest.raises(OSError, match="killed"):
        write_snapshot(str(tmp_path), SnapshotId(7, 1), dying())
    assert list_snapshots(str(tmp_path)) == []
    assert len(list(tmp_path.iterdir())) == 1
    delete_leftovers(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_only_unused_files_are_leftovers(tmp_path: Path) -> None:
    kept = ["00000000000000000007-0000000001.checkpoint", "leader-epoch-checkpoint", f"{0:020}.log"]
    gone = [
        "00000000000000000009-0000000001-abc.checkpoint.part",
        "00000000000000000001-0000000001.checkpoint.deleted",
    ]
    for name in kept + gone:
        (tmp_path / name).touch()
    delete_leftovers(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_a_deleted_snapshot_is_gone(tmp_path: Path) -> None:
    write_snapshot(str(tmp_path), SnapshotId(7, 1), [])
    delete_snapshot(str(tmp_path), SnapshotId(7, 1))
    delete_snapshot(str(tmp_path), SnapshotId(7, 1))
    assert list_snapshots(str(tmp_path)) == []
