"""Several log directories: placement, failures, and the files of a clean stop."""

import errno
import json
import logging
import os
from pathlib import Path

import pytest

from headrace.errors import KafkaStorageError
from headrace.runtime import files
from headrace.storage.checkpoints import LAST_BROKER_EPOCH, read_offsets
from headrace.storage.config import LogConfig
from headrace.storage.directories import DirectoryLost, LogDirectories, Wanted
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition, parse_directory_name
from tests.builders.failing_disk import failing, failing_writes
from tests.builders.logs import NOW, TOPIC_ID, append, values_of

CONFIG = LogConfig(segment_bytes=400, file_delete_delay_ms=1000)
UNASSIGNED = bytes(15) + b"\x01"


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(tmp_path / name) for name in ("one", "two", "three")]


def ids_of(paths: list[str]) -> dict[str, bytes]:
    return {path: bytes(12) + b"dir" + bytes([number]) for number, path in enumerate(paths)}


def opened(paths: list[str]) -> LogDirectories:
    return LogDirectories.open(paths, ids_of(paths))


def log_of(node: LogDirectories, number: int = 0, topic_id: bytes = TOPIC_ID) -> Log:
    return node.log_of(TopicPartition("orders", number), topic_id, CONFIG)


def names_in(path: str) -> set[str]:
    return {entry.name for entry in Path(path).iterdir()}


# Placing


def test_new_partitions_are_spread_over_equal_disks(paths: list[str]) -> None:
    """LOG-19"""
    node = opened(paths)
    for number in range(9):
        log_of(node, number)
    assert [len(directory.logs) for directory in node.directories] == [3, 3, 3]


def test_a_disk_that_is_nearly_full_gets_few(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-19"""
    free = dict(zip(paths, (100, 100, 10), strict=True))
    monkeypatch.setattr(files, "space", lambda path: (1000, free[path]))
    node = opened(paths)
    for number in range(21):
        log_of(node, number)
    assert [len(directory.logs) for directory in node.directories] == [10, 10, 1]


def test_a_partition_is_placed_in_the_directory_of_the_metadata(paths: list[str]) -> None:
    node = opened(paths)
    wanted = node.directories[2]
    for number in range(3):
        node.log_of(TopicPartition("orders", number), TOPIC_ID, CONFIG, wanted.id)
    node.log_of(TopicPartition("orders", 3), TOPIC_ID, CONFIG, UNASSIGNED)
    assert len(wanted.logs) == 3
    with pytest.raises(KafkaStorageError):
        node.log_of(TopicPartition("orders", 4), TOPIC_ID, CONFIG, b"\xff" * 16)


def test_a_log_is_found_in_any_directory(paths: list[str]) -> None:
    node = opened(paths)
    for number in range(6):
        append(log_of(node, number), b"%d" % number)
    node.close()
    node = opened(list(reversed(paths)))
    for number in range(6):
        assert values_of(log_of(node, number)) == [b"%d" % number]


def test_asking_twice_gives_the_same_log(paths: list[str]) -> None:
    node = opened(paths)
    assert log_of(node) is log_of(node)


# Failing


def test_a_broken_disk_takes_only_its_own_partitions_offline(paths: list[str]) -> None:
    """LOG-19"""
    gone: list[str] = []
    node = LogDirectories.open(
        paths, ids_of(paths), on_offline=lambda directory: gone.append(directory.path)
    )
    logs = [log_of(node, number) for number in range(6)]
    for log in logs:
        append(log)
    with failing_writes(errno.EIO), pytest.raises(KafkaStorageError):
        append(logs[0])
    broken = node.directory_of(logs[0])
    assert gone == [broken.path]
    for log in logs:
        if node.directory_of(log) is broken:
            with pytest.raises(KafkaStorageError):
                append(log)
        else:
            append(log)
    assert len([log for log in logs if log.failure]) == 2


def test_a_full_disk_takes_nothing_offline(paths: list[str]) -> None:
    node = opened(paths[:1])
    log = log_of(node)
    with failing_writes(errno.ENOSPC), pytest.raises(KafkaStorageError):
        append(log)
    with failing("mkdir", errno.ENOSPC), pytest.raises(KafkaStorageError):
        log_of(node, 1)
    append(log)
    append(log_of(node, 1))
    assert len(node.online) == 1


def test_a_full_disk_and_its_recovery_are_each_logged_once(
    paths: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    node = opened(paths[:1])
    log = log_of(node)
    for _ in range(3):
        with failing_writes(errno.ENOSPC), pytest.raises(KafkaStorageError):
            append(log)
        with failing("mkdir", errno.ENOSPC), pytest.raises(KafkaStorageError):
            log_of(node, 1)
        node.look_for_room()
    for _ in range(3):
        append(log)
        node.look_for_room()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "log directory full" in told[0]
    assert "has space again" in told[1]


def test_a_log_that_a_full_disk_kept_closed_is_opened_later(paths: list[str]) -> None:
    """Its directory is neither lost nor stray."""
    append(log_of(opened(paths[:1])), b"kept")
    node = opened(paths[:1])
    with failing("open_existing", errno.EMFILE), pytest.raises(KafkaStorageError):
        log_of(node)
    assert node.set_strays_aside() == []
    log = log_of(node)
    log.advance_high_watermark(log.log_end_offset)
    assert values_of(log) == [b"kept"]
    assert len(node.online) == 1


def test_a_disk_of_unknown_free_space_gets_no_partition(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-19: the others get them."""
    node = opened(paths)
    real = files.space

    def space(path: str) -> tuple[int, int]:
        if path == paths[0]:
            raise OSError(errno.EIO, "the disk failed")
        return real(path)

    monkeypatch.setattr(files, "space", space)
    for number in range(4):
        append(log_of(node, number))
    assert [directory.path for directory in node.online] == paths[1:]


def test_a_lost_directory_does_not_keep_the_others_from_their_syncs(paths: list[str]) -> None:
    """LOG-19"""
    node = opened(paths[:2])
    logs = [log_of(node, number) for number in range(4)]
    for log in logs:
        for _ in range(3):
            append(log, b"x" * 100)
    lost = node.directory_of(logs[0])
    Path(lost.path).rename(f"{lost.path}.away")
    for log in lost.logs.values():
        for segment in log.segments:
            segment.release_file()
    synced = {log.topic_partition for log, _ in node.plan_flushes(NOW)}
    assert synced == {log.topic_partition for log in logs} - lost.logs.keys()
    assert lost.failure is not None
    assert node.plan_flushes(NOW) != []


def test_checkpoints_that_cannot_be_written_take_their_directory_offline(paths: list[str]) -> None:
    """LOG-19: a disk that fails for one file has failed; one that is full has not."""
    node = opened(paths[:2])
    for number in range(2):
        append(log_of(node, number))
    first, second = node.plan_checkpoints()
    node.checkpointed(first, OSError(errno.EIO, "the disk failed"))
    node.checkpointed(second, OSError(errno.ENOSPC, "the disk is full"))
    assert node.online == [second.directory]


def test_a_partition_that_could_not_be_made_leaves_no_files(paths: list[str]) -> None:
    node = opened(paths[:1])
    with failing("create", errno.ENOSPC), pytest.raises(KafkaStorageError):
        log_of(node)
    assert not any(parse_directory_name(name) for name in names_in(paths[0]))


def test_a_directory_that_cannot_be_used_at_start_is_offline(paths: list[str]) -> None:
    Path(paths[0]).touch()
    node = opened(paths)
    assert [directory.path for directory in node.online] == paths[1:]
    for number in range(4):
        append(log_of(node, number))
    with pytest.raises(KafkaStorageError, match="offline"):
        node.log_of(TopicPartition("lost", 0), TOPIC_ID, CONFIG, node.directories[0].id)


def test_a_node_without_a_usable_directory_does_not_start(paths: list[str]) -> None:
    Path(paths[0]).touch()
    with pytest.raises(KafkaStorageError):
        opened(paths[:1])


def test_a_directory_that_is_not_there_may_be_one_that_cannot_be_read(paths: list[str]) -> None:
    """LOG-19: an id alone does not identify the disk for the operator."""
    Path(paths[0]).touch()
    node = LogDirectories.open(paths[:2], {paths[1]: ids_of(paths)[paths[1]]})
    with pytest.raises(DirectoryLost, match=f"it may be {paths[0]}, which cannot be used"):
        node.log_of(TopicPartition("lost", 0), TOPIC_ID, CONFIG, b"\xff" * 16)


# Stopping and starting


def test_a_clean_stop_leaves_a_marker_for_the_next_start(paths: list[str]) -> None:
    node = opened(paths[:1])
    append(log_of(node))
    node.close(broker_epoch=12)
    marker = Path(paths[0]) / ".kafka_cleanshutdown"
    assert json.loads(marker.read_text()) == {"version": 0, "brokerEpoch": 12}
    node = opened(paths[:1])
    assert node.directories[0].was_clean
    assert node.previous_broker_epoch == 12
    assert not marker.exists(), "from here on a crash is a crash"


def test_a_power_cut_does_not_bring_the_marker_back(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(paths[:1]).close()
    synced: set[int] = set()
    monkeypatch.setattr(files, "fsync", lambda fd: synced.add(os.fstat(fd).st_ino))
    opened(paths[:1])
    assert Path(paths[0]).stat().st_ino in synced


def test_the_death_of_a_process_alone_loses_nothing(paths: list[str]) -> None:
    """REP-7: what the process wrote is in the memory of the machine."""
    node = opened(paths)
    node.note_registration(12)
    del node
    node = opened(paths)
    assert node.previous_broker_epoch == 12
    assert not any(directory.was_clean for directory in node.online)


def test_a_restarted_machine_may_have_lost_data(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """REP-7"""
    node = opened(paths)
    node.note_registration(12)
    del node
    monkeypatch.setattr(files, "boot_id", lambda: "another boot")
    assert opened(paths).previous_broker_epoch == -1


def test_a_process_that_dies_while_it_registers_loses_nothing(paths: list[str]) -> None:
    node = opened(paths)
    node.note_registration(12)
    node.directories[0].note_registration(LAST_BROKER_EPOCH)
    del node
    assert opened(paths).previous_broker_epoch == LAST_BROKER_EPOCH


def test_one_new_directory_among_old_ones_counts_as_lost_data(paths: list[str]) -> None:
    node = opened(paths[:2])
    node.note_registration(12)
    del node
    assert opened(paths).previous_broker_epoch == -1


def test_a_machine_without_boot_ids_notes_no_registration(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "boot_id", lambda: "")
    node = opened(paths)
    node.note_registration(12)
    del node
    assert opened(paths).previous_broker_epoch == -1


def test_a_damaged_note_of_the_registration_counts_as_lost_data(paths: list[str]) -> None:
    node = opened(paths)
    node.note_registration(12)
    del node
    for path in paths:
        Path(path, ".headrace_registration").write_text('{"brokerEpoch":')
    assert opened(paths).previous_broker_epoch == -1


def test_a_full_disk_at_the_registration_takes_nothing_offline(paths: list[str]) -> None:
    node = opened(paths)
    with failing_writes(errno.ENOSPC):
        node.note_registration(12)
    assert len(node.online) == len(paths)


def test_the_marker_is_written_after_everything_else(paths: list[str]) -> None:
    node = opened(paths[:1])
    append(log_of(node))
    with failing("fsync"):
        node.close()
    assert ".kafka_cleanshutdown" not in names_in(paths[0])


def test_a_stop_syncs_appended_records(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    node = opened(paths[:1])
    log = log_of(node)
    append(log)
    synced: set[int] = set()
    monkeypatch.setattr(files, "fsync", lambda fd: synced.add(os.fstat(fd).st_ino))
    node.close()
    for name in ("00000000000000000000.log", "partition.metadata", "."):
        assert (Path(log.directory) / name).stat().st_ino in synced


def test_a_stop_writes_the_checkpoints(paths: list[str]) -> None:
    node = opened(paths[:1])
    log = log_of(node)
    for _ in range(3):
        append(log, b"x" * 100)
    log.delete_records_before(1)
    node.close()
    partition = TopicPartition("orders", 0)
    root = paths[0]
    assert read_offsets(f"{root}/recovery-point-offset-checkpoint") == {partition: 3}
    assert read_offsets(f"{root}/replication-offset-checkpoint") == {partition: 3}
    assert read_offsets(f"{root}/log-start-offset-checkpoint") == {partition: 1}
    again = log_of(opened([root]))
    assert (again.log_start_offset, again.log_end_offset, again.high_watermark) == (1, 3, 3)


def test_checkpoints_are_written_only_when_something_changed(paths: list[str]) -> None:
    node = opened(paths[:1])
    log = log_of(node)
    for plan in (*node.plan_high_watermarks(), *node.plan_checkpoints()):
        plan.run()
    assert node.plan_high_watermarks() == node.plan_checkpoints() == []
    append(log)
    assert len(node.plan_high_watermarks()) == 1
    assert node.plan_checkpoints() == []


def test_a_damaged_checkpoint_causes_only_a_recovery(paths: list[str]) -> None:
    node = opened(paths[:1])
    append(log_of(node), b"kept")
    node.close()
    for path in Path(paths[0]).glob("*checkpoint"):
        path.write_text("damaged")
    log = log_of(opened(paths[:1]))
    log.advance_high_watermark(log.log_end_offset)
    assert values_of(log) == [b"kept"]


def after_a_crash(paths: list[str]) -> LogDirectories:
    """A node that opens what another has left: four logs of several segments, one tail torn."""
    node = opened(paths)
    for number in range(4):
        for value in (b"a" * 300, b"b" * 300, b"c"):
            append(log_of(node, number), value)
    torn = Path(log_of(node, 2).segments[-1].path(".log"))
    node.close()
    (Path(paths[0]) / ".kafka_cleanshutdown").unlink()
    torn.write_bytes(torn.read_bytes()[:-1])
    return opened(paths)


def test_logs_are_recovered_in_threads_as_they_are_without(paths: list[str]) -> None:
    """LOG-11: what is whole is there, and what is torn is not."""
    node = after_a_crash(paths[:1])
    partitions = [TopicPartition("orders", number) for number in range(4)]
    node.recover([Wanted(one, TOPIC_ID, CONFIG) for one in partitions], threads=2)
    logs = [log_of(node, number) for number in range(4)]
    assert [log.log_end_offset for log in logs] == [3, 3, 2, 3]
    assert all(log.resources is node.resources for log in logs)
    assert all(segment.resources is node.resources for log in logs for segment in log.segments)
    for log in logs:
        append(log, b"next")
        log.advance_high_watermark(log.log_end_offset)
    assert values_of(logs[2]) == [b"a" * 300, b"b" * 300, b"next"]
    assert values_of(logs[3]) == [b"a" * 300, b"b" * 300, b"c", b"next"]


def test_a_single_log_is_recovered_in_a_thread_too(paths: list[str]) -> None:
    """The event loop serves heartbeats meanwhile."""
    node = after_a_crash(paths[:1])
    partition = TopicPartition("orders", 2)
    assert node.recovery_of(partition) is None
    node.recover([Wanted(partition, TOPIC_ID, CONFIG)], threads=1)
    recovery = node.recovery_of(partition)
    assert recovery is not None
    recovered = recovery.result()
    assert recovered is log_of(node, 2)
    assert node.recovery_of(partition) is None


def test_checkpoints_keep_the_offsets_of_logs_that_are_not_loaded_yet(paths: list[str]) -> None:
    """After a second crash during the start they would be lost."""
    node = opened(paths[:1])
    for number in range(2):
        for _ in range(3):
            append(log_of(node, number), b"x" * 100)
        log_of(node, number).delete_records_before(1)
    node.close()
    again = opened(paths[:1])
    log_of(again, 0)
    for plan in (*again.plan_high_watermarks(), *again.plan_checkpoints()):
        plan.run()
    both = {TopicPartition("orders", 0): 3, TopicPartition("orders", 1): 3}
    root = paths[0]
    assert read_offsets(f"{root}/replication-offset-checkpoint") == both
    assert read_offsets(f"{root}/log-start-offset-checkpoint") == dict.fromkeys(both, 1)


def test_a_log_of_another_topic_is_set_aside_though_threads_have_looked_at_it(
    paths: list[str],
) -> None:
    node = after_a_crash(paths[:1])
    other = bytes(15) + b"\x07"
    partitions = [TopicPartition("orders", number) for number in range(4)]
    node.recover([Wanted(one, other, CONFIG) for one in partitions], threads=2)
    assert log_of(node, 0, other).log_end_offset == 0
    assert any(name.startswith("orders-0.") for name in names_in(paths[0]))


def test_a_log_that_threads_could_not_load_is_left_alone(paths: list[str]) -> None:
    node = after_a_crash(paths[:1])
    damaged = Path(paths[0]) / "orders-0" / "00000000000000000000.log.swap"
    damaged.write_bytes(b"no batch")
    partitions = [TopicPartition("orders", number) for number in range(4)]
    node.recover([Wanted(one, TOPIC_ID, CONFIG) for one in partitions], threads=2)
    with pytest.raises(KafkaStorageError):
        log_of(node, 0)
    assert damaged.exists()
    assert log_of(node, 1).log_end_offset == 3


def test_logs_due_for_a_sync_are_synced(paths: list[str]) -> None:
    node = opened(paths[:1])
    log = log_of(node)
    for _ in range(3):
        append(log, b"x" * 100)
    for flushed, plan in node.plan_flushes(NOW):
        plan.run()
        flushed.flushed(plan, NOW)
    assert log.recovery_point == log.segments[-1].base_offset > 0
    assert node.plan_flushes(NOW) == []


def test_many_logs_are_synced_at_a_stop(paths: list[str]) -> None:
    node = opened(paths[:1])
    logs = [log_of(node, number) for number in range(20)]
    for log in logs:
        append(log)
    node.close()
    assert all(log.recovery_point == 1 for log in logs)
    assert opened(paths[:1]).directories[0].was_clean


# Deleting and setting aside


def test_a_deleted_partition_can_be_made_again_at_once(paths: list[str]) -> None:
    node = opened(paths[:1])
    log = log_of(node)
    append(log, b"old")
    node.delete(log)
    new = log_of(node, topic_id=b"another topic id")
    append(new, b"new")
    assert values_of(new) == [b"new"]
    (aside,) = (name for name in names_in(paths[0]) if name.endswith("-delete"))
    assert aside.startswith("orders-0.")
    assert node.resources.deletions.due(NOW) == []
    assert node.resources.deletions.due(NOW + 1000) == [f"{paths[0]}/{aside}"]


def test_directories_left_to_delete_are_deleted_after_the_next_start(paths: list[str]) -> None:
    node = opened(paths[:1])
    log = log_of(node)
    node.delete(log)
    node.close()
    node = opened(paths[:1])
    assert node.resources.deletions.due(NOW) == [log.directory]


def test_files_of_an_older_topic_of_that_name_are_set_aside(paths: list[str]) -> None:
    node = opened(paths[:1])
    append(log_of(node), b"old")
    node.close()
    log = log_of(opened(paths[:1]), topic_id=b"another topic id")
    assert log.log_end_offset == 0
    assert any(name.endswith("-stray") for name in names_in(paths[0]))


def test_unknown_partitions_are_set_aside_and_kept(paths: list[str]) -> None:
    node = opened(paths[:1])
    append(log_of(node, 0), b"wanted")
    append(log_of(node, 1), b"unknown")
    (Path(paths[0]) / "__cluster_metadata-0").mkdir()
    node.close()
    node = opened(paths[:1])
    log_of(node, 0)
    assert node.set_strays_aside() == [TopicPartition("orders", 1)]
    assert {"orders-0", "__cluster_metadata-0"} <= names_in(paths[0])
    (stray,) = (name for name in names_in(paths[0]) if name.endswith("-stray"))
    assert stray.startswith("orders-1.")


def test_names_that_are_too_long_are_cut_when_set_aside(paths: list[str]) -> None:
    node = opened(paths[:1])
    log = node.log_of(TopicPartition("t" * 249, 0), TOPIC_ID, CONFIG)
    node.delete(log)
    assert max(map(len, names_in(paths[0]))) == 255


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", ("orders", 0)),
        ("a-b-12", ("a-b", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("orders", None),
        ("-1", None),
        ("orders-x", None),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", None),
        ("lost+found", None),
    ],
)
def test_names_of_partition_directories(name: str, expected: tuple[str, int] | None) -> None:
    assert parse_directory_name(name) == expected


def test_files_that_cannot_be_loaded_are_left_alone(paths: list[str]) -> None:
    """No new log replaces files that a person may recover."""
    node = opened(paths[:1])
    append(log_of(node))
    append(log_of(node, 1))
    node.close()
    damaged = Path(paths[0]) / "orders-0" / "00000000000000000000.log.swap"
    damaged.write_bytes(b"no batch")
    node = opened(paths[:1])
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            log_of(node)
    assert damaged.exists()
    append(log_of(node, 1))
