"""The metadata log on disk: what is written, what a start repairs and replays, its snapshots."""

from pathlib import Path

import pytest

from headrace.errors import PolicyViolation
from headrace.metadata.image_records import feature_records
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.log.metadata_log import MetadataLog, MetadataLogSettings
from headrace.metadata.records import CorruptMetadata, VersionedRecord, decode_batches
from headrace.metadata.snapshots import FORMATTED, SnapshotId
from headrace.protocol.quorum_records import encode_control_batch
from headrace.protocol.schemas.records.metadata import ConfigRecord, TopicRecord
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.replicas import ReplicaKey, Voter, VoterHistory, VoterSet
from headrace.runtime import files
from tests.builders.metadata_nodes import NOW_MS, formatted, image_in, kafkas_node, loaded, opened

METADATA = "__cluster_metadata-0"
NEVER_RECORDED = VoterSet()


def config(name: str, value: str = "x") -> VersionedRecord:
    return VersionedRecord(ConfigRecord(4, "", name, value))


def write(log: MetadataLog, loader: MetadataLoader, *records: VersionedRecord) -> None:
    """Append, replay, sync and commit."""
    prepared = log.prepare(records, max(1, log.last_epoch), NOW_MS)
    for one in prepared:
        loader.replay(one.batch)
    loader.publish()
    log.append(memoryview(bytearray().join(one.data for one in prepared)))
    plan = log.plan_flush()
    plan.run()
    log.flushed(plan)
    log.commit(log.end_offset)


def begun(
    directory: Path, settings: MetadataLogSettings | None = None
) -> tuple[MetadataLog, MetadataLoader]:
    log = opened(directory, settings)
    log.commit(log.end_offset)
    return log, loaded(log)


def snapshot(log: MetadataLog, loader: MetadataLoader) -> SnapshotId:
    plan = log.plan_snapshot(loader.image, log.voter_history(NEVER_RECORDED), NOW_MS)
    plan.run()
    log.snapshot_taken(plan)
    return plan.id


# Writing.


def test_a_restart_loads_the_written_records(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, *map(VersionedRecord, feature_records({"metadata.version": 25})))
    write(log, loader, VersionedRecord(TopicRecord("orders", b"o" * 16)), config("a"))
    log.close()
    assert image_in(tmp_path) == loader.image


def test_many_records_become_several_batches(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, *(config(f"name-{number}") for number in range(10_001)))
    log.close()
    data = (tmp_path / METADATA / f"{0:020d}.log").read_bytes()
    counts = [len(batch.records) for batch in decode_batches(data)]
    assert counts == [10_000, 1]
    assert image_in(tmp_path) == loader.image


def test_a_batch_that_followers_would_reject_is_rejected(tmp_path: Path) -> None:
    log, _ = begun(formatted(tmp_path))
    with pytest.raises(PolicyViolation, match="split"):
        log.prepare([config(str(number), "x" * 30_000) for number in range(300)], 1, NOW_MS)


# Crashes.


def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, config("a"))
    before = loader.image
    write(log, loader, config("b"))
    log.close()
    path = tmp_path / METADATA / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-5])
    assert image_in(tmp_path) == before


def test_a_snapshot_ahead_of_the_log_replaces_it(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, config("a"))
    snapshot(log, loader)
    log.close()
    for path in (tmp_path / METADATA).glob("*.log"):
        path.write_bytes(b"")
    log = opened(tmp_path)
    again = loaded(log)
    assert again.image.configs == loader.image.configs
    assert (log.end_offset, log.last_epoch) == (1, 1)
    log.close()


def test_a_damaged_snapshot_is_never_skipped(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, config("a"))
    name = snapshot(log, loader).file_name
    log.close()
    path = tmp_path / METADATA / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptMetadata, match=name):
        image_in(tmp_path)


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    formatted(tmp_path)
    part = tmp_path / METADATA / f"{5:020d}-{1:010d}-abc.checkpoint.part"
    part.touch()
    opened(tmp_path).close()
    assert not part.exists()


# Snapshots.


def test_a_start_reads_the_snapshot_and_the_records_after_it(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, config("a"))
    taken = snapshot(log, loader)
    write(log, loader, config("b"))
    log.close()
    log = opened(tmp_path)
    assert log.snapshots == [(0, 0), taken]
    assert loaded(log).image == loader.image


def test_a_snapshot_is_due_when_much_was_written(tmp_path: Path) -> None:
    settings = MetadataLogSettings(record_bytes_between_snapshots=1000)
    log, loader = begun(formatted(tmp_path), settings)
    assert not log.has_grown()
    write(log, loader, config("a", "x" * 1000))
    assert log.has_grown()
    snapshot(log, loader)
    assert not log.has_grown()
    log.close()
    log, loader = begun(tmp_path, settings)
    assert not log.has_grown()
    write(log, loader, config("a", "y" * 1000))
    log.close()
    assert begun(tmp_path, settings)[0].has_grown()


def test_a_snapshot_is_due_with_time_if_there_is_news(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path), MetadataLogSettings(snapshot_interval_ms=1000))
    later_ms = files.modified_ms(f"{log.directory}/{SnapshotId(0, 0).file_name}") + 1000
    assert not log.has_aged(later_ms)
    write(log, loader, config("a"))
    assert log.has_aged(later_ms)
    assert not log.has_aged(later_ms - 500)
    snapshot(log, loader)
    assert not log.has_aged(NOW_MS + 5000)


def test_old_snapshots_and_the_log_before_them_are_deleted(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path), MetadataLogSettings(retention_bytes=0))
    for name in "abc":
        write(log, loader, config(name))
        snapshot(log, loader)
    newest = log.snapshots[-1]
    log.clean(NOW_MS)
    assert log.snapshots == [newest]
    assert log.start_offset == newest.end_offset
    log.close()
    assert image_in(tmp_path) == loader.image


def test_the_last_snapshot_is_never_deleted(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path), MetadataLogSettings(retention_bytes=0, retention_ms=0))
    write(log, loader, config("a"))
    log.clean(NOW_MS * 2)
    assert log.snapshots == [(0, 0)]


def test_snapshots_within_the_limits_are_kept(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, config("a"))
    snapshot(log, loader)
    log.clean(files.modified_ms(f"{log.directory}/{log.snapshots[0].file_name}"))
    assert len(log.snapshots) == 2


# Kafka's directories.


def test_a_directory_that_kafka_left_in_a_crash_is_taken_over(tmp_path: Path) -> None:
    log = opened(kafkas_node(tmp_path))
    loader = loaded(log)
    assert list(loader.image.topics) == ["orders"]
    assert (log.last_epoch, log.end_offset) == (2, 48)
    assert log.newest_snapshot == OffsetAndEpoch(38, 1)
    log.close()


def test_our_snapshot_of_kafkas_metadata_keeps_all_of_it(tmp_path: Path) -> None:
    log, loader = begun(kafkas_node(tmp_path))
    write(log, loader, config("ours"))
    snapshot(log, loader)
    log.close()
    assert image_in(tmp_path) == loader.image
    assert loader.image.acls
    assert loader.image.scram_credentials
    assert loader.image.client_quotas


# Snapshots of a leader, and their place among this log's own.


def test_old_snapshots_stay_until_the_next_one_is_known_to_be_committed(tmp_path: Path) -> None:
    """A voter that restarts without a leader has no high watermark yet."""
    log, loader = begun(formatted(tmp_path), MetadataLogSettings(retention_bytes=0))
    write(log, loader, config("a"))
    taken = snapshot(log, loader)
    log.close()
    log = opened(tmp_path, MetadataLogSettings(retention_bytes=0))
    log.clean(NOW_MS)
    assert log.snapshots == [FORMATTED, taken]
    log.commit(log.end_offset)
    log.clean(NOW_MS)
    assert log.snapshots == [taken]
    log.close()


def received(log: MetadataLog, source: MetadataLog, taken: SnapshotId) -> OffsetAndEpoch:
    """Receive another log's snapshot in pieces."""
    id_ = OffsetAndEpoch(*taken)
    size = source.snapshot_size(id_)
    assert size is not None
    for position in range(0, size, 100):
        log.receive_snapshot(id_, position, source.read_snapshot(id_, position, 100))
    return id_


def test_a_received_snapshot_replaces_the_log(tmp_path: Path) -> None:
    source, loader = begun(formatted(tmp_path / "leader"))
    write(source, loader, *(config(str(number)) for number in range(10)))
    taken = snapshot(source, loader)
    log, _ = begun(formatted(tmp_path / "follower"))
    log.install_snapshot(received(log, source, taken))
    assert (log.start_offset, log.end_offset, log.last_epoch) == (10, 10, 1)
    assert log.snapshots == [taken]
    assert loaded(log).image == loader.image
    log.close()
    assert image_in(tmp_path / "follower") == loader.image


def test_a_received_snapshot_is_checked_before_it_replaces_the_log(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, config("a"))
    log.receive_snapshot(OffsetAndEpoch(7, 1), 0, b"damaged" * 20)
    with pytest.raises(CorruptMetadata):
        log.install_snapshot(OffsetAndEpoch(7, 1))
    assert (log.start_offset, log.end_offset) == (0, 1)
    log.close()
    assert image_in(tmp_path) == loader.image


def test_a_snapshot_that_one_of_the_leader_overtook_is_dropped(tmp_path: Path) -> None:
    source, leaders = begun(formatted(tmp_path / "leader"))
    write(source, leaders, *(config(str(number)) for number in range(10)))
    newer = snapshot(source, leaders)
    log, loader = begun(formatted(tmp_path / "follower"))
    write(log, loader, config("a"))
    plan = log.plan_snapshot(loader.image, log.voter_history(NEVER_RECORDED), NOW_MS)
    log.install_snapshot(received(log, source, newer))
    plan.run()
    log.snapshot_taken(plan)
    assert log.snapshots == [newer]
    assert sorted(
        path.name for path in (tmp_path / "follower" / METADATA).glob("*.checkpoint")
    ) == [newer.file_name]


def test_a_snapshot_taken_twice_is_listed_once(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    write(log, loader, config("a"))
    taken = snapshot(log, loader)
    assert snapshot(log, loader) == taken
    assert log.snapshots == [FORMATTED, taken]


def test_a_log_begins_at_its_oldest_snapshot_after_a_restart_too(tmp_path: Path) -> None:
    """The records before it may be in the same segment, but their epochs are forgotten."""
    log, loader = begun(formatted(tmp_path), MetadataLogSettings(retention_bytes=0))
    for name in "abcdef":
        write(log, loader, config(name))
    plan = log.plan_snapshot(loader.image, log.voter_history(NEVER_RECORDED), NOW_MS)
    write(log, loader, config("later"))
    plan.run()
    log.snapshot_taken(plan)
    log.clean(NOW_MS)
    before = (log.start_offset, log.end_offset, log.end_of_epoch(1), log.oldest_snapshot)
    assert before[0] == 6
    log.close()
    log = opened(tmp_path)
    assert (log.start_offset, log.end_offset, log.end_of_epoch(1), log.oldest_snapshot) == before
    assert loaded(log).image == loader.image
    log.close()


# Epochs and voters.


def test_a_start_syncs_records_that_a_killed_process_left_unsynced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A voter acknowledges all records of its log."""
    log, _ = begun(formatted(tmp_path))
    (prepared,) = log.prepare([config("a")], 1, NOW_MS)
    log.append(memoryview(prepared.data))
    synced: list[str] = []
    fsync = files.fsync

    def recorded(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").resolve().name)
        fsync(fd)

    monkeypatch.setattr(files, "fsync", recorded)
    assert opened(tmp_path).end_offset == 1
    assert f"{0:020d}.log" in synced


def test_the_voters_come_from_snapshots_and_records(tmp_path: Path) -> None:
    log, loader = begun(formatted(tmp_path))
    first = log.voter_history(NEVER_RECORDED)
    assert (first.voters.ids, first.kraft_version, first.offset) == ((1,), 1, -1)
    write(log, loader, config("a"))
    two = first.voters.with_voter(Voter(ReplicaKey(2, b"2" * 16)))
    log.append(memoryview(encode_control_batch([two.record()], 1, 1, NOW_MS)))
    second = log.voter_history(NEVER_RECORDED)
    assert (second.voters.ids, second.offset) == ((1, 2), 1)
    log.commit(2)
    loader.replay(next(decode_batches(log.read(1, 1 << 20))))
    loader.publish()
    snapshot(log, loader)
    log.close()
    log = opened(tmp_path)
    assert log.voter_history(NEVER_RECORDED).voters == second.voters
    log.close()


def test_a_snapshot_of_a_static_quorum_has_no_voters(tmp_path: Path) -> None:
    (tmp_path / METADATA).mkdir()
    log, loader = begun(tmp_path)
    write(log, loader, config("a"))
    plan = log.plan_snapshot(loader.image, VoterHistory(VoterSet.of([Voter(ReplicaKey(1))])), 0)
    plan.run()
    log.snapshot_taken(plan)
    assert log.voter_history(NEVER_RECORDED).voters == NEVER_RECORDED
    log.close()
